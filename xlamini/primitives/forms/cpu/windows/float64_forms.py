"""Convolutions of float64 in the form that XLA has fast code for: of images, no larger in the result.

A vector becomes an image of one row. Padding that makes the result larger is written out, apart from the convolution,
or XLA would take it back.

Milliseconds of the processor's time, XLA's convolution / this: 3 taps of 8×64×4096 490 / 35; 3×3 with the padding of a
full convolution of 8×64×28×28 300 / 20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of, literal
from xlamini.primitives.forms.parts import noinline
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import expand_dims, squeeze
from xlamini.primitives.windows.conv_numbers import OF_SPACE, ConvDimensionNumbers, result_space, space_of
from xlamini.primitives.windows.geometry import Pads


def is_vector(lhs: ShapedArray, rhs: ShapedArray, *, feature_group_count: int, **_: Any) -> bool:
    """One dimension of float64, in one group."""
    return lhs.dtype.name == "float64" and lhs.ndim == 3 and feature_group_count == 1


def as_row(
    bind: Callable[..., Any], lhs: Any, rhs: Any, *, dimension_numbers: ConvDimensionNumbers, **params: Any
) -> Any:
    """The convolution of images with one row."""
    specs = [(*spec[:2], 3, *spec[2:]) for spec in dimension_numbers]
    planar = {name: (item, *params[name]) for name, item in OF_SPACE.items()}
    out = bind(
        *(expand_dims(x, (3,)) for x in (lhs, rhs)), **params | planar, dimension_numbers=ConvDimensionNumbers(*specs)
    )
    return squeeze(out, (3,))


def grows(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    lhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> bool:
    """Images of float64, undilated and in one group, smaller than the result or the kernel."""
    plain = lhs.dtype.name == "float64" and lhs.ndim == 4 and feature_group_count == batch_group_count == 1
    if not plain or any(d > 1 for d in lhs_dilation):
        return False
    given, window = space_of(lhs, dimension_numbers.lhs_spec), space_of(rhs, dimension_numbers.rhs_spec)
    results = result_space(lhs, rhs, dimension_numbers=dimension_numbers, lhs_dilation=lhs_dilation, **params)
    return any(max(n, k) > size for n, k, size in zip(results, window, given, strict=True))


def pad_first(
    bind: Callable[..., Any],
    lhs: Any,
    rhs: Any,
    *,
    padding: Pads,
    dimension_numbers: ConvDimensionNumbers,
    **params: Any,
) -> Any:
    """The convolution of the padded operand."""
    around = [(0, 0, 0)] * aval_of(lhs).ndim
    for d, (low, high) in zip(dimension_numbers.lhs_spec[2:], padding, strict=True):
        around[d] = (low, high, 0)
    padded = noinline(lambda x: pad(x, literal(0, aval_of(x).dtype), around), lhs)
    return bind(padded, rhs, padding=((0, 0),) * len(padding), dimension_numbers=dimension_numbers, **params)
