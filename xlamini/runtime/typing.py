"""Names for annotations: what functions of arrays take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from xlamini.runtime.arrays.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""An array, or a number; not a list.

>>> def double(x: ArrayLike) -> Array:
...     return xlamini.numpy.multiply(x, 2)
>>> double(np.float32(1.5)), isinstance(1.5, ArrayLike), isinstance([1.5], ArrayLike)
(Array(3., dtype=float32), True, False)
"""

DTypeLike = str | type[Any] | np.dtype | SupportsDType
"""What names a dtype: `"float32"`, `np.float32`, `float`, an np.dtype, or something that has one, but no array.

>>> def empty(dtype: DTypeLike) -> Array:
...     return xlamini.numpy.zeros((0,), dtype)
>>> [empty(d).dtype.name for d in ("bfloat16", np.int8, float, xlamini.ShapeDtypeStruct((), np.int32))]
['bfloat16', 'int8', 'float32', 'int32']
"""

ShapeLike = int | Sequence[int]
"""A shape, or the length of the only axis."""

AxisLike = int | Sequence[int] | None
"""One axis, several, or None for all."""
