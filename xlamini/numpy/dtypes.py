"""Dtypes under their names in `jax.numpy`: scalar types (`float32(1)`), classes of dtypes, dtype predicates."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xlamini.core import dtypes as _dtypes, finfo as finfo, iinfo as iinfo, tree_leaves
from xlamini.core.dtypes import can_cast as can_cast, promote_types as promote_types
from xlamini.core.dtypes.scalar_constructors import constructors as _makers

bool_: Final = _makers["bool"]
int1: Final = _makers["int1"]
int2: Final = _makers["int2"]
int4: Final = _makers["int4"]
int8: Final = _makers["int8"]
int16: Final = _makers["int16"]
int32: Final = _makers["int32"]
int64: Final = _makers["int64"]
uint1: Final = _makers["uint1"]
uint2: Final = _makers["uint2"]
uint4: Final = _makers["uint4"]
uint8: Final = _makers["uint8"]
uint16: Final = _makers["uint16"]
uint32: Final = _makers["uint32"]
uint64: Final = _makers["uint64"]
float4_e2m1fn: Final = _makers["float4_e2m1fn"]
float6_e2m3fn: Final = _makers["float6_e2m3fn"]
float6_e3m2fn: Final = _makers["float6_e3m2fn"]
float8_e3m4: Final = _makers["float8_e3m4"]
float8_e4m3: Final = _makers["float8_e4m3"]
float8_e4m3b11fnuz: Final = _makers["float8_e4m3b11fnuz"]
float8_e4m3fn: Final = _makers["float8_e4m3fn"]
float8_e4m3fnuz: Final = _makers["float8_e4m3fnuz"]
float8_e5m2: Final = _makers["float8_e5m2"]
float8_e5m2fnuz: Final = _makers["float8_e5m2fnuz"]
float8_e8m0fnu: Final = _makers["float8_e8m0fnu"]
bfloat16: Final = _makers["bfloat16"]
float16: Final = _makers["float16"]
float32: Final = _makers["float32"]
float64: Final = _makers["float64"]
complex64: Final = _makers["complex64"]
complex128: Final = _makers["complex128"]

int_: Final = int64
uint: Final = uint64
float_: Final = float64
complex_: Final = complex128
single: Final = float32
double: Final = float64
csingle: Final = complex64
cdouble: Final = complex128

dtype = np.dtype
"""NumPy's class of dtypes, which is that of an array's `dtype`.

>>> jnp.ones(2).dtype == dtype("float32"), isinstance(jnp.ones(2, "bfloat16").dtype, dtype)
(True, True)
"""
generic = np.generic
"""The class of all dtypes, for `issubdtype`; it is NumPy's, as are those below it.

>>> issubdtype("bfloat16", generic)
True
"""
number = np.number
"""The class of all dtypes of numbers: integers, floats and complex numbers; not of bool.

>>> issubdtype("int4", number), issubdtype("complex64", number), issubdtype(bool, number)
(True, True, False)
"""
inexact = np.inexact
"""The class of floating and complex dtypes.

>>> issubdtype("float8_e5m2", inexact), issubdtype("complex64", inexact), issubdtype("int32", inexact)
(True, True, False)
"""
integer = np.integer
"""The class of integer dtypes, signed and unsigned; not of bool.

>>> issubdtype("int4", integer), issubdtype("uint8", integer), issubdtype(bool, integer)
(True, True, False)
"""
signedinteger = np.signedinteger
"""The class of signed integer dtypes.

>>> issubdtype("int4", signedinteger), issubdtype("uint8", signedinteger)
(True, False)
"""
unsignedinteger = np.unsignedinteger
"""The class of unsigned integer dtypes.

>>> issubdtype("int4", unsignedinteger), issubdtype("uint8", unsignedinteger)
(False, True)
"""
floating = np.floating
"""The class of real floating dtypes, those that NumPy lacks among them.

>>> def checked(x):
...     if not jnp.issubdtype(x.dtype, jnp.floating):
...         raise TypeError(f"a float is needed, got {x.dtype}")
...     return x
>>> checked(jnp.ones(2, "bfloat16"))
Array([1, 1], dtype=bfloat16)
>>> checked(jnp.ones(2, "int32"))
Traceback (most recent call last):
    ...
TypeError: a float is needed, got int32
"""
complexfloating = np.complexfloating
"""The class of complex dtypes.

>>> issubdtype("complex64", complexfloating), issubdtype("float32", complexfloating)
(True, False)
"""
flexible = np.flexible
"""NumPy's class of dtypes whose elements have a size of their own, such as texts. No Array has one of these.

>>> issubdtype(np.array(["a", "bc"]).dtype, flexible), issubdtype("float32", flexible)
(True, False)
"""
character = np.character
"""NumPy's class of dtypes of texts. No Array has one of these.

>>> jnp.asarray(np.array(["a", "bc"]))
Traceback (most recent call last):
    ...
TypeError: asarray: ndarray: no array can have dtype <U2; ...
"""
object_ = np.object_
"""NumPy's class of the dtype of Python objects. No Array has it.

>>> issubdtype(np.array([None]).dtype, object_)
True
>>> jnp.asarray(np.array([None, "a"]))
Traceback (most recent call last):
    ...
TypeError: asarray: ndarray: no array can have dtype object; ...
"""


def result_type(*args: Any) -> np.dtype:
    """The dtype of an operation on arrays, numbers and dtypes; TypePromotionError where they have none in common.

    >>> result_type(np.int8(1), 2.0), result_type("float16", "int32")
    (dtype('float32'), dtype('float16'))
    """
    return _dtypes.result_type(*args)


_KINDS = {
    "bool": np.bool_,
    "signed integer": np.signedinteger,
    "unsigned integer": np.unsignedinteger,
    "integral": np.integer,
    "real floating": np.floating,
    "complex floating": np.complexfloating,
    "numeric": np.number,
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Test whether a dtype is `kind`: a dtype, a name of the array API such as "integral", or one of a tuple of these.

    >>> isdtype("bfloat16", ("integral", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return issubdtype(dtype, _KINDS[kind])
    return _dtypes.as_dtype(dtype) == _dtypes.as_dtype(kind)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Test whether dtype `arg1` is `arg2`, or one of the class `arg2`: np.floating, np.integer, extended, ...

    >>> issubdtype("bfloat16", np.floating)
    True
    """
    return _dtypes.issubdtype(arg1, arg2)


def iscomplexobj(x: Any) -> bool:
    """Test whether an array's dtype is complex, whatever its values.

    >>> jnp.iscomplexobj(jnp.array([1 + 0j]))
    True
    """
    dtype = _dtypes.result_type(*tree_leaves(x)) if isinstance(x, list | tuple) and x else _dtypes.dtype_of(x)
    return issubdtype(dtype, np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Test whether an array's dtype is not complex.

    >>> jnp.isrealobj(jnp.array([1 + 0j]))
    False
    """
    return not iscomplexobj(x)
