"""Hypergeometric functions: Kummer's, hyp1f1, and Gauss', hyp2f1, by their power series."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives import abs, bitwise_and, eq, exp, log1p, max, reduce_or, where
from xlamini.primitives.elementwise.special.formula import epsilon
from xlamini.primitives.elementwise.special.gamma import lgamma
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.gamma import sign_of_gamma
from xlamini.transforms.derivatives.jvp import jvp
from xlamini.transforms.while_loop.api import while_loop
from xlamini.typing import ArrayLike

MOST_TERMS = 5000


def _slope(formula: Callable[..., Any], index: int) -> Callable[..., Any]:
    """The partial derivative of a formula in one operand, forward through its loop."""

    def partial(*operands: Any) -> Any:
        *point, _ = operands

        def along(x: Any) -> Any:
            return formula(*point[:index], x, *point[index + 1 :])

        return jvp(along, (point[index],), (0 * point[index] + 1,))[1]

    return partial


def _kummer(a: Any, b: Any, x: Any) -> Any:
    """Kummer's transformation for negative x (DLMF 13.2.39), where the terms have one sign."""
    negative = x < 0
    size = abs(x)
    first = where(negative, b - a, a)
    total = _series(lambda n: (first + n, (b + n) * (n + 1)), size)
    return where(negative, exp(-size) * total, total)


def _kummer_in_x(a: Any, b: Any, x: Any, out: Any) -> Any:
    return a / b * hyp1f1(a + 1, b + 1, x)


@special(
    _slope(_kummer, 0),
    _slope(_kummer, 1),
    _kummer_in_x,
)
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's hypergeometric function: the sum of `(a)_n / (b)_n * x ** n / n!`, for real x.

    >>> hyp1f1(1.0, 2.0, 0.5)
    Array(1.2974426, dtype=float32)
    """
    return _kummer(a, b, x)


def _gauss(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Pfaff's transformation for negative x, and Euler's where it converges faster (DLMF 15.8.1)."""
    negative = x < 0
    inside = where(x < 1, x, 0.5)
    b, argument = where(negative, c - b, b), where(negative, inside / (inside - 1), inside)
    factor = where(negative, exp(-a * log1p(-inside)), 1.0)
    excess = c - a - b
    faster = excess < 0
    factor = factor * where(faster, exp(excess * log1p(-argument)), 1.0)
    first, second = where(faster, c - a, a), where(faster, c - b, b)
    return factor * _series(lambda n: ((first + n) * (second + n), (c + n) * (n + 1)), argument)


def _at_one(a: Any, b: Any, c: Any) -> Any:
    """DLMF 15.4.20."""
    excess = c - a - b
    signs = sign_of_gamma(c) * sign_of_gamma(excess) * sign_of_gamma(c - a) * sign_of_gamma(c - b)
    value = signs * exp(lgamma(c) + lgamma(excess) - lgamma(c - a) - lgamma(c - b))
    return where(excess > 0, value, math.inf)


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    return where(x < 1, _gauss(a, b, c, x), where(eq(x, 1), _at_one(a, b, c), where(eq(x, x), math.inf, x)))


def _gauss_in_x(a: Any, b: Any, c: Any, x: Any, out: Any) -> Any:
    return a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)


@special(
    *(_slope(_gauss, i) for i in range(3)),
    _gauss_in_x,
)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss' hypergeometric function: the sum of `(a)_n * (b)_n / (c)_n * x ** n / n!`, for real x below 1.

    Infinite beyond 1, where it has a cut. Slow and less precise where x is close to 1.

    >>> hyp2f1(1.0, 2.0, 3.0, 0.5)
    Array(1.5451775, dtype=float32)
    """
    return _hyp2f1(a, b, c, x)


def _series(ratio: Callable[[Any], tuple[Any, Any]], x: Any) -> Any:
    """The sum of products of `x * numerator / denominator`, which `ratio(n)` gives, until a bound of them is small.

    The bound takes no factor below 1, so that terms which vanish, but whose derivatives do not, are summed too.
    """

    def holds(state: Any) -> Any:
        n, _, bound, total = state
        going = bound > epsilon(x) * max(abs(total), 1e-30)
        return bitwise_and(n < MOST_TERMS, reduce_or(going, range(aval_of(going).ndim)))

    def body(state: Any) -> Any:
        n, term, bound, total = state
        above, below = ratio(n)
        vanished = bitwise_and(eq(below, 0), eq(term * above, 0))
        below = where(vanished, 1.0, below)
        term = term * (above * x / below)
        bound = bound * max(abs(above), 0.1) * abs(x) / abs(below)
        return n + 1, term, bound, total + term

    one = 0 * x + 1
    start = (0 * one.reshape(-1)[:1].sum() if aval_of(one).ndim else 0 * one, one, one, one)
    return while_loop(holds, body, start)[3]
