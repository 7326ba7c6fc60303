"""Types for annotations: what array functions accept."""

from xlamini.runtime.typing import (
    ArrayLike as ArrayLike,
    AxisLike as AxisLike,
    DTypeLike as DTypeLike,
    ShapeLike as ShapeLike,
    SupportsDType as SupportsDType,
)

__all__ = ["ArrayLike", "DTypeLike"]
