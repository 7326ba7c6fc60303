"""cumsum, cumprod, cummax, cummin, cumlogsumexp: the running results of an associative operation along an axis.

They lower to a window that reaches back to the start, of which XLA makes a tree, or for long axes on the CPU to loops
over blocks. Derivatives are running results too, of
pairs (element, tangent).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from xlamini.core import Avals, Axis, Params, Primitive, ShapedArray, ShapeError, Values, aval_of, literal
from xlamini.core.errors import InconclusiveDimensionOperation
from xlamini.core.program.avals import as_dimension
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sizes.expression import SymbolicSize, is_less, max_size
from xlamini.primitives.base.dtype_kinds import FLOAT, INTEGER, NUMERIC, Kinds, kind_of
from xlamini.primitives.base.elementwise import Elementwise, mul
from xlamini.primitives.elementwise.arithmetic import abs, add, max, min
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.elementwise.exponential import exp, log
from xlamini.primitives.elementwise.logaddexp import logaddexp
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.loops.blocked_scan import CumulativeOperation, blocked_scan
from xlamini.primitives.forms.cpu.loops.integer_reduction import reduced_by_lanes
from xlamini.primitives.reductions.ordering import from_keys, highest, keys, lowest
from xlamini.primitives.reductions.prefix_scan import prefix_scan
from xlamini.primitives.reductions.reductions import check_kind, reduce_max_p, reduce_min_p, reduce_prod_p
from xlamini.primitives.shape.shape import broadcast_in_dim, reduce_sum_p, reshape, rev, squeeze
from xlamini.primitives.windows.geometry import pads_attribute
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


MANY, SHORT = 4096, 4
"""On the CPU an array of so many elements, whose axis is not short, is scanned in blocks: XLA's tree is slow there."""

