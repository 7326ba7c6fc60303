"""The sharding of a reshaped array over a mesh.

Dimensions that a reshape joins, and those that it makes of one, form groups; in each the elements stay in their order.
Within a group the axes go to the dimensions that count most, as far as these can be split by them.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xlamini.core import Shape, ShapedArray
from xlamini.core.sharding.aval_sharding import Names
from xlamini.core.sharding.propagation import Splits

Group = tuple[Sequence[int], Sequence[int]]
"""Some dimensions of the operand, and those of the result that have the same elements."""


def splits_of_reshaped(x: ShapedArray, new_sizes: Shape) -> Splits:
    """The split of an array of type `x` after a reshape to another shape."""
    split, conflict = x.explicit_sharding, None
    if split is None:
        return Splits([None])
    entries: list[Names] = [()] * len(new_sizes)
    for before, after in _groups(x.shape, new_sizes):
        names = [name for d in before for name in split.entries[d]]
        for d in after:
            sizes = [split.mesh.shape[name] for name in names]
            count = _dividing(new_sizes[d], sizes)
            entries[d], names = tuple(names[:count]), names[count:]
            if math.prod(sizes[:count]) < new_sizes[d]:
                break
        if names:
            conflict = _conflict(x, new_sizes, tuple(names))
    return Splits([split.with_entries(entries)], conflict)


def _groups(before: Shape, after: Shape) -> Iterator[Group]:
    """The smallest groups of neighbouring dimensions that hold the same elements; dimensions of size 1 are in none."""
    left, right = ([d for d, n in enumerate(shape) if n != 1] for shape in (before, after))
    while left and right:
        i = j = 1
        while (a := math.prod(before[d] for d in left[:i])) != (b := math.prod(after[d] for d in right[:j])):
            i, j = (i + 1, j) if a < b else (i, j + 1)
        yield left[:i], right[:j]
        left, right = left[i:], right[j:]


def _dividing(size: int, axes: Sequence[int]) -> int:
    """The number of leading axes whose product divides a size."""
    counts = [n for n in range(len(axes) + 1) if size % math.prod(axes[:n]) == 0]
    return max(counts)


def _conflict(x: ShapedArray, new_sizes: Shape, names: Names) -> str:
    return (
        f"reshape of {x.str_short()} to shape {new_sizes}: no dimension of the result can be split along "
        f"{' and '.join(map(repr, names))} as the operand is; say with out_sharding=P(...) how the result is to be "
        "split, or first xlamini.reshard the operand to a spec without it"
    )
