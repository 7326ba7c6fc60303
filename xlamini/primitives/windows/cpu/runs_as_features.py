"""Convolution of few features by a wide kernel as one of many features: places in a row become features.

Filters of signals and images have one feature, of which XLA adds one product at a time. Here a run of r results in a
row are the features of one place. They read a run of r * stride elements and those after it, by weights that are the
same on each diagonal of a matrix (Toeplitz), so that the kernel has a matrix for each run of its taps. Up to twice as
many products are computed, in matrix products.

Some of those are by zeros, which would be NaN for an infinity or NaN near a window. So operands must be finite.

Milliseconds of the processor's time, XLA's convolution / this: 1,025 taps of 2**20 elements 197 / 18; 4,096 of 4,096,
full 75 / 0.6; 31×31 of 512×512 249 / 8.5; depthwise, of 2×96×32×32, 243 / 102.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapedArray, aval_of, literal
from xlamini.primitives.pad import pad
from xlamini.primitives.shape import broadcast_in_dim, reshape, transpose
from xlamini.primitives.slice import slice_in_dim
from xlamini.primitives.windows.conv_numbers import OF_SPACE, ConvDimensionNumbers, result_space
from xlamini.primitives.windows.cpu.numbers import is_plain

_FEATURES, _LEAST_FEATURES = 32, 8
"""How many features of a group a run gives: matrices of about this size are multiplied fastest."""
_LONG, _MANY = 48, 128
"""With shorter windows and fewer products a sum of shifted products is faster (`multiply_adds.py`)."""
_MOST_WEIGHTS = 2**22


def fits(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> bool:
    """Groups of few features, and a dimension without holes in which the window is long and the result longer."""
    outputs, given, *window = (rhs.shape[d] for d in params["dimension_numbers"].rhs_spec)
    if not is_plain(lhs, **params) or params["batch_group_count"] > 1:
        return False
    along, run = _widest(window), _run(outputs // params["feature_group_count"], given)
    whole = params["lhs_dilation"][along] == params["rhs_dilation"][along] == 1
    long = window[along] >= _LONG or (window[along] >= run // 4 and given * math.prod(window) > _MANY)
    results = result_space(lhs, rhs, **params)[along]
    return run >= _LEAST_FEATURES and whole and long and results >= run and rhs.size * run <= _MOST_WEIGHTS


def runs_as_features(bind: Callable[..., Any], lhs: Any, rhs: Any, **params: Any) -> Any:
    """The convolution. Its arrays have features last and, before them, the dimension of the runs."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    outputs, given, *window = (aval_of(rhs).shape[d] for d in rhs_spec)
    along, rank, groups = _widest(window), len(window), params["feature_group_count"]
    space = [*(2 + d for d in range(rank) if d != along), 2 + along]
    results = result_space(aval_of(lhs), aval_of(rhs), **params)[along]
    run, stride = _run(outputs // groups, given), params["window_strides"][along]

    kernel = transpose(rhs, [rhs_spec[d] for d in (*space, 1, 0)])
    kernel = _bands(reshape(kernel, (*aval_of(kernel).shape[:-1], groups, outputs // groups)), run, stride)
    count = math.ceil(results / run)
    before, read = params["padding"][along][0], count + aval_of(kernel).shape[-3] - 1
    x = _runs(transpose(lhs, [lhs_spec[d] for d in (0, *space, 1)]), before, read, run * stride, groups)
    of_space = {name: (*(params[name][d - 2] for d in space[:-1]), one) for name, one in OF_SPACE.items()}
    last = (0, rank + 1, *range(1, rank + 1))
    numbers = ConvDimensionNumbers(last, (rank + 1, rank, *range(rank)), last)
    out = bind(x, kernel, **params | of_space | {"dimension_numbers": numbers})

    outer = aval_of(out).shape[:-1]
    apart = reshape(out, (*outer, groups, run, outputs // groups))
    whole = reshape(_exchanged(apart, rank + 1), (*outer[:-1], count * run, outputs))
    sliced = slice_in_dim(whole, 0, results, axis=rank)
    return transpose(sliced, np.argsort([out_spec[d] for d in (0, *space, 1)]).tolist())


# --- helpers


def _widest(window: Sequence[int]) -> int:
    return max(range(len(window)), key=lambda d: window[d])


def _run(outputs: int, given: int) -> int:
    return _FEATURES // max(outputs, given)


def _exchanged(x: Any, dim: int) -> Any:
    """The array with a dimension and the one after it exchanged."""
    return transpose(x, (*range(dim), dim + 1, dim, *range(dim + 2, aval_of(x).ndim)))


def _runs(x: Any, before: int, count: int, size: int, groups: int) -> Any:
    """An array (N, space…, G * C) with zeros before its last dimension of space, as runs (…, count, G * size * C)."""
    *outer, length, features = aval_of(x).shape
    around = [*((0, 0, 0) for _ in outer), (before, count * size - before - length, 0), (0, 0, 0)]
    padded = pad(x, literal(0, aval_of(x).dtype), around)
    apart = reshape(padded, (*outer, count, size, groups, features // groups))
    return reshape(_exchanged(apart, len(outer) + 1), (*outer, count, size * features))


def _bands(kernel: Any, run: int, stride: int) -> Any:
    """A kernel (space…, taps, C, G, O) as (space…, runs, run * stride * C, G * run * O), for the results j of a run.

    Tap t is in row t + j * stride. Rows of `stride` elements too many, put one after the other and then cut without
    them, are shifted by so many each.
    """
    *space, taps, given, groups, outputs = aval_of(kernel).shape
    rank, size = len(space), run * stride
    runs = math.ceil((taps + (run - 1) * stride) / size)
    outer, features = (*space, given, groups, outputs), range(rank + 1, rank + 4)
    taps_last = transpose(kernel, (*range(rank), *features, rank))
    around = [*((0, 0, 0) for _ in outer), (0, runs * size + stride - taps, 0)]
    row = pad(taps_last, literal(0, aval_of(kernel).dtype), around)
    rows = broadcast_in_dim(row, (*outer, run, runs * size + stride), (*range(rank + 3), rank + 4))
    joint = reshape(rows, (*outer, run * (runs * size + stride)))
    shifted = reshape(slice_in_dim(joint, 0, run * runs * size, axis=rank + 3), (*outer, run, runs, size))
    ordered = transpose(shifted, (*range(rank), rank + 4, rank + 5, rank, rank + 1, rank + 3, rank + 2))
    return reshape(ordered, (*space, runs, size * given, groups * run * outputs))
