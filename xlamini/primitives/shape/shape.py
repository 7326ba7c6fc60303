"""Operations that move elements without touching them: transpose, broadcast_in_dim, reshape, squeeze, rev."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from xlamini.core import (
    PURE,
    REMATERIALIZABLE,
    Avals,
    Axis,
    Cost,
    ExtendedDType,
    Factors,
    Params,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
    dims,
)
from xlamini.core.program.avals import NOWHERE, as_dimension, as_sizes
from xlamini.core.program.checks import CARRIES_NAN, KEEPS_NAN
from xlamini.core.program.key_uses import FORWARDS
from xlamini.core.program.memory import MOVED, READ, VIEWED, Memory
from xlamini.core.sharding.facet import Sharding, reduced_dimensions, same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY, Sums, left_open, split_along, sums_of_results
from xlamini.core.sharding.propagation import Splits
from xlamini.primitives.base.linear_unary import LinearUnary, unchanged
from xlamini.primitives.base.out_sharding import in_sharding
from xlamini.primitives.shape.reshape_sharding import splits_of_reshaped
from xlamini.runtime import Array

# --- transpose


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """Reorder dimensions: dimension i of the result is dimension `permutation[i]` of the operand.

    Raises ShapeError if `permutation` is not a permutation of the operand's dimensions.

    >>> transpose(xlamini.numpy.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    permutation = as_sizes(permutation)
    if permutation == tuple(range(aval_of(operand).ndim)):
        return unchanged(operand)
    return transpose_p.bind(operand, permutation=permutation)


_FORWARDED = replace(CARRIES_NAN, key_uses=FORWARDS)
"""The checks of what returns the elements, or the keys, of its operand."""


def _permuted(avals: Avals, outs: Avals, params: Params) -> Factors:
    return Factors([dims(avals[0])], [params["permutation"]])


class Transpose(LinearUnary):
    name = "transpose"
    sharding: Sharding = Sharding(factors=_permuted, linear=JOINTLY)
    memory: Memory = Memory(moves=True, permutes=True)
    checks = _FORWARDED

    def shape_rule(self, x: ShapedArray, *, permutation: Shape) -> ShapedArray:
        if sorted(permutation) != list(range(x.ndim)):
            raise ShapeError(
                f"transpose: permutation {permutation} does not name each dimension of {x.str_short()} once"
            )
        return x.update(shape=tuple(x.shape[i] for i in permutation))

    def transpose(self, ct: Any, x: Any, *, permutation: Shape) -> Values:
        return [transpose(ct, np.argsort(permutation).tolist())]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, permutation: Shape) -> Any:
        (x,), (dim,) = operands, dims
        others = [i for i in range(x.ndim) if i != dim]
        return transpose(x, (dim, *(others[i] for i in permutation))), 0

    def lower(self, ctx: Any, x: Any, *, permutation: Shape) -> Any:
        return ctx.op("stablehlo.transpose", x, permutation=permutation)


transpose_p: Final = Transpose()


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """Move one dimension; the others keep their order."""
    order = [i for i in range(aval_of(x).ndim) if i != source]
    order.insert(destination, source)
    return transpose(x, order)


# --- broadcast_in_dim


def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Repeat an array into `shape`; dimension i of the operand becomes `broadcast_dimensions[i]` of the result.

    Each operand dimension must be 1 or the size of the result's dimension; else ShapeError.

    >>> broadcast_in_dim(xlamini.numpy.ones(3), (2, 3), (1,)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, broadcast_in_dim, operand, shape, broadcast_dimensions)
    shape, places = as_sizes(shape), as_sizes(broadcast_dimensions)
    if shape == aval_of(operand).shape and places == tuple(range(len(shape))):
        return unchanged(operand)
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=places)


def _repeated(avals: Avals, outs: Avals, params: Params) -> Factors:
    return Factors([params["broadcast_dimensions"]], [dims(outs[0])])


