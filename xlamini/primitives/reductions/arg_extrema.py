"""argmax and argmin: where the extremum is; the first place if there are several, the first NaN if there is one."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    check_user_dtype,
    iinfo,
    tangent_aval,
)
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import READ
from xlamini.core.sharding.facet import reduced_dimensions
from xlamini.primitives.base.dtype_kinds import BOOL, INTEGER, REAL, kind_of
from xlamini.primitives.elementwise.arithmetic import min
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, gt, lt, ne
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.loops.block_extrema import block_extrema, block_size, windows
from xlamini.primitives.forms.cpu.loops.whole_bytes import has_part_bytes, in_whole_bytes
from xlamini.primitives.reductions.reductions import Reduction, check_kind, reduce_max_p, reduce_min_p
from xlamini.primitives.shape.shape import reshape
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


SHORT, FEW = 28, 4096
"""Along longer axes of arrays with more elements the CPU looks for a block first: it is slow at reducing pairs."""


def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Index of the largest element along `axis`, as `index_dtype`; of the first NaN if there is one.

    Raises ShapeError if the operand has no such axis or no element along it, TypeError if `index_dtype` is no integer.

    >>> argmax(xlamini.numpy.array([[1, 5], [3, 2]]), 1, np.int32)
    Array([1, 0], dtype=int32)
    """
    return argmax_p.bind(operand, axes=(operator.index(axis),), index_dtype=check_user_dtype(index_dtype, "argmax"))


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Index of the smallest element along `axis`, as `index_dtype`; of the first NaN if there is one.

    Raises ShapeError if the operand has no such axis or no element along it, TypeError if `index_dtype` is no integer.

    >>> argmin(xlamini.numpy.array([[1, 5], [3, 2]]), 1, np.int32)
    Array([0, 1], dtype=int32)
    """
    return argmin_p.bind(operand, axes=(operator.index(axis),), index_dtype=check_user_dtype(index_dtype, "argmin"))


class PairReduction(Primitive):
    """An arg extremum as one reduction over pairs (element, index)."""

    better: Any
    extremum: Reduction
    start: Callable[[Any], Any]

    sharding: Sharding = reduced_dimensions("axes")
    memory = READ

    def __init__(self, name: str, *, extremum: Reduction, better: Any):
        self.extremum, self.start, self.better = extremum, extremum.start, better
        super().__init__(name)

    def shape_rule(self, x: ShapedArray, *, axes: Shape, index_dtype: Any) -> ShapedArray:
        check_kind(self.name, x, REAL | BOOL)
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{self.name}: axis {axis} does not fit {x.str_short()}; it takes 0 to {x.ndim - 1}")
        if not x.shape[axis]:
            raise ShapeError(f"{self.name}: axis {axis} of {x.str_short()} is empty, so no element is the extremum")
        kind = kind_of(index_dtype)
        if kind is None or kind not in INTEGER:
            raise TypeError(f"{self.name}: index_dtype must be an integer dtype, got {index_dtype}")
        if x.shape[axis] - 1 > iinfo(index_dtype).max:
            raise OverflowError(
                f"{self.name}: {np.dtype(index_dtype)} cannot count the {x.shape[axis]} elements along axis {axis}; "
                "give a wider index_dtype (64-bit dtypes need enable_x64)"
            )
        return ShapedArray((*x.shape[:axis], *x.shape[axis + 1 :]), index_dtype)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(tangent_aval(aval_of(out)))

    def transpose(self, ct: Any, x: Any, **params: Any) -> NoReturn:
        raise AssertionError(f"{self.name} is not linear")

    def batch(self, axis: Axis, operands: Any, dims: Any, *, axes: Shape, index_dtype: Any) -> Any:
        (x,), (dim,) = operands, dims
        moved = axes[0] + (axes[0] >= dim)
        return self.bind(x, axes=(moved,), index_dtype=index_dtype), dim - (moved < dim)

    def lower(self, ctx: Any, x: Any, *, axes: Shape, index_dtype: Any) -> Any:
        (aval,), (axis,) = ctx.avals_in, axes
        out = aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))
        places = ctx.op("stablehlo.iota", avals=[aval.update(dtype=index_dtype)], iota_dimension=f"{axis} : i64")
        scalars = [ShapedArray((), aval.dtype), ShapedArray((), index_dtype)]
        starts = [ctx.constant(v, a) for v, a in zip((self.start(aval.dtype), 0), scalars, strict=True)]
        choose = self._chosen_in_any_order if ctx.reorders else self._chosen
        body = ctx.scalar_region(scalars * 2, lambda *pairs: ctx.inline(choose, *pairs, avals=scalars * 2))
        outs = [out, out.update(dtype=index_dtype)]
        return ctx.op("stablehlo.reduce", x, places, *starts, avals=outs, regions=[body], dimensions=[axis])[1]

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return Cost(x.size, x.nbytes + self.shape_rule(x, **params).nbytes)

    def _chosen(self, a: Any, i: Any, b: Any, j: Any) -> list[Any]:
        """Combine two pairs (element, index): the winner of the two, the first on a tie."""
        wins = bitwise_or(self.better(a, b), ne(a, a))
        first = bitwise_or(wins, bitwise_and(eq(a, b), lt(i, j)))
        return [where(wins, a, b), where(first, i, j)]

    def _chosen_in_any_order(self, a: Any, i: Any, b: Any, j: Any) -> list[Any]:
        """The same where the second pair may come from an earlier element: of two NaNs too the first."""
        both = bitwise_and(ne(a, a), ne(b, b))
        wins = bitwise_and(bitwise_or(self.better(a, b), ne(a, a)), eq(b, b))
        first = bitwise_or(wins, bitwise_and(bitwise_or(eq(a, b), both), lt(i, j)))
        return [where(wins, a, b), where(first, i, j)]


class ArgExtremum(PairReduction):
    """On the CPU, where reductions of pairs are slow, by two of them over fewer elements."""

    def __init__(self, name: str, *, extremum: Reduction, better: Any):
        self.in_pairs: PairReduction = PairReduction(f"{name}_in_pairs", extremum=extremum, better=better)
        super().__init__(name, extremum=extremum, better=better)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        (x,), (axis,) = avals, params["axes"]
        if has_part_bytes(avals):
            return Form(partial(in_whole_bytes, partial(self.bind, **params)))
        by_blocks = platform.name == "cpu" and x.shape[axis] >= SHORT and x.size >= FEW
        return Form(partial(self._by_blocks, **params)) if by_blocks else None

    def _by_blocks(self, x: Any, *, axes: Shape, index_dtype: Any) -> Any:
        """First in which block, then where in that one; see block_extrema.py."""
        shape, (axis,) = aval_of(x).shape, axes
        n = shape[axis]
        size, index = block_size(n), np.dtype(np.int32 if n <= iinfo(np.int32).max else np.int64)
        x = reshape(x, (math.prod(shape[:axis]), n, math.prod(shape[axis + 1 :])))
        block = self.in_pairs.bind(block_extrema(self.extremum, x, size), axes=(1,), index_dtype=index)
        # The last block ends with the axis: the one before it has already covered the elements they share.
        start = min(block * size, n - size)
        within = self.in_pairs.bind(windows(x, start, size), axes=(2,), index_dtype=index)
        return convert(reshape(start + within, (*shape[:axis], *shape[axis + 1 :])), index_dtype)


argmax_p: Final = ArgExtremum("argmax", extremum=reduce_max_p, better=gt)
argmin_p: Final = ArgExtremum("argmin", extremum=reduce_min_p, better=lt)
