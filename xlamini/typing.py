"""Types for annotations: what array functions accept."""

from xlamini.runtime.typing import ArrayLike as ArrayLike
from xlamini.runtime.typing import AxisLike as AxisLike
from xlamini.runtime.typing import DTypeLike as DTypeLike
from xlamini.runtime.typing import ShapeLike as ShapeLike
from xlamini.runtime.typing import SupportsDType as SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
