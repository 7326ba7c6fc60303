"""A two-level search for extrema along an axis: first for the block that has the extremum, then within that block.

The first block whose extremum is that of all has its first occurrence. So each element is read once, by a plain
reduction, which the CPU vectorises, and a second time only in one block. Arrays have the shape (outer, n, inner) here,
and n is the axis.
"""

from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of, literal
from xlamini.primitives.forms.cpu.loops.integer_reduction import reduced_by_lanes
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.gather import gather_p
from xlamini.primitives.indexing.gather_numbers import GatherDimensionNumbers, GatherScatterMode
from xlamini.primitives.reductions.ordering import keys
from xlamini.primitives.reductions.reductions import Reduction, reduce_max_p
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import reshape
from xlamini.primitives.shape.slice import slice_in_dim

LANES = 64
"""Elements next to each other that are reduced side by side, at most."""


def block_size(n: int) -> int:
    """About the square root of n; one that divides it, if there is one that also has at least 8 lanes."""
    root = math.isqrt(n)
    fitting = [size for size in range(root // 32 * 8 + 8, 4 * root, 8) if not n % size]
    fitting.sort(key=lambda size: abs(math.log(size / root)))
    return fitting[0] if fitting else 1 << root.bit_length() - 1


def block_extrema(extremum: Reduction, x: Any, size: int) -> Any:
    """The key (see ordering.py) of the extremum of each block, in place of n.

    If the blocks don't divide the axis, the last one is of its last elements.
    """
    x = keys(x, nan_is_largest=extremum is reduce_max_p)
    outer, n, inner = aval_of(x).shape
    whole = n // size
    most = max(1, min(LANES // inner, size // 4))
    blocks = reshape(slice_in_dim(x, 0, whole * size, axis=1), (outer, whole, size, inner))
    found = reduced_by_lanes(extremum, blocks, 2, most)
    if whole * size == n:
        return found
    rest = extremum.bind(slice_in_dim(x, n - size, n, axis=1), axes=(1,))
    return concatenate([found, reshape(rest, (outer, 1, inner))], 1)


def windows(x: Any, start: Any, size: int) -> Any:
    """A window of each line along the axis, from its start on; start is (outer, inner), the axis comes last."""
    outer, _, inner = aval_of(x).shape
    if outer * inner == 1:
        zero = literal(0, aval_of(start).dtype)
        found = dynamic_slice_p.bind(x, zero, reshape(start, ()), zero, slice_sizes=(1, size, 1))
        return reshape(found, (1, 1, size))
    return gather_p.bind(
        x,
        reshape(start, (outer, inner, 1)),
        dimension_numbers=GatherDimensionNumbers((2,), (), (1,), (0, 2), (0, 1)),
        slice_sizes=(1, size, 1),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )
