"""Names for annotations: what functions of arrays take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from xlamini.runtime.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""An array, or a number; not a list."""

DTypeLike = str | type[Any] | np.dtype | SupportsDType
"""What names a dtype: `"float32"`, `np.float32`, `jnp.float32`, `float`, an np.dtype, or something that has one."""

ShapeLike = int | Sequence[int]
"""A shape, or the length of the only axis."""

AxisLike = int | Sequence[int] | None
"""One axis, several, or None for all."""
