"""reduce: a reduction over dimensions by a user-defined computation, of one or several arrays at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from xlamini.core import Avals, Axis, Cost, Dims, Factors, Jaxpr, Params, Shape, ShapedArray, Values, apart, aval_of
from xlamini.interpreters.jvp import jvp
from xlamini.primitives import broadcast_in_dim, in_sharding, reduce_or_p, reshape, transpose, with_batch_first
from xlamini.primitives.reductions.reductions import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_prod_p,
    reduce_sum_p,
    reduce_xor_p,
)
from xlamini.primitives.shape.shape import reduced
from xlamini.staging import HigherOrder, cost_of, rebuilt
from xlamini.transforms.reductions.computation import (
    Computation,
    Monoid,
    batched_by,
    folded,
    monoid_of,
    monoids_of,
    starts_with_identity,
    tangents_by,
    traced,
)

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """The reduction of `operands` over `dimensions` by `computation(a, b)`, with initial values `init_values`.

    `operands` is an array or a container of arrays of one shape, `init_values` has its structure, scalars of the same
    dtypes; so have a, b, and the result of `computation`. It must be associative with identity `init_values`, because
    XLA reduces in any order. Sums, products, extrema and bitwise operations are recognized and run as such, and may
    have any initial value. Raises ValueError for structures that differ, TypeError for dtypes, ShapeError for shapes or
    dimensions that do not fit.

    >>> reduce(xlamini.numpy.arange(1.0, 5.0), 1.0, lambda a, b: a * b, (0,))
    Array(24., dtype=float32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, reduce, operands, init_values, computation, dimensions)
    found = traced("reduce", operands, init_values, computation)
    if not found.operands:
        return operands
    axes = tuple(int(d) for d in dimensions)
    first = aval_of(found.operands[0])
    axes = tuple(d + first.ndim if -first.ndim <= d < 0 else d for d in axes)
    reduced(first, axes, "reduce")
    monoid = monoid_of(found, _MONOIDS)
    if monoid is not None:
        return rebuilt(found.tree, [_with_start(found, monoid, monoid.reduction.bind(*found.operands, axes=axes))])
    if found.captured:
        rows = [_rows(x, axes) for x in found.operands]
        return rebuilt(found.tree, folded(found.jaxpr, found.captured, rows, found.starts))
    return rebuilt(found.tree, reduce_p.bind(*found.operands, *found.starts, dimensions=axes, jaxpr=found.jaxpr))


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    axes, arrays = params["dimensions"], apart(avals[: len(outs)])
    return Factors(
        [*arrays, *[()] * len(outs)], [[x for d, x in enumerate(labels) if d not in axes] for labels in arrays]
    )


class Reduce(HigherOrder):
    """A reduction by a jaxpr of scalars; the operands are the arrays, then their scalar initial values."""

    name = "reduce"
    sharding: Sharding = replace(HigherOrder.sharding, factors=_factors)

    def shape_rule(self, *avals: ShapedArray, dimensions: Shape, jaxpr: Jaxpr) -> list[ShapedArray]:
        arrays, starts = avals[: len(avals) // 2], avals[len(avals) // 2 :]
        return [
            reduced(x, dimensions, self.name).update(weak_type=x.weak_type and start.weak_type)
            for x, start in zip(arrays, starts, strict=True)
        ]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        return outs, tangents_by(lambda *operands: _plain(operands, **params), jvp, primals, tangents)

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> NoReturn:
        raise AssertionError("reduce is not linear; its derivative is made of other primitives")

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        count = len(operands) // 2
        if any(d is not None for d in dims[count:]):
            return batched_by(lambda *operands: _plain(operands, **params), axis, operands, dims)
        arrays = with_batch_first(operands[:count], dims[:count], axis.size)
        further = tuple(d + 1 for d in params["dimensions"])
        outs = self.bind(*arrays, *operands[count:], **{**params, "dimensions": further})
        return outs, [0] * count

    def lower(self, ctx: Any, *operands: Any, dimensions: Shape, jaxpr: Jaxpr) -> Any:
        scalars = [a.strip_weak_type() for a in jaxpr.in_avals]
        body = ctx.scalar_region(scalars, lambda *args: ctx.body(jaxpr, args, "reduce"))
        types = [ctx.mlir.type(a) for a in ctx.avals_out]
        return ctx.many("stablehlo.reduce", operands, types, [body], dimensions=dimensions)

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        """None: `cost` counts the operations of its jaxprs on each element."""
        return []

    def cost(self, *avals: ShapedArray, dimensions: Shape, jaxpr: Jaxpr) -> Cost:
        outs = self.shape_rule(*avals, dimensions=dimensions, jaxpr=jaxpr)
        return Cost(cost_of(jaxpr).flops * avals[0].size, sum(a.nbytes for a in (*avals, *outs)))


reduce_p: Final = Reduce()


# --- helpers


_MONOIDS = monoids_of(
    add=reduce_sum_p,
    mul=reduce_prod_p,
    max=reduce_max_p,
    min=reduce_min_p,
    bitwise_and=reduce_and_p,
    bitwise_or=reduce_or_p,
    bitwise_xor=reduce_xor_p,
)


def _with_start(found: Computation, monoid: Monoid, total: Any) -> Any:
    """A reduction with its initial value, once. XLA may apply one several times, and on a GPU it does."""
    if starts_with_identity(found, monoid):
        return total
    (eqn,), (start,) = found.jaxpr.eqns, found.starts
    return eqn.primitive.bind(broadcast_in_dim(start, aval_of(total).shape, ()), total)


def _rows(x: Any, axes: Shape) -> Any:
    """The array with the reduced dimensions merged into dimension 0."""
    shape = aval_of(x).shape
    kept = [d for d in range(len(shape)) if d not in axes]
    moved = transpose(x, (*sorted(axes), *kept))
    count = ShapedArray(tuple(shape[d] for d in axes), bool).size
    return reshape(moved, (count, *(shape[d] for d in kept)))


def _plain(operands: Values, *, dimensions: Shape, jaxpr: Jaxpr) -> list[Any]:
    count = len(operands) // 2
    return folded(jaxpr, (), [_rows(x, dimensions) for x in operands[:count]], operands[count:])
