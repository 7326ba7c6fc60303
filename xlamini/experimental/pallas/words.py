"""Functions that kernels use in the place of those of `numpy`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.numpy import broadcast_to as _broadcast_to
from xlamini.runtime import Array


def broadcast_to(a: Any, shape: Sequence[int]) -> Array:
    """`numpy.broadcast_to`: the array in another shape, by NumPy's rules.

    >>> broadcast_to(1.0, (2,))
    Array([1., 1.], dtype=float32, weak_type=True)
    """
    return _broadcast_to(a, shape)


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Array:
    """`1 / x`. With `approx` a target may round it more coarsely; the CPU never does, and has the full range.

    >>> reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return 1 / x
