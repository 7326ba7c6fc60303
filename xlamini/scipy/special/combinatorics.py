"""Factorials, binomial coefficients and Bernoulli's numbers."""
from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from xlamini.core import canonicalize_dtype
from xlamini.numpy.arguments import as_count, as_index
from xlamini.numpy.rounding import rint
from xlamini.primitives import bitwise_and, bitwise_or, eq, exp, log, stop_gradient, where
from xlamini.primitives.elementwise.bitwise import bitwise_not
from xlamini.primitives.elementwise.special.gamma import lgamma
from xlamini.runtime import Array, device_put_value
from xlamini.scipy.special.beta import betaln
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.gamma import is_whole
from xlamini.typing import ArrayLike


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial of each element, `gamma(n + 1)`; 0 for negative ones. NotImplementedError if `exact`.

    >>> factorial(4)
    Array(24., dtype=float32, weak_type=True)
    """
    if exact:
        raise NotImplementedError("factorial: exact=True needs integers without bounds; use math.factorial")
    return _factorial(n)


@special(weak=True)
def _factorial(n: Any) -> Any:
    return where(n < 0, 0.0, exp(lgamma(where(n < 0, 1.0, n) + 1)))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things, with repetition or without; 0 unless 0 <= k <= N.

    >>> comb(5, 2)
    Array(10., dtype=float32, weak_type=True)
    """
    return _repeated(N, k) if repetition else _comb(N, k)


@special(weak=True)
def _comb(N: Any, k: Any) -> Any:
    return _choices(N, k)


@special(weak=True)
def _repeated(N: Any, k: Any) -> Any:
    return where(bitwise_and(eq(N, 0), eq(k, 0)), 1.0, _choices(N + k - 1, k))


_LARGE = 1e30  # near the overflow of lgamma in float32


def _choices(n: Any, k: Any) -> Any:
    valid = bitwise_and(bitwise_and(k >= 0, n >= 0), n >= k)
    edge = bitwise_or(eq(k, 0), eq(n, k))
    finite = bitwise_and(valid, bitwise_not(bitwise_and(edge, n > _LARGE)))
    n, k = where(finite, n, 1.0), where(finite, k, 1.0)
    out = exp(-log(n + 1) - betaln(n - k + 1, k + 1))
    whole = bitwise_and(is_whole(n), is_whole(k))
    exact = where(edge, 1.0, where(whole, rint(out), out))
    return where(valid, out + stop_gradient(exact - out), 0.0)


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers from the 0th to the n-th, of which the 1st is -1 / 2.

    Those after the 258th are infinite. ValueError for n below 0 or above 500.

    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    last = as_count("bernoulli", "n", as_index("bernoulli", "n", n), 500)
    numbers = [Fraction(1)]
    for m in range(1, last + 1):
        total = sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0))
        numbers.append(-total / (m + 1))
    return device_put_value(np.array(list(map(_rounded, numbers)), canonicalize_dtype(float)))


def _rounded(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
