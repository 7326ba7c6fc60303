"""Taking elements at static indices: by slices and their reverses, which are faster than a gather.

The order is parted into runs: stretches that count up, count down, or stay. Rolling and padding by reflection have a
few of them.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from xlamini.primitives import broadcast_in_dim, rev, slice_in_dim
from xlamini.primitives.shape.concatenate import concatenate

Run = tuple[int, int, int]


def take_runs(x: Any, indices: np.ndarray, axis: int) -> Any:
    """The elements of `x` at `indices` along `axis`."""
    pieces = [_piece(x, run, axis) for run in runs(indices)]
    if not pieces:
        return slice_in_dim(x, 0, 0, axis=axis)
    return pieces[0] if len(pieces) == 1 else concatenate(pieces, axis)


def runs(indices: np.ndarray) -> Iterator[Run]:
    """The runs of an order: where each starts, how long it is, and its step, which is 1, -1 or 0.

    >>> list(runs(np.array([2, 1, 0, 1, 2, 2])))
    [(2, 3, -1), (1, 2, 1), (2, 1, 1)]
    """
    steps = np.diff(indices)
    changes = np.flatnonzero(np.diff(steps)) + 1
    ends = np.append(changes, len(steps))
    start = 0
    while start < len(indices):
        step, length = 1, 1
        if start < len(steps) and abs(steps[start]) <= 1:
            step = int(steps[start])
            length = int(ends[np.searchsorted(changes, start, side="right")]) - start + 1
        yield int(indices[start]), length, step
        start += length


def _piece(x: Any, run: Run, axis: int) -> Any:
    start, length, step = run
    if step == 1:
        return slice_in_dim(x, start, start + length, axis=axis)
    if step == -1:
        return rev(slice_in_dim(x, start - length + 1, start + 1, axis=axis), (axis,))
    one = slice_in_dim(x, start, start + 1, axis=axis)
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    return broadcast_in_dim(one, shape, range(len(shape)))
