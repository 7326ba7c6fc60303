"""tile: an array laid side by side with itself along each dimension."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from xlamini.core import Avals, Axis, Factors, Params, Shape, ShapedArray, ShapeError, Values, alike, aval_of
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import MOVED
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.core.sizes.expression import as_size
from xlamini.primitives.base.linear_unary import LinearUnary
from xlamini.primitives.shape.shape import broadcast_in_dim, moveaxis, reshape, sum_over
from xlamini.runtime import Array


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """The array so many times along each of its dimensions; ShapeError unless `reps` has a count for each.

    >>> tile(xlamini.numpy.arange(2), (3,))
    Array([0, 1, 0, 1, 0, 1], dtype=int32)
    """
    return tile_p.bind(operand, reps=tuple(map(as_size, reps)))


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    return alike(avals, outs, [d for d, count in enumerate(params["reps"]) if count != 1])


class Tile(LinearUnary):
    name = "tile"
    sharding: Sharding = Sharding(factors=_factors, linear=JOINTLY)
    memory = MOVED

    def shape_rule(self, x: ShapedArray, *, reps: Shape) -> ShapedArray:
        if len(reps) != x.ndim or any(n < 0 for n in reps):
            raise ShapeError(
                f"tile: reps must have a count, 0 or more, for each dimension of {x.str_short(short_dtypes=False)}, "
                f"got {reps}; add dimensions with expand_dims"
            )
        return x.update(shape=tuple(n * count for n, count in zip(x.shape, reps, strict=True)))

    def transpose(self, ct: Any, x: Any, *, reps: Shape) -> Values:
        return [sum_over(reshape(ct, _laid_out(x.aval.shape, reps)), range(0, 2 * len(reps), 2))]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, reps: Shape) -> Any:
        return tile(moveaxis(operands[0], dims[0], 0), (1, *reps)), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(_side_by_side, **params))


tile_p: Final = Tile()


def _side_by_side(x: Any, reps: Shape) -> Any:
    shape, inner = aval_of(x).shape, range(1, 2 * len(reps), 2)
    whole = [n * count for n, count in zip(shape, reps, strict=True)]
    return reshape(broadcast_in_dim(x, _laid_out(shape, reps), inner), whole)


def _laid_out(shape: Shape, reps: Shape) -> Shape:
    """Each dimension of the result as two: the copy, and the index within it."""
    return tuple(n for pair in zip(reps, shape, strict=True) for n in pair)
