"""softmax and its logarithm, over all axes unless told otherwise."""
from __future__ import annotations

from xlamini.nn.softmax import log_softmax as nn_log_softmax, softmax as nn_softmax
from xlamini.runtime import Array
from xlamini.typing import ArrayLike, AxisLike


def softmax(x: ArrayLike, /, *, axis: AxisLike = None) -> Array:
    """`exp(x)` over its sum along an axis, several, or all: positive numbers that sum to 1.

    >>> softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    return nn_softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: AxisLike = None) -> Array:
    """The logarithm of `softmax`, without its underflow.

    >>> log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return nn_log_softmax(x, axis)
