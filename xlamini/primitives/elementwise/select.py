"""Choices, elementwise: select_n between arrays by another one, clamp between bounds."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import (
    PURE,
    REMATERIALIZABLE,
    Avals,
    Axis,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    is_linear,
    is_zero,
    literal,
    tangent_aval,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.broadcasting import spread
from xlamini.primitives.base.dtype_kinds import ANY, BOOL, COMPLEX, INTEGER, kind_of
from xlamini.primitives.base.elementwise import Elementwise, add_any, elementwise, like_dtypes
from xlamini.primitives.base.tangent_ops import instantiated, zeros
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, lt
from xlamini.primitives.elementwise.complex import imag, real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.placement.reshard import scalars_as_sums
from xlamini.primitives.shape.shape import broadcast_in_dim
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def select_n(which: Any, *cases: Any) -> Array:
    """Element i of the result is element i of `cases[which[i]]`; `which` is bool (two cases) or an integer.

    `which` is a scalar or has the shape of the cases, which share one shape and dtype; else ShapeError. ValueError
    where there are no cases.

    >>> select_n(xlamini.numpy.array([True, False]), xlamini.numpy.zeros(2), xlamini.numpy.ones(2))
    Array([1., 0.], dtype=float32)
    """
    if not cases:
        raise ValueError("select_n: there is no case to select; give at least one")
    if kind_of(aval_of(which).dtype) in INTEGER:
        which = convert(which, np.dtype(np.int32))
    return select_n_p.bind(which, *like_dtypes(cases))


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """The elements of `on_true` where `pred` holds, and of `on_false` where not.

    `pred` is bool (or int32, where 0 does not hold): a scalar, or of the shape of the two arrays, which share one shape
    (else ShapeError) and dtype (else TypeError). `jnp.where` broadcasts and promotes.

    >>> select(xlamini.numpy.array([True, False]), xlamini.numpy.ones(2), xlamini.numpy.zeros(2))
    Array([1., 0.], dtype=float32)
    """
    on_true, on_false = like_dtypes((on_true, on_false))
    first, second = aval_of(on_true), aval_of(on_false)
    both = f"on_true is {first.str_short(short_dtypes=False)}, on_false is {second.str_short(short_dtypes=False)}"
    if first.shape != second.shape:
        raise ShapeError(f"select: on_true and on_false must share one shape, but {both}; jnp.where broadcasts")
    if first.dtype != second.dtype:
        raise TypeError(f"select: on_true and on_false must share one dtype, but {both}; jnp.where promotes")
    return select_n_p.bind(pred, on_false, on_true)


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, `y` otherwise; scalars broadcast (for use in rules)."""
    x, y = scalars_as_sums(like_dtypes((x, y)))
    shape = broadcast_shapes(*(aval_of(v).shape for v in (condition, x, y)))
    x, y = (spread(v, ShapedArray(shape, aval_of(v).dtype)) for v in (x, y))
    return select_n_p.bind(condition, y, x)


