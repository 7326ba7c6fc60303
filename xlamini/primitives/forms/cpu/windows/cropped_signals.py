"""Convolution of a signal that negative padding crops at its start and padding extends at its end: cropped before.

XLA's compiler for the CPU reads memory outside the operand then (jaxlib 0.10.2, float32 and narrower, one dimension):
the results are random numbers. Kernels' gradients have such padding if the layer is cropped at its start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, space_of
from xlamini.primitives.windows.geometry import Pads


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    padding: Pads,
    lhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    **_: Any,
) -> bool:
    """One dimension without holes, of which something is left."""
    if lhs.dtype.name != "float32" or lhs_dilation != (1,):
        return False
    ((low, high),), (size,) = padding, space_of(lhs, dimension_numbers.lhs_spec)
    return -size < low < 0 < high


def crop_first(
    bind: Callable[..., Any],
    lhs: Any,
    rhs: Any,
    *,
    padding: Pads,
    dimension_numbers: ConvDimensionNumbers,
    **params: Any,
) -> Any:
    """The convolution of the cropped operand."""
    ((low, high),), along = padding, dimension_numbers.lhs_spec[2]
    cropped = slice_in_dim(lhs, -low, aval_of(lhs).shape[along], axis=along)
    return bind(cropped, rhs, padding=((0, high),), dimension_numbers=dimension_numbers, **params)
