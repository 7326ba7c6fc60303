"""The cotangents of a convolution's operand and kernel, as convolutions.

With stride s, dilations a of the operand and b of the kernel, result p is the sum over the kernel k of
`lhs[p * s + k * b - before] * rhs[k]`, lhs dilated by a. Read for a fixed place of lhs, that is a convolution of the
cotangent, dilated by s, with the kernel turned about; for a fixed k it is one of lhs with the cotangent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import Shape, ShapedArray, aval_of
from xlamini.core.sizes.expression import is_less
from xlamini.primitives.base.precision import swap
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.convert_element_type import cast, convert
from xlamini.primitives.shape.shape import rev
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, space_of
from xlamini.primitives.windows.geometry import Pads, dilated
from xlamini.primitives.windows.grouping import merged_into, split_off

Bind = Callable[..., Any]


def operand_cotangent(
    bind: Bind,
    ct: Any,
    lhs: ShapedArray,
    rhs: Any,
    *,
    window_strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> Any:
    """The cotangent of the operand: of `ct` convolved with the kernel turned about."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = max(feature_group_count, batch_group_count)
    if aval_of(ct).size == 0 or aval_of(rhs).size == 0 or lhs.size == 0:
        return zeros(lhs)
    around = _operand_padding(
        dilated(space_of(lhs, lhs_spec), lhs_dilation),
        dilated(space_of(aval_of(rhs), rhs_spec), rhs_dilation),
        dilated(space_of(aval_of(ct), out_spec), window_strides),
        padding,
    )
    kernel = _regrouped(rhs, rhs_spec, groups)
    back = bind(
        *_in_wider_dtype(ct, rev(kernel, rhs_spec[2:]) if rhs_spec[2:] else kernel),
        window_strides=lhs_dilation,
        padding=around,
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out_spec, _exchanged(rhs_spec), lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
        **params,
    )
    return cast(_ungrouped(back, lhs_spec, batch_group_count), lhs.dtype)


def kernel_cotangent(
    bind: Bind,
    ct: Any,
    lhs: Any,
    rhs: ShapedArray,
    *,
    window_strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    **params: Any,
) -> Any:
    """The cotangent of the kernel: of the operand convolved with `ct`, batch and features exchanged.

    If `ct` is the larger in space, as after a transposed convolution, it is convolved with the operand, and the result
    reversed. The sums are the same, but no backend is fast for a kernel larger than what it slides over.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    if aval_of(ct).size == 0 or aval_of(lhs).size == 0 or rhs.size == 0:
        return zeros(rhs)
    operand = _Side(lhs, _exchanged(lhs_spec), lhs_dilation)
    cotangent = _Side(ct, _exchanged(out_spec), window_strides)
    window = dilated(space_of(rhs, rhs_spec), rhs_dilation)
    lows = [low for low, _ in padding]
    params |= {
        "window_strides": rhs_dilation,
        "feature_group_count": batch_group_count,
        "batch_group_count": feature_group_count,
    }
    grouped = feature_group_count * batch_group_count > 1
    if grouped or not is_less(math.prod(operand.space), math.prod(cotangent.space)):
        params["precision"] = swap(precision)
        return cast(_slid(bind, operand, cotangent, _exchanged(rhs_spec), window, lows, **params), rhs.dtype)
    lows = [n - 1 - low for n, low in zip(window, lows, strict=True)]
    back = _slid(bind, cotangent, operand, rhs_spec, window, lows, precision=precision, **params)
    return cast(rev(back, rhs_spec[2:]), rhs.dtype)


# --- helpers


class _Side(NamedTuple):
    """The operand or the cotangent, with its dimensions, batch and features exchanged, and its dilation."""

    array: Any
    spec: Shape
    dilation: Shape

    @property
    def space(self) -> Shape:
        return dilated(space_of(aval_of(self.array), self.spec), self.dilation)


def _slid(bind: Bind, one: _Side, other: _Side, spec: Shape, window: Shape, lows: Sequence[int], **params: Any) -> Any:
    """`other`, as a kernel, slid over the window's places on `one`; the first place is at `-lows`."""
    return bind(
        *_in_wider_dtype(one.array, other.array),
        padding=_kernel_padding(one.space, window, other.space, lows),
        lhs_dilation=one.dilation,
        rhs_dilation=other.dilation,
        dimension_numbers=ConvDimensionNumbers(one.spec, other.spec, spec),
        **params,
    )


def _exchanged(spec: Shape) -> Shape:
    """Batch and features, or output and input features, in each other's place."""
    return (spec[1], spec[0], *spec[2:])


def _regrouped(rhs: Any, spec: Shape, groups: int) -> Any:
    """A grouped kernel whose input features are those of one group's results."""
    if groups == 1:
        return rhs
    rhs = split_off(rhs, spec[0], groups)
    return merged_into(rhs, spec[0], spec[1] + (spec[1] >= spec[0]))


def _ungrouped(lhs: Any, spec: Shape, groups: int) -> Any:
    """An operand with its feature groups moved to the batch dimension."""
    if groups == 1:
        return lhs
    batch, features = spec[:2]
    return merged_into(split_off(lhs, features, groups), features, batch + (batch > features))


def _operand_padding(sizes: Shape, window: Shape, count: Shape, padding: Pads) -> Pads:
    spread = (sizes, window, count, padding)
    return tuple((k - 1 - low, n + low - out) for n, k, out, (low, _) in zip(*spread, strict=True))


def _kernel_padding(sizes: Shape, window: Shape, count: Shape, lows: Sequence[int]) -> Pads:
    spread = (sizes, window, count, lows)
    return tuple((low, out - n + k - low - 1) for n, k, out, low in zip(*spread, strict=True))


def _in_wider_dtype(x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands in the wider dtype: the cotangent has that of the sums, the operand may be narrower."""
    ours, other = aval_of(x).dtype, aval_of(y).dtype
    if ours == other:
        return x, y
    return (x, convert(y, ours)) if ours.itemsize > other.itemsize else (convert(x, other), y)
