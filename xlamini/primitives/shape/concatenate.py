"""concatenate and split: arrays joined along a dimension, and parted again. Each is the other's adjoint."""
from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import (
    PURE,
    REMATERIALIZABLE,
    Avals,
    Cost,
    Dims,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
    is_linear,
    itemsize_bits,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import MOVED
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.core.sizes.expression import as_size
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.linear_unary import LinearUnary, unchanged
from xlamini.primitives.base.tangent_ops import instantiated
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.placement.optimization_barrier import optimization_barrier_p
from xlamini.primitives.shape.joined_rows import is_rows, merged_rows
from xlamini.primitives.shape.shape import moveaxis
from xlamini.primitives.shape.slice import checked_axis, inserted, slice_in_dim
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def concatenate(operands: Values, dimension: int) -> Array:
    """Join arrays one after the other along `dimension`.

    They share a dtype, and their shapes differ in this dimension only; else TypeError or ShapeError. ValueError if
    there are none.

    >>> concatenate([xlamini.numpy.arange(2), xlamini.numpy.arange(3)], 0)
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    if is_rows(operands) and dimension in range(aval_of(operands).ndim - 1):
        return merged_rows(operands, dimension)
    operands = list(operands)
    if not operands:
        raise ValueError("concatenate: there are no operands; give at least one array")
    if len(operands) == 1:
        return unchanged(operands[0])
    return concatenate_p.bind(*operands, dimension=operator.index(dimension))


class Concatenate(Primitive):
    name = "concatenate"
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    memory = MOVED
    checks = NO_NEW_NAN

    def shape_rule(self, *avals: ShapedArray, dimension: int) -> ShapedArray:
        first = avals[0]
        rest = [(*a.shape[:dimension], *a.shape[dimension + 1 :]) for a in avals]
        fits = all(a.ndim == first.ndim for a in avals) and 0 <= dimension < first.ndim
        if not fits or any(r != rest[0] for r in rest):
            raise ShapeError(
                f"concatenate: {_listed(avals)} do not join along dimension {dimension}; all other dimensions must "
                "be equal"
            )
        if any(a.dtype != first.dtype for a in avals):
            raise TypeError(f"concatenate: dtypes differ: {_listed(avals)}; convert them with .astype first")
        shape = (*first.shape[:dimension], sum(a.shape[dimension] for a in avals), *first.shape[dimension + 1 :])
        return first.update(shape=shape, weak_type=all(a.weak_type for a in avals))

    def jvp(self, primals: Values, tangents: Values, *, dimension: int) -> Any:
        out = self.bind(*primals, dimension=dimension)
        return out, self.bind(*map(instantiated, tangents), dimension=dimension)

    def transpose(self, ct: Any, *operands: Any, dimension: int) -> Values:
        ends = list(itertools.accumulate(aval_of(x).shape[dimension] for x in operands))
        return [
            slice_in_dim(ct, start, end, axis=dimension) if is_linear(x) else None
            for x, start, end in zip(operands, [0, *ends], ends, strict=False)
        ]

    def batch(self, axis: Any, operands: Values, dims: Dims, *, dimension: int) -> Any:
        return self.bind(*with_batch_first(operands, dims, axis.size), dimension=dimension + 1), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        if len(avals) > _WIDEST:
            return Form(partial(_joined_in_groups, params["dimension"]))
        return Form(partial(_joined_as_bytes, **params)) if _is_refused(platform, avals[0].dtype) else None

    def lower(self, ctx: Any, *operands: Any, dimension: int) -> Any:
        return ctx.op("stablehlo.concatenate", *operands, dimension=f"{dimension} : i64")

    def cost(self, *avals: ShapedArray, dimension: int) -> Cost:
        return super().cost(*avals, dimension=dimension)._replace(flops=0)


concatenate_p: Final = Concatenate()

_WIDEST, _GROUP = 256, 64
"""The operands of one operation, and of each in the tree that replaces a wider one."""


def _joined_in_groups(dimension: int, *arrays: Any) -> Any:
    """Arrays joined by a tree: XLA compiles one operation of n operands in a time that grows as n * n.

    The barriers stop XLA from making one operation of the tree.
    """
    parts: list[Any] = list(arrays)
    while len(parts) > 1:
        groups = [parts[i : i + _GROUP] for i in range(0, len(parts), _GROUP)]
        parts = optimization_barrier_p.bind(*[concatenate(group, dimension) for group in groups])
    return parts[0]


def _is_refused(platform: Platform, dtype: np.dtype) -> bool:
    """Whether XLA's CPU compiler aborts the process: for elements of 2 bits, which join as bytes."""
    return platform.name == "cpu" and itemsize_bits(dtype) == 2


def _joined_as_bytes(*arrays: Any, dimension: int) -> Any:
    wide = [convert(x, np.dtype(np.int8)) for x in arrays]
    return convert(concatenate_p.bind(*wide, dimension=dimension), aval_of(arrays[0]).dtype)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Part an array along `axis` into pieces of these sizes, which must sum to the axis's; else ShapeError.

    >>> [piece.shape for piece in split(xlamini.numpy.ones((5, 2)), (2, 3))]
    [(2, 2), (3, 2)]
    """
    axis = checked_axis(axis, aval_of(operand).ndim, "split")
    return split_p.bind(operand, sizes=tuple(map(as_size, sizes)), axis=axis)


class Split(LinearUnary):
    traits = PURE | REMATERIALIZABLE
    name = "split"
    multiple_results = True
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    memory = MOVED

    def shape_rule(self, x: ShapedArray, *, sizes: Shape, axis: int) -> list[ShapedArray]:
        if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):
            raise ShapeError(
                f"split: sizes {sizes} sum to {sum(sizes)}, but axis {axis} of {x.str_short()} has size {x.shape[axis]}"
            )
        others = (*x.shape[:axis], *x.shape[axis + 1 :])
        return [x.update(shape=inserted(others, axis, n)) for n in sizes]

    def transpose(self, cts: Values, x: Any, *, sizes: Shape, axis: int) -> Values:
        return [concatenate(list(map(instantiated, cts)), axis)]

    def batch(self, _axis: Any, operands: Any, dims: Any, *, sizes: Shape, axis: int) -> Any:
        outs = self.bind(moveaxis(operands[0], dims[0], 0), sizes=sizes, axis=axis + 1)
        return outs, [0] * len(outs)

    def lower(self, ctx: Any, x: Any, *, sizes: Shape, axis: int) -> list[Any]:
        (kind,), ends = ctx.avals_in, list(itertools.accumulate(sizes))
        outs = []
        for out, start, end in zip(ctx.avals_out, [0, *ends], ends, strict=False):
            starts, limits = [0] * kind.ndim, list(kind.shape)
            starts[axis], limits[axis] = start, end
            strides = [1] * kind.ndim
            outs.append(
                ctx.op(
                    "stablehlo.slice", x, avals=[out], start_indices=starts, limit_indices=limits, strides=strides
                )
            )
        return outs


split_p: Final = Split()


def _listed(avals: Avals) -> str:
    return ", ".join(a.str_short() for a in avals)
