"""cumsum, cumprod, cummax, cummin, cumlogsumexp: the running results of an associative operation along an axis.

They lower to a window that reaches back to the start; XLA makes a tree of it. Derivatives are running results too, of
pairs (element, tangent).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShapeError
from xlamini.core.primitive import Axis, Primitive
from xlamini.core.tracer import aval_of, literal
from xlamini.primitives.arithmetic import add, max, min
from xlamini.primitives.elementwise import FLOAT, NUMERIC, REAL, Elementwise, Kinds, mul
from xlamini.primitives.logaddexp import logaddexp
from xlamini.primitives.ordering import highest, lowest
from xlamini.primitives.pad import pad
from xlamini.primitives.prefix_scan import prefix_scan
from xlamini.primitives.reductions import check_kind
from xlamini.primitives.shape import broadcast_in_dim, reshape, rev
from xlamini.primitives.slice import slice_in_dim

BLOCK, BLOCKS_ABOVE = 512, 4096
"""On the CPU a longer last axis is cut into rows of this size, whose running results are then joined."""


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running sum along `axis`, from its end if `reverse`; TypeError for booleans, ShapeError for a bad axis.

    >>> cumsum(xlamini.numpy.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _bind(cumsum_p, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running product along `axis`, from its end if `reverse`; TypeError for booleans."""
    return _bind(cumprod_p, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The largest element so far along `axis`, from its end if `reverse`.

    >>> cummax(xlamini.numpy.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _bind(cummax_p, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The smallest element so far along `axis`, from its end if `reverse`."""
    return _bind(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running `log(sum(exp(x)))` along `axis`, without overflow; TypeError unless the operand is floating point."""
    return _bind(cumlogsumexp_p, operand, axis, reverse)


class Cumulative(Primitive):
    """`combine` is an associative operation, `start` makes its neutral element from a dtype."""

    def __init__(self, name: str, combine: Elementwise, *, start: Callable[[Any], Any], accepts: Kinds):
        self.combine, self.start, self.accepts = combine, start, accepts
        super().__init__(name)

    def shape_rule(self, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_kind(self.name, x, self.accepts)
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{self.name}: axis {axis} does not fit {x.str_short()}; it takes 0 to {x.ndim - 1}")
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool) -> Any:
        out = self.bind(*primals, axis=axis, reverse=reverse)
        turned = (lambda x: rev(x, (axis,))) if reverse else (lambda x: x)
        pairs = [turned(primals[0]), turned(tangents[0])]
        _, tangent = prefix_scan(self._combined_pairs, pairs, axis)
        return out, turned(tangent)

    def _combined_pairs(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, Any]:
        """`combine(x, y)` and its tangent, from pairs (x, tangent of x) and (y, tangent of y)."""
        return self.combine.jvp(*zip(left, right, strict=True))

    def batch(self, batch_axis: Axis, operands: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (dim,) = operands, dims
        return self.bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    def lower(self, ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        aval = ctx.aval_out
        if aval.size == 0:
            return x
        if ctx.platform == "cpu" and axis == aval.ndim - 1 and aval.shape[axis] > BLOCKS_ABOVE:
            return ctx.inline(functools.partial(self._by_blocks, reverse=reverse), x)
        reach = aval.shape[axis] - 1
        scalar = ShapedArray((), aval.dtype)
        body = ctx.scalar_region([scalar] * 2, lambda a, b: [ctx.inline(self.combine, a, b, avals=[scalar] * 2)])
        around = [((0, reach) if reverse else (reach, 0)) if d == axis else (0, 0) for d in range(aval.ndim)]
        return ctx.op(
            "stablehlo.reduce_window",
            x,
            ctx.constant(self.start(aval.dtype), scalar),
            regions=[body],
            window_dimensions=[n if d == axis else 1 for d, n in enumerate(aval.shape)],
            padding=f"dense<{np.array(around).tolist()}> : tensor<{aval.ndim}x2xi64>",
        )

    def _by_blocks(self, x: Any, *, reverse: bool) -> Any:
        """Along the last axis: running results within rows, each joined with that of the rows before it."""
        *outer, size = aval_of(x).shape
        rows = -(-size // BLOCK)
        missing = rows * BLOCK - size
        x = self._padded(x, (missing, 0) if reverse else (0, missing))
        inner = (*outer, rows, BLOCK)
        x = self.bind(reshape(x, inner), axis=len(outer) + 1, reverse=reverse)
        ends = slice_in_dim(x, *((0, 1) if reverse else (-1, None)), axis=-1)
        totals = self.bind(reshape(ends, inner[:-1]), axis=len(outer), reverse=reverse)
        before = self._padded(totals, (-1, 1) if reverse else (1, -1))
        joined = self.combine(broadcast_in_dim(before, inner, range(len(outer) + 1)), x)
        start = missing if reverse else 0
        return slice_in_dim(reshape(joined, (*outer, rows * BLOCK)), start, start + size, axis=-1)

    def _padded(self, x: Any, around: tuple[int, int]) -> Any:
        """Neutral elements put before and after (or elements cut off there) along the last axis."""
        aval = aval_of(x)
        config = [(0, 0, 0)] * (aval.ndim - 1) + [(*around, 0)]
        return pad(x, literal(self.start(aval.dtype), aval.dtype), config)


class CumSum(Cumulative):
    """Linear: its tangent is the running sum of tangents, its transpose the running sum from the other end."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Any, *, axis: int, reverse: bool) -> list[Any]:
        return [self.bind(ct, axis=axis, reverse=not reverse)]


def _bind(primitive: Cumulative, operand: Any, axis: int, reverse: bool) -> Any:
    ndim = aval_of(operand).ndim
    return primitive.bind(operand, axis=axis + ndim if axis < 0 else int(axis), reverse=bool(reverse))


def _zero(dtype: Any) -> int:
    return 0


def _one(dtype: Any) -> int:
    return 1


cumsum_p = CumSum("cumsum", add, start=_zero, accepts=NUMERIC)
cumprod_p = Cumulative("cumprod", mul, start=_one, accepts=NUMERIC)
cummax_p = Cumulative("cummax", max, start=lowest, accepts=REAL)
cummin_p = Cumulative("cummin", min, start=highest, accepts=REAL)
cumlogsumexp_p = Cumulative("cumlogsumexp", logaddexp, start=lowest, accepts=FLOAT)
