"""`jax._src.literals`: typed constants, which are plain scalars here; libraries ask whether a value is one of these."""

from typing import Any

import numpy as np

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.avals import ShapedArray

__getattr__ = fall_through(__name__)


class TypedNdArray:
    """A NumPy array with a weak type, of which there are none: constants are scalars or arrays."""

    def __init__(self, *args: object, **kwargs: object):
        raise TypeError("TypedNdArray: there are none in xlamini; pass a NumPy array, a number or an Array")


class _Typed:
    """A Python number with a dtype, as a weakly typed constant has it."""

    dtype: np.dtype
    shape, ndim = (), 0

    def __new__(cls, value: Any, dtype: Any) -> Any:
        made: Any = super().__new__(cls, value)  # pyright: ignore[reportCallIssue]
        made.dtype = np.dtype(dtype)
        return made

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray((), self.dtype, True)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return type(self).__mro__[2](self), self.dtype


class TypedInt(_Typed, int):
    """An int with a dtype."""


class TypedFloat(_Typed, float):
    """A float with a dtype."""


class TypedComplex(_Typed, complex):
    """A complex number with a dtype."""
