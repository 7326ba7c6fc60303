"""The dtypes an array can have, by family, and the classes that they are of."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np


def _dtypes(names: str) -> list[np.dtype]:
    scalars = (getattr(ml_dtypes, n, None) or getattr(np, n, None) for n in names.split())
    return [np.dtype(scalar) for scalar in scalars if scalar is not None]


bool_: Final = np.dtype(bool)
small_ints: Final = _dtypes("uint1 uint2 uint4 int1 int2 int4")
signed: Final = _dtypes("int8 int16 int32 int64")
unsigned: Final = _dtypes("uint8 uint16 uint32 uint64")
small_floats: Final = _dtypes(
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)
floats: Final = _dtypes("bfloat16 float16 float32 float64")
HALVES = frozenset(_dtypes("bfloat16 float16"))
"""The dtypes of which GPUs multiply matrices fastest."""
complexes: Final = _dtypes("complex64 complex128")

bfloat16 = ml_dtypes.bfloat16
"""The scalar type of 16 bits with the exponent of float32 and 8 bits of precision; `jnp.bfloat16` makes an Array.

>>> jnp.array([1.0, 1.001], bfloat16)
Array([1, 1], dtype=bfloat16)
>>> float(bfloat16(1.001))
1.0
"""

float0: Final = np.dtype([("float0", np.void)])
"""The dtype of a tangent that holds nothing: an integer's or a boolean's.

>>> slope = xlamini.grad(lambda n: n * 1.0, allow_int=True)(3)
>>> slope.dtype == float0
True
"""

scalar_types: dict[np.dtype, type] = {
    **dict.fromkeys((*small_ints, *unsigned, *signed), int),
    **dict.fromkeys((*small_floats, *floats), float),
    **dict.fromkeys(complexes, complex),
    bool_: bool,
}
"""The Python type that each dtype generalises."""


def _class_of(dtype: np.dtype) -> type:
    if scalar_types[dtype] is float:
        return np.floating
    return np.unsignedinteger if dtype.name.startswith("u") else np.signedinteger


ml_classes: dict[type, type] = {
    dtype.type: _class_of(dtype) for dtype in scalar_types if hasattr(ml_dtypes, dtype.name)
}
"""The NumPy class of the scalar types that NumPy itself has no class for."""


class extended(np.generic):
    """The class of all dtypes that are no NumPy dtype.

    >>> jnp.issubdtype(random.key(0).dtype, extended), jnp.issubdtype(jnp.float32, extended)
    (True, False)
    """


class prng_key(extended):
    """The class of the dtypes of random keys.

    >>> def checked(key):
    ...     return jnp.issubdtype(key.dtype, xlamini.dtypes.prng_key)
    >>> checked(random.key(0)), checked(random.PRNGKey(0))
    (True, False)
    """


class ExtendedDType:
    """A dtype whose elements are small arrays of another dtype. Subclasses are hashable.

    `physical_shape` and `physical_dtype` tell what one element is made of, `type` its class. Where `has_tangents`,
    tangents of elements are elements too, and `add` and `zero` are their sum and its neutral element.

    >>> dtype = random.key(0).dtype
    >>> isinstance(dtype, ExtendedDType), dtype.physical_shape, dtype.physical_dtype
    (True, (2,), dtype('uint32'))
    """

    name: str
    kind = "V"
    type: type[extended] = extended
    physical_shape: tuple[int, ...]
    physical_dtype: np.dtype
    has_tangents: bool = False

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two arrays of tangents."""
        raise TypeError(f"elements of {self} have no tangents")

    def zero(self) -> Any:
        """The tangent that changes no sum, as one element."""
        raise TypeError(f"elements of {self} have no tangents")

    def converts(self, dtype: Any) -> bool:
        """Whether `convert_element_type` takes elements to another dtype, and back; if so they are the same bits."""
        return False

    @property
    def itemsize(self) -> int:
        return int(np.prod(self.physical_shape)) * self.physical_dtype.itemsize

    def __repr__(self) -> str:
        return self.name
