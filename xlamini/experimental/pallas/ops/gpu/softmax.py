"""The softmax of rows: `softmax`."""
from __future__ import annotations

from typing import Any

from xlamini.core.errors import ShapeError
from xlamini.nn.kernels.softmax import softmax_of_rows
from xlamini.numpy.arguments import as_operand

__all__ = ["softmax"]


def __dir__() -> list[str]:
    return sorted(__all__)


def softmax(
    x: Any, *, axis: int = -1, num_warps: int = 4, interpret: bool = False, debug: bool = False
) -> Any:
    """`exp(x) / sum(exp(x))` over the last axis, of the shape and dtype of `x`; sums are in float32 or wider.

    `num_warps`, `interpret` and `debug` are accepted, and ignored. NotImplementedError for another axis, ShapeError for
    a number.

    >>> softmax(jnp.zeros((1, 2)))
    Array([[0.5, 0.5]], dtype=float32)
    """
    x = as_operand("softmax", x)
    if not x.ndim:
        raise ShapeError("softmax: x must have an axis, but is a number")
    if axis not in (-1, x.ndim - 1):
        raise NotImplementedError(f"softmax: axis must be the last one, got {axis}; move it with jnp.moveaxis")
    return x if not x.size else softmax_of_rows(None, x.reshape(-1, x.shape[-1])).reshape(x.shape)
