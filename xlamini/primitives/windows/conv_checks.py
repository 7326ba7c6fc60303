"""Checks of a convolution's operands, with messages that name the operand at fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapedArray, ShapeError
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers
from xlamini.primitives.windows.geometry import check_numbers


def check_operands(
    name: str,
    lhs: ShapedArray,
    rhs: ShapedArray,
    numbers: ConvDimensionNumbers,
    strides: Sequence[int],
    padding: Sequence[Any] | None,
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    groups: tuple[int, int] | None = None,
) -> None:
    """ShapeError or ValueError, naming the argument, where operands and window do not fit."""
    _check_ranks(name, lhs, rhs, numbers)
    count = lhs.ndim - 2
    check_numbers(name, count, window_strides=strides, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation)
    window = [rhs.shape[d] for d in numbers.rhs_spec[2:]]
    if any(n == 0 for n in window):
        kernel = rhs.str_short(False)
        raise ShapeError(f"{name}: the kernel {kernel} has an empty spatial dimension; give it one element")
    if padding is not None and len(padding) != count:
        raise ShapeError(f"{name}: padding must have {count} pairs, one for each spatial dimension, got {padding}")
    if groups is not None:
        _check_groups(name, lhs, rhs, numbers, *groups)


def _check_ranks(name: str, lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers) -> None:
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise ShapeError(
            f"{name}: lhs and rhs must have one rank, at least 2, got {lhs.str_short(False)} and "
            f"{rhs.str_short(False)}; both have two dimensions besides the spatial ones"
        )
    for what, spec in zip(("lhs", "rhs", "out"), numbers, strict=True):
        if sorted(spec) != list(range(lhs.ndim)):
            raise ShapeError(f"{name}: {what}_spec {tuple(spec)} must name each of the {lhs.ndim} dimensions once")


def _check_groups(
    name: str, lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers, features: int, batches: int
) -> None:
    if features < 1 or batches < 1 or (features > 1 and batches > 1):
        raise ValueError(
            f"{name}: feature_group_count and batch_group_count must be 1 or more, and one of them 1, got {features} "
            f"and {batches}"
        )
    batch, given = (lhs.shape[d] for d in numbers.lhs_spec[:2])
    out, taken = (rhs.shape[d] for d in numbers.rhs_spec[:2])
    if given != taken * features:
        fix = f"; with feature_group_count={given // taken} they would" if taken and given % taken == 0 else ""
        raise ShapeError(
            f"{name}: lhs {lhs.str_short(False)} has {given} features, but the kernel {rhs.str_short(False)} takes "
            f"{taken} in each of {features} group(s); the products must agree{fix}"
        )
    if out % features or out % batches or batch % batches:
        what, count = ("feature_group_count", features) if features > 1 else ("batch_group_count", batches)
        of_batch = f" and the batch size {batch}" if batches > 1 else ""
        raise ShapeError(f"{name}: {what} {count} must divide the kernel's {out} output features{of_batch}")
