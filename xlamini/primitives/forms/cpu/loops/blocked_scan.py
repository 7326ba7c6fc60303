"""Running results for the CPU, in blocks of an axis: the results of whole blocks first, then those within each.

The latter come from a loop over single steps, of which each serves some blocks at once. Errors grow with the logarithm
of the length, as in XLA's tree of windows. Arrays have the shape (outer, n, inner) here, and n is the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import ShapedArray, aval_of, literal
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import div, rem
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.loops.scalar_loop import place, scalar_loop
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_p
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import reshape
from xlamini.primitives.shape.slice import slice_in_dim

BLOCK, STEP = 64, 64
"""Elements in a block, and bytes of elements that a step is for, about: with more, XLA may make no native loop."""


class CumulativeOperation(NamedTuple):
    """A cumulative operation: `combine(x, y)`, its neutral number, and its reduction of a whole array along axis 1.

    `few` gives the cumulative results along axis 1 of few elements, in the same direction. `within_first` combines the
    elements of a block with each other before the carry is added, which makes the rounding errors of sums smaller.
    """

    combine: Callable[[Any, Any], Any]
    neutral: Any
    total: Callable[[Any], Any]
    few: Callable[[Any], Any]
    reverse: bool
    within_first: bool


def blocked_scan(scan: CumulativeOperation, x: Any) -> Any:
    """The running results along the axis in the middle."""
    outer, n, inner = aval_of(x).shape
    blocks, size = blocks_of(outer, n, lanes_of(aval_of(x)))
    missing = blocks * size - n
    first = missing if scan.reverse else 0
    x = _padded(scan, x, missing, 0)
    x = reshape(x, (outer * blocks, size, inner))
    out = _within_blocks(scan, x, None if blocks == 1 else _carries(scan, x, outer))
    return slice_in_dim(reshape(out, (outer, blocks * size, inner)), first, first + n, axis=1)


def lanes_of(aval: ShapedArray) -> int:
    """The number of blocks (…, inner) that a step handles: about STEP bytes of them, a power of two."""
    return 1 << max(1, min(16, STEP // (aval.dtype.itemsize * aval.shape[-1]))).bit_length() - 1


def blocks_of(outer: int, n: int, lanes: int) -> tuple[int, int]:
    """Number and size of the blocks of an axis: of about BLOCK elements, none to spare and all in groups, if may be."""
    if n <= BLOCK:
        return 1, n
    fitting = [size for size in range(BLOCK // 2, BLOCK * 5 // 4 + 1) if not n % size]
    if fitting:
        size = min(fitting, key=lambda size: (outer * n // size % lanes > 0, abs(size - BLOCK)))
        return n // size, size
    blocks = -(-n // BLOCK)
    return blocks + (-blocks % lanes if blocks > lanes**2 else 0), BLOCK


def _carries(scan: CumulativeOperation, x: Any, outer: int) -> Any:
    """The carry into each block, from all blocks before it: (outer * blocks, 1, inner)."""
    all_blocks, _, inner = aval_of(x).shape
    totals = reshape(scan.total(x), (outer, all_blocks // outer, inner))
    running = scan.few(totals) if all_blocks // outer <= FEW else blocked_scan(scan, totals)
    return reshape(_padded(scan, running, -1, 1), (all_blocks, 1, inner))


FEW = 2048
"""So many blocks are few."""


def _within_blocks(scan: CumulativeOperation, x: Any, before: Any) -> Any:
    """The cumulative results in blocks (blocks, size, inner), each combined with its block's carry."""
    blocks, size, inner = aval_of(x).shape
    lanes = min(blocks, lanes_of(aval_of(x)))
    spare = -blocks % lanes
    x, *rest = [_with_blocks(scan, y, spare) for y in (x, before) if y is not None]
    part, zero, first = (lanes, 1, inner), place(0), place(size - 1 if scan.reverse else 0)

    def step(i: Any, last: Any, x: Any) -> list[Any]:
        at = place(size - 1) - rem(i, place(size)) if scan.reverse else rem(i, place(size))
        block = div(i, place(size)) * lanes
        element = dynamic_slice_p.bind(x, block, at, zero, slice_sizes=part)
        earlier = [dynamic_slice_p.bind(y, block, zero, zero, slice_sizes=part) for y in rest]
        last, found = _step(scan, eq(at, first), last, element, *earlier)
        return [last, dynamic_update_slice_p.bind(x, found, block, at, zero)]

    start = zeros(aval_of(x).update(shape=part))
    _, out = scalar_loop(step, (blocks + spare) // lanes * size, start, x)
    return slice_in_dim(out, 0, blocks)


def _step(scan: CumulativeOperation, begins: Any, last: Any, element: Any, earlier: Any = None) -> tuple[Any, Any]:
    """One step of the scan: the carry for the next step, and the result; `last` is the previous step's carry."""
    if earlier is not None and not scan.within_first:
        out = scan.combine(where(begins, earlier, last), element)
        return out, out
    out = where(begins, element, scan.combine(last, element))
    return out, out if earlier is None else scan.combine(earlier, out)


def _padded(scan: CumulativeOperation, x: Any, after: int, before: int) -> Any:
    """Neutral elements put after and before those of the axis (or some cut off there), in the direction of the scan."""
    around = (after, before, 0) if scan.reverse else (before, after, 0)
    return _filled(scan, x, [(0, 0, 0), around, (0, 0, 0)])


def _with_blocks(scan: CumulativeOperation, x: Any, more: int) -> Any:
    return _filled(scan, x, [(0, more, 0), (0, 0, 0), (0, 0, 0)])


def _filled(scan: CumulativeOperation, x: Any, config: Sequence[tuple[int, int, int]]) -> Any:
    return pad(x, literal(scan.neutral, aval_of(x).dtype), config) if any(map(any, config)) else x
