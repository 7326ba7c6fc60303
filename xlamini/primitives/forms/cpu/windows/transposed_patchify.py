"""Transposed convolution by a kernel no larger than its stride, as a matrix product: results are tiles side by side.

So U-Nets enlarge images, and so is the input's gradient of `patchify.py`. As a convolution the operand is dilated,
and most products are with its holes. Here each element of the operand gives a tile of the result.

Milliseconds, XLA's convolution / this: the input's gradient of 16×16 patches of 8×3×224×224, to 768 features 190 / 10;
of 4×4 patches, to 96 features 4.1 / 1.4; of 2×2 windows of 8×96×56×56, to 192 features 7.1 / 5.6.
"""

from __future__ import annotations

import math
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of
from xlamini.primitives.base.precision import swap
from xlamini.primitives.forms.cpu.windows.sum_dtype import is_one_plain_group
from xlamini.primitives.forms.cpu.windows.tiles import Tiles, joined
from xlamini.primitives.products.dot_general import dot_general
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape, rev, transpose
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, space_of
from xlamini.primitives.windows.geometry import Pads, window_counts


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: Shape,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    **params: Any,
) -> bool:
    """One group, an operand dilated by at least the kernel's size, and nothing else."""
    window = space_of(rhs, dimension_numbers.rhs_spec)
    apart = all(n <= hole for n, hole in zip(window, lhs_dilation, strict=True)) and any(d > 1 for d in lhs_dilation)
    unmoved = all(d == 1 for d in (*window_strides, *rhs_dilation))
    return apart and unmoved and is_one_plain_group(lhs, **params)


def transposed_patchify(
    lhs: Any,
    rhs: Any,
    *,
    padding: Pads,
    lhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    precision: Any,
    **_: Any,
) -> Any:
    """The convolution. Element p of the operand gives the places from `p * dilation + low - (size - 1)` on."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    sizes, window = space_of(aval_of(lhs), lhs_spec), space_of(aval_of(rhs), rhs_spec)
    ones = (1,) * len(window)
    whole = window_counts(sizes, window, ones, padding, lhs_dilation, ones)
    x, kernel = transpose(lhs, lhs_spec), transpose(rev(rhs, rhs_spec[2:]), rhs_spec)
    features_last = lhs_spec[1] == len(lhs_spec) - 1 or math.prod(window) * aval_of(kernel).shape[0] > math.prod(sizes)
    tiles = (_features_last if features_last else _features_second)(x, kernel, precision)
    lows = [n - 1 - low for n, (low, _) in zip(window, padding, strict=True)]
    return joined(tiles, out_spec, lhs_dilation, whole, lows)


# --- helpers: of an operand (N, C, space…) and a kernel (O, C, space…)


def _features_second(x: Any, kernel: Any, precision: Any) -> Tiles:
    (count, features, *space), (outputs, _, *window) = aval_of(x).shape, aval_of(kernel).shape
    rank, places = len(space), math.prod(space)
    taps = outputs * math.prod(window)
    matrix = reshape(transpose(kernel, (0, *range(2, 2 + rank), 1)), (taps, features))
    kernels = broadcast_in_dim(matrix, (count, taps, features), (1, 2))
    x = reshape(x, (count, features, places))
    product = dot_general(kernels, x, (((2,), (1,)), ((0,), (0,))), swap(precision))
    apart = reshape(product, (count, outputs, *window, *space))
    return Tiles(apart, 0, 1, tuple(range(2 + rank, 2 + 2 * rank)), tuple(range(2, 2 + rank)))


def _features_last(x: Any, kernel: Any, precision: Any) -> Tiles:
    (count, features, *space), (outputs, _, *window) = aval_of(x).shape, aval_of(kernel).shape
    rank = len(space)
    matrix = reshape(transpose(kernel, (1, *range(2, 2 + rank), 0)), (features, outputs * math.prod(window)))
    x = reshape(transpose(x, (0, *range(2, 2 + rank), 1)), (count * math.prod(space), features))
    product = dot_general(x, matrix, (((1,), (0,)), ((), ())), precision)
    apart = reshape(product, (count, *space, *window, outputs))
    return Tiles(apart, 0, 1 + 2 * rank, tuple(range(1, 1 + rank)), tuple(range(1 + rank, 1 + 2 * rank)))
