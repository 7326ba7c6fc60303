"""Convolution by a kernel of one element, and its kernel's gradient, as a matrix product in the order of dimensions given.

Such a convolution is a product of the kernel with the features at each place. XLA's own takes it to be one of images and
wants features last, so it copies operands and results that are (N, C, space…); a product of batches need not.
The kernel's gradient, for which an image is the kernel, is a product too, summed over the batch.

Milliseconds, XLA's convolution / this / ONNX Runtime: 1×1 of 8×64×56×56 to 256 features 11 / 4.0 / 3.8; its kernel's
gradient 34 / 4.6 / no such operator.
"""

from __future__ import annotations

import math
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of
from xlamini.primitives.dot_general import dot_general
from xlamini.primitives.shape import broadcast_in_dim, reshape, sum_over, transpose
from xlamini.primitives.slice import slice
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, placed
from xlamini.primitives.windows.cpu.numbers import is_plain
from xlamini.primitives.windows.geometry import Pads, dilated


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    padding: Pads,
    lhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> bool:
    """One group, no padding, one element of the kernel, and (N, C, space…)."""
    in_order = all(spec == tuple(range(lhs.ndim)) for spec in (dimension_numbers.lhs_spec, dimension_numbers.out_spec))
    one_group = feature_group_count == batch_group_count == 1
    nothing_around = not any(map(any, padding)) and all(d == 1 for d in lhs_dilation)
    elements = math.prod(rhs.shape[d] for d in dimension_numbers.rhs_spec[2:])
    return in_order and one_group and nothing_around and elements == 1 and lhs.ndim > 2 and is_plain(lhs, **params)


def pointwise(
    lhs: Any, rhs: Any, *, window_strides: Shape, dimension_numbers: ConvDimensionNumbers, precision: Any, **_: Any
) -> Any:
    """The convolution, as a batch of products with the kernel."""
    shape = aval_of(lhs).shape
    x = slice(lhs, (0,) * len(shape), shape, (1, 1, *window_strides))
    count, features, *space = aval_of(x).shape
    outputs = aval_of(rhs).shape[dimension_numbers.rhs_spec[0]]
    matrix = reshape(transpose(rhs, dimension_numbers.rhs_spec), (outputs, features))
    kernels = broadcast_in_dim(matrix, (count, outputs, features), (1, 2))
    places = reshape(x, (count, features, math.prod(space)))
    product = dot_general(kernels, places, (((2,), (1,)), ((0,), (0,))), precision)
    return reshape(product, (count, outputs, *space))


def fits_gradient(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> bool:
    """One group, one place in space, nothing around; both are (N, C, space…), and N is what is contracted."""
    lhs_spec, rhs_spec, _ = dimension_numbers
    exchanged = (1, 0, *range(2, lhs.ndim))
    if not (lhs_spec == rhs_spec == exchanged and feature_group_count == batch_group_count == 1 and lhs.ndim > 2):
        return False
    image = dilated(rhs.shape[2:], rhs_dilation)
    whole = all((0, n - size) == pads for n, size, pads in zip(image, lhs.shape[2:], padding, strict=True))
    inside = all(n <= size for n, size in zip(image, lhs.shape[2:], strict=True)) and all(d == 1 for d in lhs_dilation)
    small = lhs.shape[0] * lhs.shape[1] * rhs.shape[1] <= lhs.size + rhs.size
    return whole and inside and small and is_plain(lhs, **params)


def pointwise_gradient(
    lhs: Any, rhs: Any, *, rhs_dilation: Shape, dimension_numbers: ConvDimensionNumbers, precision: Any, **_: Any
) -> Any:
    """The convolution, as a batch of products summed."""
    (count, features, *space), outputs = aval_of(rhs).shape, aval_of(lhs).shape[1]
    limits = (count, outputs, *dilated(space, rhs_dilation))
    x = slice(lhs, (0,) * len(limits), limits, (1, 1, *rhs_dilation))
    places = math.prod(space)
    x, y = reshape(x, (count, outputs, places)), reshape(rhs, (count, features, places))
    product = sum_over(dot_general(x, y, (((2,), (2,)), ((0,), (0,))), precision), (0,))
    spec = dimension_numbers.out_spec
    one_place = reshape(product, (outputs, features, *[1] * len(space)))
    return transpose(one_place, placed(range(len(spec)), spec))
