"""Convolution of a dilated operand as one of the operand itself, with features for each place between its elements.

Transposed convolutions and gradients of strided ones dilate an operand by the stride s. A result at place r of s meets
every s-th tap of the kernel only; these taps are a kernel of their own, and the results of all places are joined as
tiles. XLA has fast code for dilated operands of float32 in two dimensions only.

Milliseconds of the processor's time, XLA's convolution / this: 3×3×3 with stride 2 of 2×16×16×16×16, the operand's
gradient 93 / 8; 3×3 with stride 2 of 8×64×56×56 in float64, the same 185 / 17.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of, literal
from xlamini.primitives.forms.cpu.windows.tiles import Tiles, joined
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import reshape, rev, transpose
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, space_of
from xlamini.primitives.windows.geometry import Pads, window_counts


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: Shape,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
    **_: Any,
) -> bool:
    """Nothing but the operand is dilated; float32 of three dimensions, or float64 of fewer in one group."""
    alone = any(d > 1 for d in lhs_dilation) and all(d == 1 for d in (*window_strides, *rhs_dilation))
    planar = lhs.dtype.name == "float64" and len(lhs_dilation) < 3 and feature_group_count == 1
    solid = lhs.dtype.name == "float32" and len(lhs_dilation) == 3
    return alone and (planar or solid) and batch_group_count == 1


def polyphase(
    bind: Callable[..., Any],
    lhs: Any,
    rhs: Any,
    *,
    padding: Pads,
    lhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    **params: Any,
) -> Any:
    """The convolution: output q * s + r, for place r, sums tap s * v + s - 1 - r at element q + v - low // s."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    sizes, ones = space_of(aval_of(lhs), lhs_spec), (1,) * len(lhs_dilation)
    whole = window_counts(sizes, space_of(aval_of(rhs), rhs_spec), ones, padding, lhs_dilation, ones)
    lows = [low for low, _ in padding]
    kernel = _kernel_of_places(transpose(rhs, rhs_spec), lhs_dilation, lows)
    counts = [math.ceil(n / s) for n, s in zip(whole, lhs_dilation, strict=True)]
    taps = zip(counts, aval_of(kernel).shape[2:], lows, lhs_dilation, sizes, strict=True)
    in_order = tuple(range(2 + len(ones)))
    out = bind(
        lhs,
        kernel,
        padding=tuple((low // s, count + k - low // s - n - 1) for count, k, low, s, n in taps),
        lhs_dilation=ones,
        dimension_numbers=ConvDimensionNumbers(lhs_spec, in_order, in_order),
        **params,
    )
    images, outputs, rank = aval_of(out).shape[0], aval_of(rhs).shape[rhs_spec[0]], len(ones)
    apart = reshape(out, (images, outputs, *lhs_dilation, *counts))
    tiles = Tiles(apart, 0, 1, tuple(range(2 + rank, 2 + 2 * rank)), tuple(range(2, 2 + rank)))
    return joined(tiles, out_spec, lhs_dilation, whole, [0] * rank)


# --- helpers


def _kernel_of_places(kernel: Any, strides: Shape, lows: list[int]) -> Any:
    """A kernel (O, I, space…) as (O × places, I, taps of a place…)."""
    outputs, given, *window = aval_of(kernel).shape
    before = [s - 1 - low % s for s, low in zip(strides, lows, strict=True)]
    taps = [math.ceil((k + n) / s) for k, n, s in zip(window, before, strides, strict=True)]
    spread = zip(window, before, taps, strides, strict=True)
    around = [(0, 0, 0), (0, 0, 0), *((n, count * s - k - n, 0) for k, n, count, s in spread)]
    kernel = pad(kernel, literal(0, aval_of(kernel).dtype), around)
    kernel = reshape(kernel, (outputs, given, *itertools.chain(*zip(taps, strides, strict=True))))
    which, place = range(2, 2 + 2 * len(taps), 2), range(3, 3 + 2 * len(taps), 2)
    kernel = transpose(rev(kernel, tuple(place)), (0, *place, 1, *which))
    return reshape(kernel, (outputs * math.prod(strides), given, *taps))
