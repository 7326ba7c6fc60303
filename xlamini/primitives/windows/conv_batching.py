"""Batches of convolutions as one convolution: more batch, more features, or more groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Dims, Values, aval_of
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.shape.shape import moveaxis
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers
from xlamini.primitives.windows.grouping import merged_into, split_off

Bind = Callable[..., Any]


def batched(bind: Bind, size: int, operands: Values, dims: Dims, **params: Any) -> Any:
    """The result, and where its batch dimension is."""
    if not size:
        return _of_none(bind, operands, dims, **params)
    (lhs, rhs), (left, right) = operands, dims
    if right is None:
        return _of_operands(bind, size, lhs, left, rhs, **params)
    if left is None:
        return _of_kernels(bind, size, lhs, rhs, right, **params)
    return _of_pairs(bind, size, moveaxis(lhs, left, 0), moveaxis(rhs, right, 0), **params)


def _of_none(bind: Bind, operands: Values, dims: Dims, **params: Any) -> Any:
    """An empty batch. It cannot be split off the result, so the shape is that of a batch of one, cut away."""
    one = [x if dim is None else _batch_of_one(x, dim) for x, dim in zip(operands, dims, strict=True)]
    out, dim = batched(bind, 1, one, dims, **params)
    return slice_in_dim(out, 0, 0, axis=dim), dim


def _batch_of_one(x: Any, dim: int) -> Any:
    shape = aval_of(x).shape
    return zeros(aval_of(x).update(shape=(*shape[:dim], 1, *shape[dim + 1 :])))


def _of_pairs(bind: Bind, size: int, lhs: Any, rhs: Any, **params: Any) -> Any:
    """Batched operands and kernels: feature groups, or batch groups where the batch is grouped already."""
    if type(size) is SymbolicSize:
        raise NotImplementedError(
            f"conv_general_dilated: a batch of {size} operands, each with its own kernel, is a convolution in as many "
            "groups, and XLA needs a number of them; use lax.map in place of vmap"
        )
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    by_batch = params["batch_group_count"] > 1
    count = "batch_group_count" if by_batch else "feature_group_count"
    wide = merged_into(lhs, 0, 1 + numbers.lhs_spec[0 if by_batch else 1])
    kernels = merged_into(rhs, 0, 1 + numbers.rhs_spec[0])
    out = bind(wide, kernels, **{**params, count: size * params[count]})
    return split_off(out, numbers.out_spec[1], size), numbers.out_spec[1]


def _of_operands(bind: Bind, size: int, lhs: Any, dim: int | None, rhs: Any, **params: Any) -> Any:
    """Batched operands with one kernel: a larger batch. Its groups remain the outer ones."""
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    wide = _widened(lhs, dim, numbers.lhs_spec[0], params["batch_group_count"])
    out = bind(wide, rhs, **params)
    return split_off(out, numbers.out_spec[0], size), numbers.out_spec[0]


def _of_kernels(bind: Bind, size: int, lhs: Any, rhs: Any, dim: int, **params: Any) -> Any:
    """Batched kernels with one operand: more output features. Existing groups remain the outer ones."""
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    groups = max(params["feature_group_count"], params["batch_group_count"])
    out = bind(lhs, _widened(rhs, dim, numbers.rhs_spec[0], groups), **params)
    features = numbers.out_spec[1]
    if groups == 1:
        return split_off(out, features, size), features
    apart = split_off(split_off(out, features, groups), features + 1, size)
    apart = moveaxis(apart, features + 1, 0)
    return merged_into(apart, features + 1, features + 2), 0


def _widened(x: Any, dim: int | None, target: int, groups: int) -> Any:
    """The batch dimension `dim` merged into `target`, within each group of it."""
    x = moveaxis(x, dim, 0) if dim else x
    if groups == 1:
        return merged_into(x, 0, 1 + target)
    apart = split_off(x, 1 + target, groups)
    inside = merged_into(apart, 0, 2 + target)
    return merged_into(inside, target, target + 1)