class SelectN(Primitive):
    traits = PURE | REMATERIALIZABLE
    name = "select_n"
    sharding: Sharding = same_dimensions(linear=(slice(1, None),))
    checks = NO_NEW_NAN

    def shape_rule(self, which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
        first = cases[0]
        if any(c.shape != first.shape or c.dtype != first.dtype for c in cases):
            found = ", ".join(c.str_short() for c in cases)
            raise ShapeError(f"select_n: the cases must share one shape and dtype, got {found}")
        if which.shape not in ((), first.shape):
            raise ShapeError(
                f"select_n: `which` must be a scalar or of the cases' shape {first.shape}, got {which.shape}"
            )
        if which.dtype not in (np.bool_, np.int32) or (which.dtype == np.bool_ and len(cases) > 2):
            raise TypeError(f"select_n: `which` must be bool with at most two cases, or an integer; got {which.dtype}")
        return ShapedArray(first.shape, first.dtype, all(c.weak_type for c in cases))

    def jvp(self, primals: Values, tangents: Values) -> Any:
        which, *cases = primals
        out = self.bind(which, *cases)
        if all(is_zero(t) for t in tangents[1:]):
            return out, Zero(tangent_aval(aval_of(out)))
        return out, self.bind(which, *map(instantiated, tangents[1:]))

    def transpose(self, ct: Any, which: Any, *cases: Any) -> Values:
        nothing = zeros(aval_of(ct))
        return [None] + [
            self.bind(which, *(ct if j == i else nothing for j in range(len(cases)))) if is_linear(c) else None
            for i, c in enumerate(cases)
        ]

    def batch(self, axis: Axis, operands: Values, dims: Dims) -> Any:
        which, *cases = operands
        if dims[0] is None and aval_of(which).ndim == 0:
            return self.bind(which, *with_batch_first(cases, dims[1:], axis.size)), 0
        which, *cases = with_batch_first(operands, dims, axis.size)
        if which.ndim == 1:
            which = broadcast_in_dim(which, aval_of(cases[0]).shape, (0,))
        return self.bind(which, *cases), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        which, *cases = avals
        return None if which.dtype == np.bool_ and len(cases) == 2 else Form(self._among)

    def lower(self, ctx: Any, which: Any, *cases: Any) -> Any:
        return ctx.op("stablehlo.select", which, cases[1], cases[0])

    def _among(self, which: Any, *cases: Any, first: int = 0) -> Any:
        """A binary tree of two-way selects."""
        if len(cases) == 1:
            return cases[0]
        half = len(cases) // 2
        below = lt(which, literal(first + half, aval_of(which).dtype))
        low = self._among(which, *cases[:half], first=first)
        return self.bind(below, self._among(which, *cases[half:], first=first + half), low)


select_n_p: Final = SelectN()


class Clamp(Elementwise):
    """A tangent goes to the operand whose value is the result."""

    checks = NO_NEW_NAN

    def jvp(self, primals: Values, tangents: Values) -> Any:
        low, x, high = primals
        out = self.bind(*primals)
        aval = tangent_aval(aval_of(out))
        less = functools.partial(by_parts, lt) if kind_of(aval.dtype) in COMPLEX else lt
        decides = (
            lambda: bitwise_and(less(x, low), less(low, high)),
            lambda: bitwise_and(less(low, x), less(x, high)),
            lambda: less(high, x),
        )
        terms = [where(d(), t, 0) for d, t in zip(decides, tangents, strict=True) if not is_zero(t)]
        return out, functools.reduce(add_any, [spread(t, aval) for t in terms]) if terms else Zero(aval)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        """XLA clamps no booleans and no complex numbers."""
        out = self.shape_rule(*avals)
        compute = {BOOL: _between, COMPLEX: _within}.get(kind_of(out.dtype))
        return compute and Form(lambda *operands: compute(*[spread(x, out) for x in operands]))

    def lower(self, ctx: Any, low: Any, x: Any, high: Any) -> Any:
        if ctx.avals_in[1].shape != ctx.aval_out.shape:
            low, x, high = self.broadcast_operands(ctx, (low, x, high))
        return ctx.op("stablehlo.clamp", low, x, high)


def _between(low: Any, x: Any, high: Any) -> Any:
    return bitwise_and(bitwise_or(x, low), high)


def _within(low: Any, x: Any, high: Any) -> Any:
    """The clamped complex numbers, ordered by real part, then by imaginary part."""
    x = where(by_parts(lt, x, low), low, x)
    return where(by_parts(lt, high, x), high, x)


def by_parts(compare: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """The comparison of complex numbers by their real parts, and of those with equal ones by their imaginary parts."""
    left, right = real(x), real(y)
    decided = compare(imag(x), imag(y))
    return where(eq(left, right), decided, compare(left, right))


@elementwise(family=Clamp, accepts=ANY)
def clamp_p(min: Any, x: Any, max: Any) -> Any:
    """The operand within bounds."""


clamp_p.name = "clamp"


def clamp(min: Any, x: Any, max: Any) -> Array:
    """x limited to the range from min to max; where min is above max, the result is max.

    Each bound is a scalar or has the shape of x (else ShapeError), and all have one dtype.

    >>> clamp(0.0, xlamini.numpy.array([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    shape = aval_of(x).shape
    for name, bound in (("min", min), ("max", max)):
        found = aval_of(bound).shape
        if found not in ((), shape):
            raise ShapeError(
                f"clamp: {name} must be a scalar or have the shape of x, {shape}, but has shape {found}; "
                "broadcast it with broadcast_to first"
            )
    return clamp_p(min, x, max)