Total = Callable[[Any], Any]


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The running sum along `axis`, from its end if `reverse`; TypeError for booleans, ShapeError for a bad axis.

    >>> cumsum(xlamini.numpy.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _bind(cumsum_p, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The running product along `axis`, from its end if `reverse`; TypeError for booleans.

    >>> lax.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _bind(cumprod_p, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The largest element so far along `axis`, from its end if `reverse`.

    >>> cummax(xlamini.numpy.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _bind(cummax_p, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest element so far along `axis`, from its end if `reverse`.

    >>> lax.cummin(jnp.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return _bind(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The running `log(sum(exp(x)))` along `axis`, without overflow; TypeError unless the operand is floating point.

    >>> jnp.exp(lax.cumlogsumexp(jnp.zeros(3))).round(2)
    Array([1., 2., 3.], dtype=float32)
    """
    return _bind(cumlogsumexp_p, operand, axis, reverse)


class Cumulative(Primitive):
    """`combine` is an associative operation, `start` makes its neutral element from a dtype.

    `total` is what it makes of all elements along axis 1.
    """

    accepts: Kinds
    combine: Elementwise
    start: Callable[[Any], Any]
    total: Total

    sharding: Sharding = same_dimensions(whole="axis")

    def __init__(
        self, name: str, combine: Elementwise, *, start: Callable[[Any], Any], total: Total, accepts: Kinds
    ):
        self.combine, self.start, self.total, self.accepts = combine, start, total, accepts
        super().__init__(name)

    def shape_rule(self, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_kind(self.name, x, self.accepts)
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{self.name}: axis {axis} does not fit {x.str_short()}; it takes 0 to {x.ndim - 1}")
        return x

    def jvp(self, primals: Values, tangents: Values, *, axis: int, reverse: bool) -> Any:
        x = aval_of(primals[0])
        if type(x.shape[axis]) is SymbolicSize:
            raise InconclusiveDimensionOperation(
                f"the derivative of {self.name} along axis {axis} of {x.str_short()}, of symbolic size, is a program "
                "that depends on the size; write the operation with lax.associative_scan, or export for a number"
            )
        turned = (lambda x: rev(x, (axis,))) if reverse else (lambda x: x)
        pairs = [turned(primals[0]), turned(tangents[0])]
        out, tangent = prefix_scan(self._combined_pairs, pairs, axis)
        return turned(out), turned(tangent)

    def _combined_pairs(self, left: Values, right: Values) -> tuple[Any, Any]:
        """`combine(x, y)` and its tangent, from pairs (x, tangent of x) and (y, tangent of y)."""
        return self.combine.jvp(*zip(left, right, strict=True))

    def batch(self, batch_axis: Axis, operands: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (dim,) = operands, dims
        return self.bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        (x,) = avals
        if x.size == 0:
            return Form(lambda x: x)
        by_blocks = platform.name == "cpu" and is_less(MANY - 1, x.size) and is_less(SHORT, x.shape[params["axis"]])
        return Form(functools.partial(self._by_blocks, **params)) if by_blocks else None

    def lower(self, ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        aval = ctx.aval_out
        reach = max_size(aval.shape[axis] - 1, 0)
        scalar = ShapedArray((), aval.dtype)
        body = ctx.scalar_region([scalar] * 2, lambda a, b: [ctx.inline(self.combine, a, b, avals=[scalar] * 2)])
        around = [((0, reach) if reverse else (reach, 0)) if d == axis else (0, 0) for d in range(aval.ndim)]
        return ctx.op(
            "stablehlo.reduce_window",
            x,
            ctx.constant(self.start(aval.dtype), scalar),
            regions=[body],
            window_dimensions=[reach + 1 if d == axis else 1 for d in range(aval.ndim)],
            padding=pads_attribute(tuple(around)),
        )

    def _by_blocks(self, x: Any, *, axis: int, reverse: bool) -> Any:
        shape, dtype = aval_of(x).shape, aval_of(x).dtype
        few = functools.partial(self.bind, axis=1, reverse=reverse)
        scan = CumulativeOperation(
            self.combine.bind, self.start(dtype), self.total, few, reverse, within_first=self.combine is add
        )
        lines = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
        return reshape(blocked_scan(scan, reshape(x, lines)), shape)


class CumSum(Cumulative):
    """Linear: its tangent is the running sum of tangents, its transpose the running sum from the other end."""

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Any, *, axis: int, reverse: bool) -> Values:
        return [self.bind(ct, axis=axis, reverse=not reverse)]


def _bind(primitive: Cumulative, operand: Any, axis: int, reverse: bool) -> Any:
    ndim = aval_of(operand).ndim
    return primitive.bind(operand, axis=as_dimension(axis, ndim), reverse=bool(reverse))


def _zero(dtype: Any) -> int:
    return 0


def _one(dtype: Any) -> int:
    return 1


def _reduced(reduction: Any) -> Total:
    def total(x: Any) -> Any:
        aval = aval_of(x)
        if aval.shape[2] > 1 or kind_of(aval.dtype) not in INTEGER:
            return reduction.bind(x, axes=(1,))
        return reduced_by_lanes(reduction, squeeze(x, (2,)), 1, 16)

    return total


def _extremum(reduction: Any) -> Total:
    return lambda x: from_keys(_reduced(reduction)(keys(x, reduction is reduce_max_p)), aval_of(x).dtype)


def _log_of_sum(x: Any) -> Any:
    shape = aval_of(x).shape
    x = squeeze(x, (2,)) if shape[2] == 1 else x  # with an axis of size 1 at the end XLA does not vectorise the sum
    largest = reduce_max_p.bind(x, axes=(1,))
    origin = where(lt(abs(largest), math.inf), largest, literal(0, aval_of(x).dtype))
    terms = exp(x - broadcast_in_dim(origin, aval_of(x).shape, (0, 2)[: aval_of(x).ndim - 1]))
    return reshape(log(reduce_sum_p.bind(terms, axes=(1,))) + origin, (shape[0], shape[2]))


cumsum_p: Final = CumSum("cumsum", add, start=_zero, total=_reduced(reduce_sum_p), accepts=NUMERIC)
cumprod_p: Final = Cumulative("cumprod", mul, start=_one, total=_reduced(reduce_prod_p), accepts=NUMERIC)
cummax_p: Final = Cumulative("cummax", max, start=lowest, total=_extremum(reduce_max_p), accepts=NUMERIC)
cummin_p: Final = Cumulative("cummin", min, start=highest, total=_extremum(reduce_min_p), accepts=NUMERIC)
cumlogsumexp_p: Final = Cumulative("cumlogsumexp", logaddexp, start=lowest, total=_log_of_sum, accepts=FLOAT)
