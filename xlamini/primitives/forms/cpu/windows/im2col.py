"""Convolution by a long window that leaves few results, with runs of the window as features that are contracted.

So is the kernel's gradient of a filter, whose window is the cotangent, with holes if the filter has a stride. Result t
sums x[i * hole + t] * y[i] over all i. With i = q * r + b, a matrix product over q gives the sum for each b and each
a = b * hole + t, and a result is the sum of those on a diagonal. Up to twice as many products are computed.

Some are by zeros, which would be NaN for an infinity or NaN near a window. So operands must be finite.

Milliseconds of the processor's time, XLA's convolution / this, of the gradient of a kernel: 1,025 taps of 2**20
elements 158 / 88, in float64 466 / 160; 31×31 of 512×512 513 / 50, in float64 91 / 104.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xlamini.core import ShapedArray, aval_of, literal
from xlamini.primitives.forms.cpu.windows.runs import convolved, longest, moved, moved_back, pays, without_runs
from xlamini.primitives.forms.cpu.windows.sum_dtype import is_one_plain_group
from xlamini.primitives.forms.cpu.windows.tiles import cut
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import moveaxis, reshape, sum_over, transpose
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.primitives.windows.conv_numbers import result_space, space_of

_MOST_RESULTS = 2048
_RUNS = 16, 128
"""The least and the greatest length of a run."""


def fits(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> bool:
    """One group of few images and outputs, and a plain dimension in which the window is longer than the result.

    In float64 there must be no other dimension.
    """
    lhs_spec, rhs_spec, _ = params["dimension_numbers"]
    few = max(lhs.shape[lhs_spec[0]], rhs.shape[rhs_spec[0]]) <= 4
    if not is_one_plain_group(lhs, **params) or not few or not pays(lhs, rhs, **params):
        return False
    window = space_of(rhs, rhs_spec)
    along = longest(window)
    plain = params["window_strides"][along] == params["lhs_dilation"][along] == 1
    plain = plain and (len(window) == 1 or lhs.dtype.name == "float32")
    results = result_space(lhs, rhs, **params)[along]
    return plain and 4 * _RUNS[0] <= window[along] > results <= _MOST_RESULTS


def im2col(bind: Callable[..., Any], lhs: Any, rhs: Any, **params: Any) -> Any:
    """The convolution; in the one that is computed, the dimension of the runs has size 1."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    window = space_of(aval_of(rhs), rhs_spec)
    along, outer = longest(window), without_runs(window)
    results = result_space(aval_of(lhs), aval_of(rhs), **params)[along]
    run, hole = min(max(results, _RUNS[0]), _RUNS[1]), params["rhs_dilation"][along]
    count, reach = math.ceil(window[along] / run), (run - 1) * hole + results

    order = (0, *(2 + d for d in outer), 1, 2 + along)
    x = _runs(moved(lhs, lhs_spec, order), params["padding"][along][0], count, run * hole, reach)
    y = _runs(moved(rhs, rhs_spec, order), 0, count, run, run)
    out = convolved(bind, _with_features(x), moveaxis(_with_features(y), 0, len(window) + 1), outer, params)
    images, outputs = aval_of(lhs).shape[lhs_spec[0]], aval_of(rhs).shape[rhs_spec[0]]
    apart = reshape(out, (images, reach, *aval_of(out).shape[1:-2], outputs, run))
    return moved_back(_sums_of_diagonals(apart, hole, results), out_spec, order)


# --- helpers


def _runs(x: Any, before: int, count: int, step: int, size: int) -> Any:
    """Of an array (…, places), after `before` zeros, `count` runs of `size` places from every `step`-th on."""
    pieces, rank = math.ceil(size / step), aval_of(x).ndim - 1
    steps = cut(x, (0, rank - 1, rank), (count + pieces - 1,), (step,), (step,), (before,)).array
    joint = concatenate([slice_in_dim(steps, i, i + count, axis=rank) for i in range(pieces)], rank + 1)
    return slice_in_dim(joint, 0, size, axis=rank + 1)


def _with_features(runs: Any) -> Any:
    """Runs (N, space…, C, count, size) as images of their own, with features last: (N * size, space…, 1, C * count)."""
    first, *space, given, count, size = aval_of(runs).shape
    rank = len(space)
    return reshape(moveaxis(runs, rank + 3, 1), (first * size, *space, 1, given * count))


def _sums_of_diagonals(x: Any, hole: int, results: int) -> Any:
    """Of (N, reach, space…, O, run) the sums of the (t + b * hole, b), for each result t: (N, space…, O, results)."""
    images, reach, *inner, run = aval_of(x).shape
    rank = len(inner)
    rows = reshape(transpose(x, (0, *range(2, rank + 3), 1)), (images, *inner, run * reach))
    around = [*((0, 0, 0) for _ in range(rank + 1)), (0, run * hole, 0)]
    longer = reshape(pad(rows, literal(0, aval_of(x).dtype), around), (images, *inner, run, reach + hole))
    return sum_over(slice_in_dim(longer, 0, results, axis=rank + 2), [rank + 1])
