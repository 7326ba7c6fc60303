"""A reduction that the CPU vectorises for integers too."""

from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.placement.optimization_barrier import optimization_barrier_p
from xlamini.primitives.shape.shape import reshape


def reduced_by_lanes(reduction: Any, x: Any, axis: int, most: int) -> Any:
    """A `reduction` over one axis in two steps: into at most so many adjacent lanes first, then over the lanes.

    The barrier keeps XLA from making one reduction of both, which it would not vectorise.
    """
    shape = aval_of(x).shape
    lanes = next(k for k in range(most, 0, -1) if not shape[axis] % k)
    sides = reshape(x, (*shape[:axis], shape[axis] // lanes, lanes, *shape[axis + 1 :]))
    (found,) = optimization_barrier_p.bind(reduction.bind(sides, axes=(axis,)))
    return reduction.bind(found, axes=(axis,))
