"""Dtypes as programs see them: canonical under x64, weak or not, named, classified and promoted.

With `enable_x64` off a 64-bit dtype stands for its 32-bit one. The functions here that take a value
or compute a type give canonical dtypes; `promote_types` alone speaks of dtypes as they are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from xlamini.core.caching.memo import memoised
from xlamini.core.dtypes.lattice import join
from xlamini.core.dtypes.table import ExtendedDType, bool_, float0, ml_classes, scalar_types, small_floats, small_ints
from xlamini.core.errors import TypePromotionError
from xlamini.core.errors.frames import user_stacklevel
from xlamini.core.flags.config import enable_x64, numpy_dtype_promotion
from xlamini.core.flags.jax_flags import explicit_x64_dtypes
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.tracing.own_operands import user_mixes_dtypes

python_scalar_dtypes: dict[type, np.dtype] = {
    bool: np.dtype(bool),
    int: np.dtype("int64"),
    SymbolicSize: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}
"""What a Python scalar stands for when x64 is on."""

_NARROW = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
_WIDTHS = {
    True: {dtype: dtype for dtype in scalar_types},
    False: {dtype: _NARROW.get(dtype, dtype) for dtype in scalar_types},
}
"""For x64 on and off, the dtype that each dtype stands for."""


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that stands for `dtype`: with x64 off, 32 bits for 64. None stands for the default float.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    known = _WIDTHS[enable_x64.value].get(dtype)
    if known is not None:
        return known
    if not isinstance(dtype, ExtendedDType):
        found = as_dtype(float if dtype is None else dtype)
        return _WIDTHS[enable_x64.value].get(found, found)
    if allow_extended_dtype:
        return dtype
    raise ValueError(f"a NumPy dtype is needed here, but got the extended dtype {dtype}")


def as_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype of a name, a scalar type or a dtype; TypeError where there is none."""
    try:
        if dtype is not None:
            return np.dtype(dtype)
    except (TypeError, UnicodeError):
        pass
    raise TypeError(f"{dtype!r} is not a dtype; write a name such as 'float32' or jnp.float32")


def check_user_dtype(dtype: Any, name: str) -> Any:
    """The canonical dtype for an explicit request made to the function `name`.

    Where 64-bit dtypes are off, flag `explicit_x64_dtypes` says what to do when one is asked for by name: "warn" that
    it is narrowed, raise a ValueError ("error"), or "allow" it. TypeError for a dtype that no array can have,
    ValueError for an array, whose dtype NumPy would take.
    """
    if isinstance(dtype, ExtendedDType):
        return dtype
    if hasattr(dtype, "__array__") and not isinstance(dtype, type):
        raise ValueError(f"{name}: an array was given as a dtype; write x.dtype for the dtype of an array x")
    asked = as_dtype(dtype)
    _check_known(asked, name)
    given = canonicalize_dtype(asked)
    if given != asked and dtype not in python_scalar_dtypes:
        if explicit_x64_dtypes.value == "allow":
            return asked
        if explicit_x64_dtypes.value == "error":
            raise ValueError(_narrowed(asked, given, name, ""))
        text = _narrowed(asked, given, name, f", so it is {given}")
        warnings.warn(text, UserWarning, user_stacklevel())
    return given


def _narrowed(asked: np.dtype, given: np.dtype, name: str, outcome: str) -> str:
    return (
        f"{name}: dtype {asked} was asked for, but 64-bit dtypes are off{outcome}. "
        f"Ask for {given}, or turn them on with config.update('jax_enable_x64', True) or the "
        "environment variable XLAMINI_ENABLE_X64=1."
    )


def is_array_dtype(dtype: Any) -> bool:
    """Whether an array can have this dtype."""
    return dtype in scalar_types or dtype == float0


def check_array_dtype(dtype: Any, what: str) -> None:
    """TypeError unless an array can have the dtype of `what`; None, of Python numbers, is one."""
    if dtype is not None and not isinstance(dtype, ExtendedDType):
        _check_known(np.dtype(dtype), what)


def _check_known(dtype: np.dtype, name: str) -> None:
    if not is_array_dtype(dtype):
        raise TypeError(
            f"{name}: no array can have dtype {dtype}; it takes booleans, integers, floats "
            "and complex numbers, in native byte order"
        )


def dtype_of(x: Any) -> Any:
    """The canonical dtype of an array, a tracer or a scalar; TypeError for anything else."""
    asked = python_scalar_dtypes.get(type(x)) or getattr(x, "dtype", None)
    known = _WIDTHS[enable_x64.value].get(asked)
    return _unusual_dtype(x, asked) if known is None else known


def _unusual_dtype(x: Any, dtype: Any) -> Any:
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, np.dtype):
        _check_known(dtype, type(x).__name__)
        return dtype
    for kind, default in python_scalar_dtypes.items():
        if isinstance(x, kind):
            return canonicalize_dtype(default)
    raise TypeError(
        f"an array or a number is needed, but got {type(x).__name__}; make it one with jnp.asarray"
    )


def is_weak(x: Any) -> bool:
    """Whether a value adapts to the dtypes it meets: Python numbers, and arrays made of them."""
    kind = type(x)
    return kind is int or kind is float or kind is complex or bool(getattr(x, "weak_type", False))


def scalar_type_of(x: Any) -> type:
    """The Python type that a value or a dtype generalises: bool, int, float or complex.

    >>> scalar_type_of(np.float16(1))
    <class 'float'>
    """
    dtype = x if isinstance(x, np.dtype) else dtype_of(x)
    try:
        return scalar_types[dtype]
    except KeyError:
        raise TypeError(f"dtype {dtype} generalises no Python scalar type") from None


