"""Elementwise arithmetic: sums, products, quotients, extrema, magnitudes.

`mul` and `neg` are defined in elementwise.py, because the family's own rules use them.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

from xlamini.core import Avals, Literal, Params, ShapedArray, Values, Zero, aval_of, is_zero, literal, tangent_aval
from xlamini.core.dtypes.limits import finfo
from xlamini.core.program.checks import KEEPS_NAN, NO_NEW_NAN, Checks, Failure
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import Memory
from xlamini.core.sharding.partial_sums import IN_FIRST, JOINTLY
from xlamini.primitives.base.broadcasting import spread, stretched
from xlamini.primitives.base.dtype_kinds import ANY, COMPLEX, FLOAT, INTEGER, REAL, SIGNED, UNSIGNED, kind_of
from xlamini.primitives.base.elementwise import Elementwise, elementwise, mul, neg
from xlamini.primitives.elementwise.comparison import eq, ge, gt, lt
from xlamini.primitives.elementwise.complex import conj, part_dtype, real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.rounding import floor
from xlamini.primitives.elementwise.select import by_parts, where

__all__ = ["abs", "add", "div", "max", "min", "mul", "mulhi", "neg", "rem", "sign", "sub"]


@elementwise(hlo="stablehlo.add", accepts=ANY, linear=JOINTLY)
def add(x: Any, y: Any) -> Any:
    """Addition, elementwise: `x + y`.

    >>> lax.add(1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """


add.checks = KEEPS_NAN
add.derivatives(lambda x, y, out: 1, lambda x, y, out: 1)


@add.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return ct, ct


@elementwise(hlo="stablehlo.subtract", linear=JOINTLY)
def sub(x: Any, y: Any) -> Any:
    """Subtraction, elementwise: `x - y`.

    >>> lax.sub(3.0, 1.0)
    Array(2., dtype=float32, weak_type=True)
    """


sub.checks = KEEPS_NAN
sub.derivatives(lambda x, y, out: 1, lambda x, y, out: -1)


@sub.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return ct, neg(ct)


@elementwise(hlo="chlo.mulhi", accepts=INTEGER)
def mulhi(x: Any, y: Any, /) -> Any:
    """The upper half of the bits of the product of two integers, which has twice their width, elementwise.

    >>> mulhi(2**30, 8)
    Array(2, dtype=int32, weak_type=True)
    """


def _by_zero(index: Sequence[int], payload: Sequence[Any]) -> str:
    return "division by zero"


def _divided_by_zero(operands: Values, outs: Values, **params: Any) -> Sequence[Failure]:
    by = operands[1]
    if type(by) is Literal and by.val:
        return []
    return [Failure("div", eq(by, literal(0, aval_of(by).dtype)), _by_zero)]


class Remainder(Elementwise):
    """An operation that is undefined where the second operand is zero."""

    checks: Checks = Checks(failures=_divided_by_zero)


class Quotient(Remainder):
    """Division; its derivatives follow from those of `out * y = x`."""

    memory: Memory = Memory(divides=True)
    checks: Checks = Checks(keeps_nan=True, failures=_divided_by_zero)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        """`dout = (dx - out dy) / y`, so that the cotangents of both operands share one division."""
        if any(map(is_zero, tangents)):
            return super().jvp(primals, tangents, **params)
        out, (dx, dy) = self.bind(*primals), tangents
        aval = aval_of(out)
        rest = sub(spread(dx, aval), spread(mul(dy, out), aval))
        return out, div(rest, stretched(primals[1], aval))

    def next_derivative(self, operands: Sequence[Values], out: Values, **params: Any) -> Any:
        (xs, ys), order = operands, len(out)
        rest = xs[order] if order < len(xs) else None
        for i in range(1, min(order + 1, len(ys))):
            term = mul(ys[i], out[order - i])
            term = term if comb(order, i) == 1 else mul(term, float(comb(order, i)))
            rest = neg(term) if rest is None else sub(rest, term)
        return div(rest, ys[0])


@elementwise(hlo="stablehlo.divide", family=Quotient, linear=IN_FIRST)
def div(x: Any, y: Any) -> Any:
    """Division, elementwise; between integers it rounds towards zero.

    >>> div(-7, 2)
    Array(-3, dtype=int32, weak_type=True)
    """


div.derivatives(lambda x, y, out: lambda t: div(t, y), lambda x, y, out: -out / y)


@div.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return div(ct, y), None


@elementwise(hlo="stablehlo.remainder", accepts=REAL, family=Remainder)
def rem(x: Any, y: Any) -> Any:
    """The elementwise remainder of x / y, with the quotient rounded towards zero; it has the sign of x.

    >>> rem(-7, 3)
    Array(-1, dtype=int32, weak_type=True)
    """


rem.derivatives(lambda x, y, out: 1, lambda x, y, out: -_towards_zero(x / y))


def _towards_zero(x: Any) -> Any:
    return sign(x) * floor(abs(x))


class Abs(Elementwise):
    """Real also for complex operands, where the derivative is a projection onto the direction of x."""

    checks = NO_NEW_NAN

    def result(self, aval: ShapedArray, **params: Any) -> ShapedArray:
        return aval.update(dtype=part_dtype(aval.dtype))

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = abs(x)
        if is_zero(t):
            return out, Zero(tangent_aval(aval_of(out)))
        if kind_of(aval_of(x).dtype) in COMPLEX:
            length = where(eq(out, 0), 1, out)
            return out, real(t * (conj(x) / convert(length, aval_of(x).dtype)))
        return out, where(ge(x, 0), t, neg(t))


@elementwise(family=Abs, hlo="stablehlo.abs", accepts=SIGNED | FLOAT | COMPLEX)
def abs(x: Any) -> Any:
    """Absolute value, elementwise; of a complex number its length, which is real.

    The derivative at 0 is 1 for real numbers and 0 for complex ones.

    >>> lax.abs(-2.0)
    Array(2., dtype=float32, weak_type=True)
    """


class Sign(Elementwise):
    """StableHLO has no sign of unsigned integers, which is 0 or 1."""

    checks = NO_NEW_NAN

    def lower(self, ctx: Any, x: Any) -> Any:
        if kind_of(ctx.aval_out.dtype) in UNSIGNED:
            return ctx.op("stablehlo.minimum", x, ctx.constant(1, ctx.aval_out))
        return super().lower(ctx, x)


@elementwise(family=Sign, hlo="stablehlo.sign")
def sign(x: Any) -> Any:
    """-1, 0 or 1 as x is negative, zero or positive, elementwise; x / |x| for complex x. Its derivative is 0.

    >>> lax.sign(-2.0)
    Array(-1., dtype=float32, weak_type=True)
    """


sign.derivatives(lambda x, out: 0)


class Extremum(Elementwise):
    """Maximum or minimum; complex numbers are ordered by real part, then by imaginary part."""

    checks = NO_NEW_NAN

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        return Form(self._ordered) if kind_of(avals[0].dtype) in COMPLEX else None

    def _ordered(self, x: Any, y: Any) -> Any:
        return where(by_parts(gt if self is max else lt, x, y), x, y)


def _share(before: Any, x: Any, y: Any) -> Any:
    """The derivative of an extremum in x: 1 where x alone is the extremum, 1/2 on a tie with y, 0 otherwise.

    It compares the operands, so that the extremum itself is not computed for it again. It selects tangents, and does
    not multiply them by 0: the root of `max(x, 0)` has an infinite slope at 0, but none in a negative x.
    """
    first = by_parts(before, x, y) if kind_of(aval_of(x).dtype) in COMPLEX else before(x, y)
    return lambda tangent: where(first, tangent, where(eq(x, y), mul(tangent, 0.5), 0))


@elementwise(family=Extremum, hlo="stablehlo.maximum", accepts=ANY)
def max(x: Any, y: Any) -> Any:
    """The larger of two values, elementwise; NaN if either is NaN. Equal ones share the derivative.

    >>> lax.max(1.0, 2.0)
    Array(2., dtype=float32, weak_type=True)
    """


max.derivatives(lambda x, y, out: _share(gt, x, y), lambda x, y, out: _share(gt, y, x))


@elementwise(family=Extremum, hlo="stablehlo.minimum", accepts=ANY)
def min(x: Any, y: Any) -> Any:
    """The smaller of two values, elementwise; NaN if either is NaN. Equal ones share the derivative.

    >>> lax.min(1.0, 2.0)
    Array(1., dtype=float32, weak_type=True)
    """


min.derivatives(lambda x, y, out: _share(lt, x, y), lambda x, y, out: _share(lt, y, x))


@elementwise(accepts=FLOAT)
def bounded(x: Any, *, low: float | None, high: float | None) -> Any:
    """The nearest number between bounds, one of which may be None, for formulas that are flat beyond them.

    The derivative is 1 everywhere: that of what is made of the result is 0 there, and comparisons would cost more than
    the formula.
    """


@bounded.formula
def _(x: Any, *, low: float | None, high: float | None) -> Any:
    below = x if high is None else min(x, high)
    return below if low is None else max(below, low)


bounded.checks = NO_NEW_NAN
bounded.derivatives(lambda x, out, low, high: 1)


def finite(x: Any) -> Any:
    """x with the lowest and the largest number of its dtype in place of infinities."""
    largest = float(finfo(aval_of(x).dtype).max)
    return bounded(x, low=-largest, high=largest)
