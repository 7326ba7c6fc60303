"""stack and unstack: arrays of one shape joined along a new axis, and an array parted along one. Adjoint to another."""
from __future__ import annotations

import operator
from functools import partial
from typing import Any, Final

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Factors,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    alike,
    aval_of,
    dims,
    is_linear,
    reducing,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import MOVED
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.linear_unary import LinearUnary
from xlamini.primitives.base.tangent_ops import instantiated
from xlamini.primitives.shape.concatenate import concatenate_p
from xlamini.primitives.shape.joined_rows import is_rows
from xlamini.primitives.shape.shape import expand_dims, moveaxis
from xlamini.primitives.shape.slice import index_in_dim, inserted
from xlamini.runtime import Array


def stack(operands: Values, axis: int = 0) -> Array:
    """Join arrays of one shape and dtype along a new axis, at `axis` of the result.

    ShapeError where shapes differ, TypeError where dtypes do, ValueError for no array at all.

    >>> stack([xlamini.numpy.arange(2), xlamini.numpy.arange(2)], 1)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    if is_rows(operands):
        return moveaxis(operands, 0, _checked_axis("stack", axis, aval_of(operands).ndim))
    operands = list(operands)
    if not operands:
        raise ValueError("stack: there are no operands; give at least one array")
    return stack_p.bind(*operands, axis=_checked_axis("stack", axis, aval_of(operands[0]).ndim + 1))


def _stacked(avals: Avals, outs: Avals, params: Params) -> Factors:
    labels = dims(avals[0])
    return Factors([labels] * len(avals), [inserted(labels, params["axis"], None)])


class Stack(Primitive):
    name = "stack"
    sharding: Sharding = Sharding(factors=_stacked, linear=JOINTLY)
    memory = MOVED
    checks = NO_NEW_NAN

    def shape_rule(self, *avals: ShapedArray, axis: int) -> ShapedArray:
        first, found = avals[0], ", ".join(a.str_short(short_dtypes=False) for a in avals)
        if any(a.shape != first.shape for a in avals):
            raise ShapeError(f"stack: the operands must have one shape, got {found}; broadcast them first")
        if any(a.dtype != first.dtype for a in avals):
            raise TypeError(f"stack: dtypes differ: {found}; convert them with .astype first")
        weak = all(a.weak_type for a in avals)
        return first.update(shape=inserted(first.shape, axis, len(avals)), weak_type=weak)

    def jvp(self, primals: Values, tangents: Values, *, axis: int) -> Any:
        return self.bind(*primals, axis=axis), self.bind(*map(instantiated, tangents), axis=axis)

    def transpose(self, ct: Any, *operands: Any, axis: int) -> Values:
        return [x if is_linear(o) else None for x, o in zip(unstack_p.bind(ct, axis=axis), operands, strict=True)]

    def batch(self, _axis: Axis, operands: Values, dims: Dims, *, axis: int) -> Any:
        return self.bind(*with_batch_first(operands, dims, _axis.size), axis=axis + 1), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(_joined, **params))

    def cost(self, *avals: ShapedArray, axis: int) -> Cost:
        return super().cost(*avals, axis=axis)._replace(flops=0)


stack_p: Final = Stack()


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of an array along `axis`, without that axis; ValueError if there is none.

    >>> unstack(xlamini.numpy.ones((2, 3)), axis=1)[0]
    Array([1., 1.], dtype=float32)
    """
    return tuple(unstack_p.bind(x, axis=_checked_axis("unstack", axis, aval_of(x).ndim)))


def _unstacked(avals: Avals, outs: Avals, params: Params) -> Factors:
    axis = params["axis"]
    rest = reducing(avals[0], [axis], len(outs))
    return rest._replace(operands=alike(avals, [], [axis]).operands)


class Unstack(LinearUnary):
    name = "unstack"
    multiple_results = True
    sharding: Sharding = Sharding(factors=_unstacked, linear=JOINTLY)
    memory = MOVED

    def shape_rule(self, x: ShapedArray, *, axis: int) -> list[ShapedArray]:
        return [x.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))] * x.shape[axis]

    def transpose(self, cts: Values, x: Any, *, axis: int) -> Values:
        return [stack_p.bind(*map(instantiated, cts), axis=axis)]

    def batch(self, _axis: Axis, operands: Any, dims: Any, *, axis: int) -> Any:
        outs = self.bind(moveaxis(operands[0], dims[0], 0), axis=axis + 1)
        return outs, [0] * len(outs)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(_parted, **params))


unstack_p: Final = Unstack()


def _joined(*arrays: Any, axis: int) -> Any:
    return concatenate_p.bind(*[expand_dims(x, (axis,)) for x in arrays], dimension=axis)


def _parted(x: Any, axis: int) -> list[Any]:
    return [index_in_dim(x, i, axis, keepdims=False) for i in range(aval_of(x).shape[axis])]


def _checked_axis(name: str, axis: int, ndim: int) -> int:
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        takes = f"it takes {-ndim} to {ndim - 1}" if ndim else "a scalar has none"
        raise ValueError(f"{name}: axis {number} is out of range for rank {ndim}; {takes}")
    return number % ndim
