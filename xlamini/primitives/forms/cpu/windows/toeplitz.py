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
from collections.abc import Callable
from typing import Any

from xlamini.core import ShapedArray, aval_of, literal
from xlamini.primitives.forms.cpu.windows.runs import convolved, longest, moved, moved_back, pays, without_runs
from xlamini.primitives.forms.cpu.windows.sum_dtype import is_plain
from xlamini.primitives.forms.cpu.windows.tiles import cut
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast_in_dim, moveaxis, reshape, transpose
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.primitives.windows.conv_numbers import result_space

_FEATURES, _LEAST_FEATURES = 32, 8
"""How many features of a group a run gives: matrices of about this size are multiplied fastest."""
_LONG, _MANY = 48, 128
"""With shorter windows and fewer products a sum of shifted products is faster (`direct.py`)."""
_MOST_WEIGHTS = 2**22


def fits(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> bool:
    """Groups of few features, and a dimension without holes in which the window is long and the result longer."""
    outputs, given, *window = (rhs.shape[d] for d in params["dimension_numbers"].rhs_spec)
    if not is_plain(lhs, **params) or params["batch_group_count"] > 1 or not pays(lhs, rhs, **params):
        return False
    along, run = longest(window), _run(outputs // params["feature_group_count"], given)
    whole = params["lhs_dilation"][along] == params["rhs_dilation"][along] == 1
    long = window[along] >= _LONG or (window[along] >= run // 4 and given * math.prod(window) > _MANY)
    results = result_space(lhs, rhs, **params)[along]
    return run >= _LEAST_FEATURES and whole and long and results >= run and rhs.size * run <= _MOST_WEIGHTS


def toeplitz(bind: Callable[..., Any], lhs: Any, rhs: Any, **params: Any) -> Any:
    """The convolution: as many runs are read as there are of results, and those of the kernel but one."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    outputs, given, *window = (aval_of(rhs).shape[d] for d in rhs_spec)
    along, outer, groups = longest(window), without_runs(window), params["feature_group_count"]
    run, stride = _run(outputs // groups, given), params["window_strides"][along]
    results = result_space(aval_of(lhs), aval_of(rhs), **params)[along]
    space, count = (*(2 + d for d in outer), 2 + along), math.ceil(results / run)

    kernel = _bands(_grouped(moved(rhs, rhs_spec, (*space, 1, 0)), groups), run, stride)
    read = count + aval_of(kernel).shape[-3] - 1
    x = _runs(moved(lhs, lhs_spec, (0, *space, 1)), params["padding"][along][0], read, run * stride, groups)
    out = convolved(bind, x, kernel, outer, params)
    joint = _joint(reshape(out, (*aval_of(out).shape[:-1], groups, run, outputs // groups)))
    return moved_back(slice_in_dim(joint, 0, results, axis=len(window)), out_spec, (0, *space, 1))


# --- helpers


def _run(outputs: int, given: int) -> int:
    return _FEATURES // max(outputs, given)


def _grouped(x: Any, groups: int) -> Any:
    """The last dimension as two: groups, and features of one."""
    *outer, features = aval_of(x).shape
    return reshape(x, (*outer, groups, features // groups))


def _runs(x: Any, before: int, count: int, size: int, groups: int) -> Any:
    """An array (N, space…, G * C) with zeros before its last dimension of space, as runs (…, count, G * size * C)."""
    *outer, _, features = aval_of(x).shape
    along = len(outer)
    apart = _grouped(cut(x, (0, along + 1, along), (count,), (size,), (size,), (before,)).array, groups)
    return reshape(moveaxis(apart, along + 1, along + 2), (*outer, count, size * features))


def _joint(out: Any) -> Any:
    """Results (N, space…, count, G, run, O) as (N, space…, count * run, G * O)."""
    *outer, count, groups, run, outputs = aval_of(out).shape
    return reshape(moveaxis(out, len(outer) + 1, len(outer) + 2), (*outer, count * run, groups * outputs))


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
