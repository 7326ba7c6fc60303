"""Overlapping segments of signals: framing, windows, transforms, and overlap-add."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapeError, aval_of, result_type
from xlamini.numpy.arguments import as_index, as_operand, as_whole
from xlamini.numpy.padding import pad
from xlamini.primitives import convert, reshape, slice_in_dim, sum_over, transpose
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.scipy.signal.window_shapes import window_of


class SignalSegments(NamedTuple):
    """The length of a segment, of its overlap with the next, and of its transform."""

    length: int
    overlap: int
    transform: int

    @property
    def step(self) -> int:
        return self.length - self.overlap


def checked(name: str, length: int, overlap: Any, transform: Any) -> SignalSegments:
    """Lengths with their defaults; ValueError where they do not fit."""
    transform = length if transform is None else as_index(name, "nfft", transform)
    overlap = length // 2 if overlap is None else as_whole(name, "noverlap", overlap)
    if not transform >= length:
        raise ValueError(f"{name}: nfft must be at least nperseg, but is {transform}, with nperseg {length}")
    if overlap >= length:
        raise ValueError(f"{name}: noverlap must be less than nperseg, but is {overlap}, with nperseg {length}")
    return SignalSegments(length, overlap, transform)


def window_and_length(name: str, window: Any, nperseg: Any, available: int) -> tuple[Any, int]:
    """The window as an array, and its length: `nperseg`, 256 by default, no more than `available`."""
    if nperseg is not None and as_whole(name, "nperseg", nperseg) < 1:
        raise ValueError(f"{name}: nperseg must be 1 or more, got {nperseg}")
    if not isinstance(window, str | tuple):
        return _given(name, window, nperseg, available)
    length = 256 if nperseg is None else int(nperseg)
    if not length <= available:
        warnings.warn(f"{name}: nperseg is {length}, but the signal has {available} samples; using these", stacklevel=4)
        length = available
    return window_of(name, window, length), length


def _given(name: str, window: Any, nperseg: Any, available: int) -> tuple[Any, int]:
    array = as_operand(name, window)
    if array.ndim != 1:
        raise ShapeError(f"{name}: window must be a name, a tuple with a name, or a vector, got rank {array.ndim}")
    length = array.shape[0]
    if not length <= available:
        raise ValueError(f"{name}: window has {length} samples, but the signal only {available}")
    if nperseg is not None and nperseg != length:
        raise ValueError(f"{name}: window has {length} samples, but nperseg is {nperseg}; leave nperseg out")
    return array, length


def complex_like(*arrays: Any) -> tuple[Any, Any]:
    """The real and the complex dtype for spectra of these arrays."""
    wide = result_type(*(aval_of(x).dtype for x in arrays), np.complex64)
    return np.zeros((), wide).real.dtype, wide


def cut(x: Any, segments: SignalSegments) -> Any:
    """(…, time) as (…, segment, time within it)."""
    *outer, size = aval_of(x).shape
    starts = np.arange(0, size - segments.length + 1, segments.step, dtype=np.int32)
    count = math.prod(outer)
    numbers = GatherDimensionNumbers((0, 2), (), (1,))
    rows = gather(
        reshape(x, (count, size)),
        convert(as_operand("gather", starts[:, None]), np.int32),
        numbers,
        (count, segments.length),
        indices_are_sorted=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    return reshape(rows, (*outer, len(starts), segments.length))


def overlapped(x: Any, step: int) -> Any:
    """(…, segment, time within it) added up where they overlap, each `step` after the one before: (…, time).

    A segment is `rounds` pieces of length `step`; shifting piece j by j segments, by writing rows of one length as
    rows of another, brings all that meet into one column.
    """
    *outer, count, length = aval_of(x).shape
    rounds = -(-length // step)
    none = [(0, 0)] * len(outer)
    x = reshape(pad(x, [*none, (0, 0), (0, rounds * step - length)]), (*outer, count, rounds, step))
    n = len(outer)
    by_piece = pad(transpose(x, (*range(n), n + 1, n, n + 2)), [*none, (0, 0), (0, rounds), (0, 0)])
    flat = reshape(by_piece, (*outer, rounds * (count + rounds), step))
    columns = count + rounds - 1
    shifted = reshape(slice_in_dim(flat, 0, rounds * columns, axis=n), (*outer, rounds, columns, step))
    whole = reshape(sum_over(shifted, (n,)), (*outer, columns * step))
    return slice_in_dim(whole, 0, (count - 1) * step + length, axis=n)
