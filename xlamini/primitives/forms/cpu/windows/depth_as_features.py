"""Convolution of volumes as one of images: the planes that a window sees become features of one plane.

XLA's code for three dimensions takes five times as long for a product as that for two; the copies of planes are soon
paid for. Milliseconds of the processor's time, XLA's convolution / this: 3×3×3 of 1×32×32×32×32 to 32 features
138 / 26, with features last 135 / 18; with stride 2 of 2×64×16×16×16 to 128 10 / 5.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of, literal
from xlamini.primitives.forms.cpu.windows.runs import moved, moved_back
from xlamini.primitives.forms.cpu.windows.sum_dtype import PLAIN_FLOATS
from xlamini.primitives.forms.parts import noinline
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import moveaxis, reshape
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.primitives.windows.conv_numbers import OF_SPACE, ConvDimensionNumbers, features_last, result_space

_MOST_PLANES = 128
"""Of a window; each is a copy to compile."""


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    lhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **_: Any,
) -> bool:
    """Three dimensions without holes in the operand, in one group."""
    planes = rhs.shape[dimension_numbers.rhs_spec[2]] if lhs.ndim == 5 else math.inf
    whole = feature_group_count == batch_group_count == 1 and all(d == 1 for d in lhs_dilation)
    return planes <= _MOST_PLANES and whole and lhs.dtype.name in PLAIN_FLOATS


def depth_as_features(
    bind: Callable[..., Any], lhs: Any, rhs: Any, *, dimension_numbers: ConvDimensionNumbers, **params: Any
) -> Any:
    """The convolution: each plane of the result is an image."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    depth, *_ = result_space(aval_of(lhs), aval_of(rhs), dimension_numbers=dimension_numbers, **params)
    kernel = moveaxis(moved(rhs, rhs_spec, (2, 3, 4, 1, 0)), 0, 2)
    stride, hole, around = (params[name][0] for name in ("window_strides", "rhs_dilation", "padding"))
    starts = range(0, aval_of(kernel).shape[2] * hole, hole)
    x, reach = moved(lhs, lhs_spec, _IN_ORDER), (depth - 1) * stride + 1
    planes = noinline(lambda x: _planes(x, starts, reach, stride, around), x)
    images, *_ = shape = aval_of(planes).shape
    flat = {name: params[name][1:] for name in OF_SPACE}
    out = bind(
        reshape(planes, (images * depth, *shape[2:])),
        reshape(kernel, (*aval_of(kernel).shape[:2], shape[-1], aval_of(kernel).shape[-1])),
        **params | flat | {"dimension_numbers": features_last(4)},
    )
    return moved_back(reshape(out, (images, depth, *aval_of(out).shape[1:])), out_spec, _IN_ORDER)


# --- helpers

_IN_ORDER = (0, 2, 3, 4, 1)


def _planes(x: Any, starts: range, reach: int, stride: int, around: tuple[int, int]) -> Any:
    """Of (N, D, H, W, C) for each result along D the planes of its window, side by side: (N, D, H, W, planes * C)."""
    padded = pad(x, literal(0, aval_of(x).dtype), [(0, 0, 0), (*around, 0), *[(0, 0, 0)] * 3])
    return concatenate([slice_in_dim(padded, n, n + reach, stride, 1) for n in starts], 4)