class BroadcastInDim(LinearUnary):
    traits = PURE | REMATERIALIZABLE
    name = "broadcast_in_dim"
    sharding: Sharding = Sharding(factors=_repeated, linear=JOINTLY)
    checks = _FORWARDED

    def shape_rule(self, x: ShapedArray, *, shape: Shape, broadcast_dimensions: Shape) -> ShapedArray:
        fits = len(broadcast_dimensions) == x.ndim and all(
            0 <= d < len(shape) and n in (1, shape[d])
            for n, d in zip(x.shape, broadcast_dimensions, strict=True)
        )
        if not fits or list(broadcast_dimensions) != sorted(set(broadcast_dimensions)):
            raise ShapeError(
                f"broadcast_in_dim: {x.str_short()} does not fit into shape {shape} with "
                f"broadcast_dimensions={broadcast_dimensions}; each dimension must be 1 or equal, in order"
            )
        return x.update(shape=shape)

    def transpose(self, ct: Any, x: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Values:
        new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
        stretched = [
            d for n, d in zip(x.aval.shape, broadcast_dimensions, strict=True) if n == 1 and shape[d] != 1
        ]
        return [reshape(sum_over(ct, sorted(new + stretched)), x.aval.shape)]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
        (x,), (dim,) = operands, dims
        x = moveaxis(x, dim, 0)
        moved = (0, *(d + 1 for d in broadcast_dimensions))
        return broadcast_in_dim(x, (axis.size, *shape), moved), 0

    def lower(self, ctx: Any, x: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
        return ctx.broadcast(x, broadcast_dimensions, ctx.aval_out)

    def shown_params(self, params: Params) -> Params:
        dims = params["broadcast_dimensions"]
        return {"broadcast_dimensions": dims} if dims else {}


broadcast_in_dim_p: Final = BroadcastInDim()


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """Repeat an array along new leading dimensions of these sizes.

    >>> lax.broadcast(jnp.arange(3), (2,))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, broadcast, operand, sizes)
    sizes, shape = as_sizes(sizes), aval_of(operand).shape
    return broadcast_in_dim(operand, (*sizes, *shape), range(len(sizes), len(sizes) + len(shape)))


# --- reshape and squeeze


def reshape(
    operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Array:
    """Reshape an array, its elements in row-major order; ShapeError if their number changes.

    With `dimensions`, a permutation of the operand's, they are taken in the order of the transposed array.
    `out_sharding`, a PartitionSpec or NamedSharding, says how the result is split over a mesh.

    >>> reshape(xlamini.numpy.arange(6), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, reshape, operand, new_sizes, dimensions)
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    new_sizes = as_sizes(new_sizes)
    return unchanged(operand) if aval_of(operand).shape == new_sizes else reshape_p.bind(operand, new_sizes=new_sizes)


def _splits(avals: Avals, outs: Avals, params: Params) -> Splits:
    return splits_of_reshaped(avals[0], params["new_sizes"])


class Reshape(LinearUnary):
    traits = PURE | REMATERIALIZABLE
    name = "reshape"
    sharding: Sharding = Sharding(splits=_splits, linear=JOINTLY)
    memory = VIEWED
    checks = _FORWARDED

    def shape_rule(self, x: ShapedArray, *, new_sizes: Shape) -> ShapedArray:
        if math.prod(new_sizes) != x.size or any(n < 0 for n in new_sizes):
            raise ShapeError(
                f"reshape: {x.str_short()} has {x.size} elements and does not fit into shape {new_sizes}, "
                f"which has {math.prod(new_sizes)}"
            )
        return x.update(shape=new_sizes)

    def transpose(self, ct: Any, x: Any, *, new_sizes: Shape) -> Values:
        return [reshape(ct, x.aval.shape)]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, new_sizes: Shape) -> Any:
        (x,), (dim,) = operands, dims
        return reshape(moveaxis(x, dim, 0), (axis.size, *new_sizes)), 0

    def lower(self, ctx: Any, x: Any, *, new_sizes: Shape) -> Any:
        return ctx.reshape(x, ctx.aval_out)


reshape_p: Final = Reshape()


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """Drop dimensions of size 1; ShapeError if one of them has another size.

    >>> squeeze(xlamini.numpy.ones((1, 3)), (0,)).shape
    (3,)
    """
    ndim = aval_of(array).ndim
    dims = tuple(sorted(as_dimension(d, ndim) for d in as_sizes(dimensions)))
    return squeeze_p.bind(array, dimensions=dims) if dims else unchanged(array)


class Squeeze(LinearUnary):
    traits = PURE | REMATERIALIZABLE
    name = "squeeze"
    sharding: Sharding = reduced_dimensions("dimensions", linear=JOINTLY)
    memory = VIEWED
    checks = _FORWARDED

    def shape_rule(self, x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
        if len(set(dimensions)) < len(dimensions) or any(not 0 <= d < x.ndim or x.shape[d] != 1 for d in dimensions):
            raise ShapeError(
                f"squeeze: dimensions {dimensions} of {x.str_short()} are not all of size 1, or one is named twice"
            )
        return x.update(shape=tuple(n for d, n in enumerate(x.shape) if d not in dimensions))

    def transpose(self, ct: Any, x: Any, *, dimensions: Shape) -> Values:
        return [reshape(ct, x.aval.shape)]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, dimensions: Shape) -> Any:
        (x,), (dim,) = operands, dims
        return squeeze(moveaxis(x, dim, 0), [d + 1 for d in dimensions]), 0

    def lower(self, ctx: Any, x: Any, *, dimensions: Shape) -> Any:
        return ctx.reshape(x, ctx.aval_out)


squeeze_p: Final = Squeeze()


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """Insert dimensions of size 1, which become `dimensions` of the result.

    >>> expand_dims(xlamini.numpy.ones(3), (0,)).shape
    (1, 3)
    """
    shape = aval_of(array).shape
    dimensions = as_sizes(dimensions)
    ndim = len(shape) + len(dimensions)
    new = {as_dimension(d, ndim) for d in dimensions}
    if len(new) != len(dimensions) or any(not 0 <= d < ndim for d in new):
        raise ShapeError(f"expand_dims: dimensions {dimensions} do not fit a result of rank {ndim}")
    kept = [d for d in range(ndim) if d not in new]
    full = [1] * ndim
    for d, n in zip(kept, shape, strict=True):
        full[d] = n
    return broadcast_in_dim(array, full, kept)


# --- rev


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """Reverse the order of the elements along `dimensions`.

    >>> rev(xlamini.numpy.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    ndim = aval_of(operand).ndim
    return rev_p.bind(operand, dimensions=tuple(as_dimension(d, ndim) for d in as_sizes(dimensions)))


class Rev(LinearUnary):
    name = "rev"
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    memory = MOVED

    def shape_rule(self, x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
        if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < x.ndim for d in dimensions):
            raise ShapeError(f"rev: dimensions {dimensions} do not fit {x.str_short()}")
        return x

    def transpose(self, ct: Any, x: Any, *, dimensions: Shape) -> Values:
        return [rev(ct, dimensions)]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, dimensions: Shape) -> Any:
        (x,), (dim,) = operands, dims
        return rev(x, [d + (d >= dim) for d in dimensions]), dim

    def lower(self, ctx: Any, x: Any, *, dimensions: Shape) -> Any:
        return ctx.op("stablehlo.reverse", x, dimensions=dimensions)


rev_p: Final = Rev()


# --- reduce_sum: the transpose of a broadcast, so it lives beside it


def sum_over(operand: Any, axes: Sequence[int]) -> Any:
    """The sum over `axes`, which is left open where they are split within `sums_left_open`."""
    return reduce_sum_p.bind(operand, axes=tuple(axes)) if len(axes) else operand


def reduced(x: ShapedArray, axes: Shape, name: str) -> ShapedArray:
    """The type of a reduction over `axes`; ShapeError where they don't fit."""
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ShapeError(f"{name}: axes {axes} do not fit {x.str_short()}")
    return x.update(shape=tuple(n for d, n in enumerate(x.shape) if d not in axes))


def _sums(avals: Avals, outs: Avals, params: Params) -> list[Sums]:
    found = sums_of_results(avals)
    return [found._replace(unreduced=found.unreduced | params.get("unreduced", NOWHERE))]


class ReduceSum(LinearUnary):
    name = "reduce_sum"
    sharding: Sharding = reduced_dimensions("axes", sums=_sums, linear=JOINTLY)
    memory = READ
    checks = KEEPS_NAN

    def start(self, dtype: Any) -> int:
        """The number that changes no sum."""
        return 0

    def bind(self, x: Any, *, axes: Shape, **params: Any) -> Any:
        """Apply it; `unreduced` are the axes along which its sum is not taken."""
        if params or aval_of(x).explicit_sharding is not None:
            params = left_open(params, [split_along(x, axes)])
        return super().bind(x, axes=axes, **params)

    def shape_rule(self, x: ShapedArray, *, axes: Shape, unreduced: frozenset[Any] = NOWHERE) -> ShapedArray:
        if isinstance(x.dtype, ExtendedDType):
            raise TypeError(f"sum: elements of dtype {x.dtype.name} cannot be added")
        return reduced(x, axes, self.name)

    def transpose(self, ct: Any, x: Any, *, axes: Shape, unreduced: frozenset[Any] = NOWHERE) -> Values:
        kept = [d for d in range(x.aval.ndim) if d not in axes]
        return [broadcast_in_dim(ct, x.aval.shape, kept)]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, axes: Shape, **params: Any) -> Any:
        (x,), (dim,) = operands, dims
        moved = tuple(a + (a >= dim) for a in axes)
        return self.bind(x, axes=moved, **params), dim - sum(a < dim for a in moved)

    def lower(self, ctx: Any, x: Any, *, axes: Shape, unreduced: frozenset[Any] = NOWHERE) -> Any:
        return ctx.reduce("stablehlo.add", x, 0, axes)

    def shown_params(self, params: Params) -> Params:
        return {"axes": params["axes"]}  # the type of the result shows along which axes it is unreduced

    def cost(self, x: ShapedArray, *, axes: Shape, **params: Any) -> Cost:
        return Cost(x.size, x.nbytes + self.shape_rule(x, axes=axes).nbytes)


reduce_sum_p: Final = ReduceSum()