@memoised("helper: short names of dtypes", None)
def short_name(dtype: Any) -> str:
    """The dtype's name as jaxprs print it: 'f32', 'i8', 'bf16', 'f8_e4m3fn', 'bool'."""
    if isinstance(dtype, ExtendedDType):
        return dtype.name
    if dtype == float0:
        return "float0"
    name = np.dtype(dtype).name
    for long, short in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(long, short)
    return name


@memoised("helper: issubdtype", 4096)
def issubdtype(a: Any, b: Any) -> bool:
    """Whether dtype or class `a` is `b`, or one of the class `b`: NumPy's function, extended to JAX's dtypes.

    >>> issubdtype("bfloat16", np.floating), issubdtype(xlamini.dtypes.prng_key, xlamini.dtypes.extended)
    (True, True)
    """
    if a is None:  # NumPy reads None as float64
        return issubdtype(np.float64, b)
    if isinstance(a, ExtendedDType) and isinstance(b, ExtendedDType):
        return a == b
    scalar, kind = _scalar_class(a), _scalar_class(b)
    return issubclass(scalar, kind) or issubclass(ml_classes.get(scalar, scalar), kind)


def _scalar_class(dtype: Any) -> type:
    if isinstance(dtype, ExtendedDType):
        return dtype.type
    is_class = isinstance(dtype, type) and issubclass(dtype, np.generic)
    return dtype if is_class else as_dtype(dtype).type


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that arrays of dtypes `a` and `b` promote to; `int`, `float`, `complex` are weak.

    >>> promote_types("int32", "float16")
    dtype('float16')
    """
    operands = (_operand(a), _operand(b))
    if operands[0] == operands[1]:
        return operands[0][0]
    node = _join(operands, enable_x64.value, numpy_dtype_promotion.value)
    return python_scalar_dtypes.get(node, node)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The canonical dtype of an operation on `args`: values, dtypes or names of dtypes.

    With `return_weak_type_flag`, also whether it is weak. TypePromotionError where there is none.

    >>> result_type(np.int8(1), 2.0), result_type(np.float16(1), 2.0)
    (dtype('float32'), dtype('float16'))
    """
    operands = tuple(map(_operand, args))
    x64 = enable_x64.value or (explicit_x64_dtypes.value == "allow" and _has_wide_array(args))
    mode = numpy_dtype_promotion.value
    try:
        result = _result(operands, x64, mode)
    except TypePromotionError:
        if mode == "standard" or user_mixes_dtypes(args):
            raise
        result = _result(operands, x64, "standard")
    return result if return_weak_type_flag else result[0]


_DTYPE_CLASSES = (np.dtype, ExtendedDType)
_Operand = tuple[Any, bool]
_PYTHON: dict[Any, _Operand] = {
    kind: (dtype, kind is not bool) for kind, dtype in python_scalar_dtypes.items()
}


def _has_wide_array(args: tuple[Any, ...]) -> bool:
    """Whether an operand is of a 64-bit dtype because one was asked for; numbers of NumPy's are narrowed."""
    return any(hasattr(x, "weak_type") and x.dtype in _WIDTHS[False] for x in args)


def _operand(x: Any) -> _Operand:
    """The dtype of a value or a dtype, and whether it is weak; not canonical."""
    known = _PYTHON.get(x if isinstance(x, type) else type(x))
    if known is not None:
        return known
    weak = getattr(x, "weak_type", None)
    return (_strong(x), False) if weak is None else (x.dtype, weak)


def _strong(x: Any) -> Any:
    if isinstance(x, _DTYPE_CLASSES):
        return x
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, _DTYPE_CLASSES):
        return dtype
    return as_dtype(x) if isinstance(x, str | type) else dtype_of(x)


@memoised("helper: promoted dtypes", 4096)
def _result(operands: tuple[_Operand, ...], x64: bool, promotion: str) -> _Operand:
    if not operands:
        raise ValueError("result_type needs at least one array or dtype")
    widths = _WIDTHS[x64]
    canonical = tuple((widths.get(dtype, dtype), weak) for dtype, weak in operands)
    if len(set(canonical)) == 1 and not canonical[0][1]:
        return canonical[0]
    node = _join(canonical, x64, promotion)
    default = python_scalar_dtypes.get(node)
    return (node, False) if default is None else (canonicalize_dtype(default), True)


def _join(operands: tuple[_Operand, ...], x64: bool, promotion: str) -> Any:
    strict = promotion == "strict"
    nodes = {_node(*operand) for operand in operands}
    node = join(nodes, x64, strict)
    if node is None:
        raise TypePromotionError(_no_common_dtype(nodes, strict))
    return node


def _node(dtype: Any, weak: bool) -> Any:
    if dtype == float0:
        raise TypeError("an operand has dtype float0, of a tangent of integers, which takes part in no operation")
    if dtype not in scalar_types:
        raise TypePromotionError(f"dtype {dtype} promotes with no other dtype")
    return scalar_types[dtype] if weak and dtype != bool_ else dtype


def _no_common_dtype(nodes: set[Any], strict: bool) -> str:
    names = sorted(f"Python {n.__name__}" if isinstance(n, type) else n.name for n in nodes)
    narrow = [n.name for n in nodes if n in small_ints or n in small_floats]
    if strict:
        why = "numpy_dtype_promotion is 'strict'"
    else:
        why = f"{' and '.join(sorted(narrow))} adapts to no other dtype by itself"
    return f"{', '.join(names)} have no common dtype: {why}. Convert one with x.astype(dtype)."
