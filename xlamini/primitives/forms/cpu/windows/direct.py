"""Convolution as a sum of shifted products: one for each offset in the kernel and input feature of a group.

Where a group has few features, a matrix product has next to nothing to contract, and XLA runs one small one after
another. A multiplication and an addition of whole arrays for each tap is one vectorised loop, in any layout. So it is
for one group of few features: filters of images and signals.

Milliseconds, XLA's convolution / this / ONNX Runtime: depthwise 3×3 of 8×96×56×56 47 / 1.6 / 3.4; 7×7 101 / 4.5 / 14;
3×3 with stride 2 of 8×96×112×112 54 / 6.1 / 9.2, its input's gradient 584 / 6.2 / 8.1; 32 groups of 4 features, 3×3, of
8×128×28×28 12 / 1.8 / 1.5; one feature, 9×9 of 512×512 30 / 2.7, 9 taps of 2**20 33 / 0.8; 3×3 of 8×3×64×64 to 16
features 4.1 / 1.1.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from xlamini.core import Shape, ShapedArray, aval_of, literal
from xlamini.primitives.base.elementwise import add_any, mul
from xlamini.primitives.forms.cpu.windows.sum_dtype import is_plain
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape, transpose
from xlamini.primitives.shape.slice import index_in_dim
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, placed, space_of
from xlamini.primitives.windows.geometry import Pads
from xlamini.primitives.windows.grouping import split_off
from xlamini.primitives.windows.views import each_view

_MOST_TERMS = 128
"""More would compile slowly: 121 take 0.2 s."""
_MOST_WEIGHTS = 600
"""Of one group: from about a thousand on XLA's own convolution is faster."""


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> bool:
    """Few products for each result, in one group also few features."""
    terms = math.prod(rhs.shape[d] for d in dimension_numbers.rhs_spec[1:])
    few = feature_group_count > 1 or rhs.size <= _MOST_WEIGHTS
    return few and terms <= _MOST_TERMS and batch_group_count == 1 and is_plain(lhs, **params)


def direct(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    **_: Any,
) -> Any:
    """The convolution. A group's input features are one more dimension of the window."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    features, groups = out_spec[1], feature_group_count
    x = split_off(transpose(lhs, [lhs_spec[out_spec.index(d)] for d in range(len(out_spec))]), features, groups)
    given, outputs = aval_of(rhs).shape[rhs_spec[1]], aval_of(rhs).shape[rhs_spec[0]] // groups

    def everywhere(of_features: Any, of_space: Any, neither: Any) -> Any:
        """A number for each dimension of x: its features within a group, space, and the others."""
        numbers = placed((neither, of_features, *of_space), out_spec)
        return (*numbers[:features], neither, *numbers[features:])

    window = space_of(aval_of(rhs), rhs_spec)
    views = each_view(
        x,
        literal(0, aval_of(x).dtype),
        everywhere(given, window, 1),
        everywhere(1, window_strides, 1),
        everywhere((0, 0), padding, (0, 0)),
        everywhere(1, lhs_dilation, 1),
        everywhere(1, rhs_dilation, 1),
    )
    weights = _by_offset(rhs, everywhere(rhs_spec[1], rhs_spec[2:], -1), rhs_spec[0], (groups, outputs))
    total = _sum_of_products(views, weights, features, outputs)
    shape = aval_of(total).shape
    return reshape(total, (*shape[:features], groups * outputs, *shape[features + 2 :]))


# --- helpers


def _by_offset(rhs: Any, dims: Shape, last: int, shape: Shape) -> Any:
    """The kernel as (offsets, *shape), the offsets in the order of the views."""
    moved = transpose(rhs, [*(d for d in dims if d >= 0), last])
    return reshape(moved, (aval_of(moved).size // math.prod(shape), *shape))


def _sum_of_products(views: list[Any], weights: Any, features: int, outputs: int) -> Any:
    """The views, each times the weights at its offset, which differ by group and output feature."""
    shape = np.array(aval_of(views[0]).shape)
    shape[features + 1] = outputs

    def term(i: int, view: Any) -> Any:
        over_outputs = broadcast_in_dim(view, shape.tolist(), range(len(shape)))
        factor = broadcast_in_dim(index_in_dim(weights, i, 0, False), shape.tolist(), (features, features + 1))
        return mul(over_outputs, factor)

    return functools.reduce(add_any, itertools.starmap(term, enumerate(views)))
