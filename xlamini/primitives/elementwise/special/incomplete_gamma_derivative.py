"""Derivatives in the parameter a, of the incomplete gamma function and of a gamma distribution's samples.

The sums of incomplete_gamma.py, differentiated term by term. At a fixed value of P(a, x), the sample x moves by
`-dP/da / (dP/dx)`: there the density cancels, so that nothing underflows.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.comparison import eq, ge, gt
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp, log
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.formula import Formula, epsilon, iterate
from xlamini.primitives.elementwise.special.gamma import digamma, lgamma, not_differentiable
from xlamini.primitives.elementwise.special.incomplete_gamma import MOST_TERMS, igamma, igammac, log_density, regions
from xlamini.primitives.elementwise.special.stirling import LARGE, digamma_excess, log_ratio
from xlamini.primitives.elementwise.special.uniform_gamma import uniform_slope


@elementwise(family=Formula, accepts=FLOAT, flops=30 * TRANSCENDENTAL)
def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of `igamma(a, x)` in a, elementwise.

    >>> igamma_grad_a(1.0, 1.0)
    Array(-0.43172976, dtype=float32, weak_type=True)
    """


@elementwise(family=Formula, accepts=FLOAT, flops=30 * TRANSCENDENTAL)
def random_gamma_grad(a: Any, x: Any) -> Any:
    """The derivative in a of a sample x of the gamma distribution with parameter a, elementwise.

    >>> random_gamma_grad(1.0, 1.0)
    Array(1.1735631, dtype=float32, weak_type=True)
    """


@igamma_grad_a.formula
def _(a: Any, x: Any) -> Any:
    slope = _sample_slope(a, x)
    return _inside(a, x, where(eq(slope, 0), 0.0, -slope * exp(log_density(a, x)) * (a / x)))


@random_gamma_grad.formula
def _(a: Any, x: Any) -> Any:
    return _inside(a, x, _sample_slope(a, x))


def _sample_slope(a: Any, x: Any) -> Any:
    near_large, above, below = regions(a, x)
    out = where(above, _from_upper(a, x, above), _from_lower(a, x, below))
    return where(near_large, uniform_slope(a, x, near_large), out)


def _from_lower(a: Any, x: Any, needed: Any) -> Any:
    a, x = where(needed, a, 1.0), where(needed, x, 0.0)
    total, slope = _lower_sum_slope(a, x)
    ratio = x / a
    return where(eq(ratio, 0), 0.0, -ratio * (slope + total * _log_density_slope(a, x)))


def _from_upper(a: Any, x: Any, needed: Any) -> Any:
    a, x = where(needed, a, 1.0), where(needed, x, 2.0)
    total, slope = _upper_sum_slope(a, x)
    return x * (slope + total * (_log_density_slope(a, x) + 1 / a))


def _log_density_slope(a: Any, x: Any) -> Any:
    """`log(x) - digamma(a + 1)`, which is small where x is near a."""
    large = where(a >= LARGE, a, LARGE)
    far = log_ratio(x, large) - digamma_excess(large)
    return where(a >= LARGE, far, log(x) - digamma(a + 1))


def _lower_sum_slope(a: Any, x: Any) -> tuple[Any, Any]:
    """`lower_sum`, and its derivative in a."""

    def step(n: Any, term: Any, slope: Any, total: Any, slopes: Any) -> tuple[Any, ...]:
        share = 1 / (a + n)
        slope = (slope - term * share) * (x * share)
        term = term * (x * share)
        going = abs(slope) > epsilon(x) * abs(slopes)
        return going, term, slope, total + term, slopes + slope

    one = where(eq(x, x), 1.0, x)
    _, _, total, slope = iterate(step, one, one - 1, one, one - 1, limit=MOST_TERMS)
    return total, slope


def _upper_sum_slope(a: Any, x: Any) -> tuple[Any, Any]:
    """`upper_sum`, and its derivative in a."""
    first = x + 1 - a

    def step(n: Any, ratio: Any, term: Any, total: Any, dratio: Any, dterm: Any, dtotal: Any) -> tuple[Any, ...]:
        b = first + 2 * n
        outer, inner = 1 / b, 1 / (b - 2)
        factor = (n * inner) * ((n - a) * outer)
        dfactor = factor * (outer + inner) - (n * inner) * outer
        share = factor * (1 + ratio)
        scale = 1 / (1 - share)
        dratio = (dfactor * (1 + ratio) + factor * dratio) * scale * scale
        ratio = share * scale
        dterm = dratio * term + ratio * dterm
        term = ratio * term
        going = abs(dterm) > epsilon(x) * abs(dtotal)
        return going, ratio, term, total + term, dratio, dterm, dtotal + dterm

    one = where(eq(x, x), 1.0, x)
    zero = one - 1
    _, _, total, _, _, dtotal = iterate(step, zero, one, one, zero, zero, zero, limit=MOST_TERMS)
    return total / first, (dtotal + total / first) / first


def _inside(a: Any, x: Any, out: Any) -> Any:
    """The result, 0 at x = 0; NaN outside the domain."""
    return where(bitwise_and(gt(a, 0), ge(x, 0)), where(eq(x, 0), 0.0, out), math.nan)


igamma_grad_a.derivatives(not_differentiable("igamma_grad_a", "a"), not_differentiable("igamma_grad_a", "x"))
random_gamma_grad.derivatives(
    not_differentiable("random_gamma_grad", "a"), not_differentiable("random_gamma_grad", "x")
)


def _density(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) in x."""
    return exp((a - 1) * log(x) - x - lgamma(a))


igamma.derivatives(lambda a, x, out: igamma_grad_a(a, x), lambda a, x, out: _density(a, x))
igammac.derivatives(lambda a, x, out: -igamma_grad_a(a, x), lambda a, x, out: -_density(a, x))
