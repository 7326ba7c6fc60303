"""The beta function, its logarithm and the incomplete one."""
from __future__ import annotations

import math
from typing import Any

from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import bitwise_and, bitwise_or, exp, floor, log, log1p, max, min, promoted_inexact, where
from xlamini.primitives.elementwise.special.gamma import digamma, lgamma
from xlamini.primitives.elementwise.special.incomplete_beta import betainc as betainc_p
from xlamini.primitives.elementwise.special.stirling import LARGE, remainder
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.gamma import is_pole, is_whole, sign_of_gamma
from xlamini.typing import ArrayLike

_STEPS = 10
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""Those of Stirling's series of digamma, which hold from `_STEPS` on."""


def _in_a(a: Any, b: Any, out: Any) -> Any:
    return _digamma_fall(a, b)


def _in_b(a: Any, b: Any, out: Any) -> Any:
    return _digamma_fall(b, a)


def _digamma_fall(x: Any, step: Any) -> Any:
    """`digamma(x) - digamma(x + step)`; where both are positive, without the loss of digits of that difference."""
    positive = bitwise_and(bitwise_and(x > 0, step > 0), x + step < math.inf)
    found = _positive_fall(where(positive, x, 1.0), where(positive, step, 1.0))
    return where(positive, found, digamma(x) - digamma(x + step))


def _positive_fall(x: Any, step: Any) -> Any:
    """The recurrence of digamma takes both arguments up, to where the terms of Stirling's series are small."""
    total = step / x / (x + step)
    for k in range(1, _STEPS):
        total = total + step / (x + k) / (x + step + k)
    low, high = 1 / (x + _STEPS), 1 / (x + step + _STEPS)
    squares = low * low, high * high
    weight, power, series = squares[0] * 0 + 1, squares[1], 0.0
    for coefficient in _SERIES:
        series = series + coefficient * weight
        weight, power = squares[0] * weight + power, power * squares[1]
    gap = step * low * high
    return -(total + log1p(step * low) + gap * (0.5 + (low + high) * series))


@special(_in_a, _in_b, weak=True)
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the magnitude of the beta function of each pair of elements.

    >>> betaln(2.0, 3.0)
    Array(-2.4849067, dtype=float32, weak_type=True)
    """
    a, b, _ = reflected(a, b)
    return where(bitwise_and(is_pole(a), is_pole(b)), math.inf, _log_beta(a, b))


@special(lambda a, b, out: out * _in_a(a, b, out), lambda a, b, out: out * _in_b(a, b, out))
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function, `gamma(a) * gamma(b) / gamma(a + b)`, of each pair of elements.

    >>> beta(1.0, 2.0)
    Array(0.49999997, dtype=float32)
    """
    a, b, sign = reflected(a, b)
    signs = sign * sign_of_gamma(a) * sign_of_gamma(b) * sign_of_gamma(a + b)
    found = where(is_pole(a + b), 0.0, signs * exp(_log_beta(a, b)))
    return where(bitwise_or(is_pole(a), is_pole(b)), math.inf, found)


def reflected(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Arguments with the same beta function, and a sign for it, where its poles in one of them and the sum cancel.

    That is `beta(a, b) = (-1) ** b * beta(1 - a - b, b)` for whole a and b, if a and a + b are not positive.
    """
    pole, other = min(a, b), max(a, b)
    cancel = bitwise_and(bitwise_and(is_whole(pole), is_whole(other)), bitwise_and(other > 0, pole + other <= 0))
    odd = other - 2 * floor(other / 2)
    return where(cancel, 1 - pole - other, a), where(cancel, other, b), where(cancel, 1 - 2 * odd, 1.0)


def _log_beta(a: Any, b: Any) -> Any:
    """Large arguments through Stirling's remainder: the logarithms that cancel are taken out before."""
    low, high = min(a, b), max(a, b)
    large = where(high >= LARGE, high, LARGE)
    small = where(high >= LARGE, low, 1.0)
    total = small + large
    shared = remainder(large) - remainder(total) - (large - 0.5) * log1p(small / large)
    one = where(high < math.inf, lgamma(low) + low - low * log(total) + shared, -low * high)
    wide_low = where(low >= LARGE, low, LARGE)
    # 0.9189… is log(2 * pi) / 2.
    both = remainder(wide_low) + 0.9189385332046728 - 0.5 * log(wide_low) + wide_low * log(wide_low / total) + shared
    plain = lgamma(a) + lgamma(b) - lgamma(a + b)
    return where(low >= LARGE, both, where(bitwise_and(high >= LARGE, total >= LARGE), one, plain))


@ufunc(betainc_p, promoted_inexact)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function, for a > 0, b > 0 and x from 0 to 1; it has a derivative in x only.

    >>> betainc(2.0, 1.0, 0.5)
    Array(0.25, dtype=float32, weak_type=True)
    """
    ...
