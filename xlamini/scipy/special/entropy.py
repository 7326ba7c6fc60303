"""Products with logarithms that are 0 where the factor is, and the entropies made of them."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of, finfo
from xlamini.primitives import COMPLEX, FLOAT, bitwise_and, eq, gt, log, log1p, lt, where
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.typing import ArrayLike


@special(lambda x, y, out: log(y), lambda x, y, out: _share(x, y), accepts=FLOAT | COMPLEX, weak=True)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(y)` of each pair of elements, 0 where x is 0.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _product(x, y, log(y))


@special(lambda x, y, out: log1p(y), lambda x, y, out: _share(x, 1 + y), accepts=FLOAT | COMPLEX, weak=True)
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log1p(y)` of each pair of elements, 0 where x is 0.

    >>> xlog1py(2.0, 1.0)
    Array(1.3862944, dtype=float32, weak_type=True)
    """
    return _product(x, y, log1p(y))


@special(lambda x, out: -log(x) - 1, weak=True)
def entr(x: ArrayLike) -> Array:
    """The entropy `-x * log(x)` of each element, 0 at 0, minus infinity below.

    >>> entr(0.5)
    Array(0.3465736, dtype=float32, weak_type=True)
    """
    return where(lt(x, 0.0), -math.inf, -_product(x, x, log(x)))


def _by_p(p: Any, q: Any, out: Any) -> Any:
    """The derivative of `p * log(p / q)` by p, 0 where that is not the formula."""
    both, p, q = _positive(p, q)
    return where(both, 1 + _log_of_ratio(p, q), 0.0)


def _by_q(p: Any, q: Any, out: Any) -> Any:
    both, p, q = _positive(p, q)
    return where(both, -p / q, 0.0)


@special(_by_p, _by_q, weak=True)
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The relative entropy `p * log(p / q)` of each pair of elements, 0 where p is 0 and q >= 0; else infinity.

    >>> rel_entr(0.5, 0.25)
    Array(0.3465736, dtype=float32, weak_type=True)
    """
    return _relative(p, q)


@special(lambda *xs: _by_p(*xs) - 1, lambda *xs: _by_q(*xs) + 1, weak=True)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The term `p * log(p / q) - p + q` of Kullback and Leibler's divergence, for each pair of elements.

    >>> kl_div(0.5, 0.25)
    Array(0.09657359, dtype=float32, weak_type=True)
    """
    relative = _relative(p, q)
    endless = eq(relative, math.inf)  # which the infinite p would take away
    return where(endless, relative, relative - where(endless, 0.0, p) + where(endless, 0.0, q))


def _share(x: Any, y: Any) -> Any:
    """`x / y`, 0 where x is 0: there the product with the logarithm is 0 for all y."""
    none = eq(x, 0)
    return where(none, x, x / where(none, 1, y))


def _product(x: Any, y: Any, logarithm: Any) -> Any:
    empty = bitwise_and(eq(x, 0), eq(y, y))
    return where(empty, 0.0, x * where(empty, 1.0, logarithm))


def _relative(p: Any, q: Any) -> Any:
    both, safe_p, safe_q = _positive(p, q)
    none = bitwise_and(eq(p, 0), q >= 0)
    undefined = where(bitwise_and(eq(p, p), eq(q, q)), math.inf, p + q)
    return where(both, safe_p * _log_of_ratio(safe_p, safe_q), where(none, 0.0, undefined))


def _positive(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Whether p and q are positive; then p and q, with both replaced by 1 where one is not."""
    both = bitwise_and(gt(p, 0), gt(q, 0))
    return both, where(both, p, 1.0), where(both, q, 1.0)


def _log_of_ratio(p: Any, q: Any) -> Any:
    """`log(p / q)`, also where the ratio is out of the dtype's range: there both are scaled by a power of 2.

    Which ones those are is asked of p and q, for XLA would write down a ratio that has several uses.
    """
    widest = -int(finfo(aval_of(p).dtype).minexp)
    lift, rest = 2.0 ** (widest * 4 // 5), 2.0 ** (widest * 4 // 5 - widest)
    small, large = lt(p * lift, q * rest), lt(q * lift, p * rest)
    up, down = (where(small, x, where(large, 1 / x, 1.0)) for x in (lift, 1 / lift))
    shift = 2 * math.log(lift)
    return log((p * up) / (q * down)) - where(small, shift, where(large, -shift, 0.0))
