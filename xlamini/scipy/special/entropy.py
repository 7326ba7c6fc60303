"""Products with logarithms that are 0 where the factor is, and the entropies made of them."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of, finfo
from xlamini.primitives import COMPLEX, FLOAT, bitwise_and, bitwise_or, eq, gt, log, log1p, lt, where
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.typing import ArrayLike


@special(lambda x, y, out: log(y), lambda x, y, out: x / y, accepts=FLOAT | COMPLEX, weak=True)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(y)` of each pair of elements, 0 where x is 0.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _product(x, y, log(y))


@special(lambda x, y, out: log1p(y), lambda x, y, out: x / (1 + y), accepts=FLOAT | COMPLEX, weak=True)
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


@special(weak=True)
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The relative entropy `p * log(p / q)` of each pair of elements, 0 where p is 0 and q >= 0; else infinity.

    >>> rel_entr(0.5, 0.25)
    Array(0.3465736, dtype=float32, weak_type=True)
    """
    return _relative(p, q)


@special(weak=True)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The term `p * log(p / q) - p + q` of Kullback and Leibler's divergence, for each pair of elements.

    >>> kl_div(0.5, 0.25)
    Array(0.09657359, dtype=float32, weak_type=True)
    """
    return _relative(p, q) - p + q


def _product(x: Any, y: Any, logarithm: Any) -> Any:
    empty = bitwise_and(eq(x, 0), eq(y, y))
    return where(empty, 0.0, x * where(empty, 1.0, logarithm))


def _relative(p: Any, q: Any) -> Any:
    both = bitwise_and(gt(p, 0), gt(q, 0))
    none = bitwise_and(eq(p, 0), q >= 0)
    safe_p, safe_q = where(both, p, 1.0), where(both, q, 1.0)
    undefined = where(bitwise_and(eq(p, p), eq(q, q)), math.inf, p + q)
    return where(both, safe_p * _log_of_ratio(safe_p, safe_q), where(none, 0.0, undefined))


def _log_of_ratio(p: Any, q: Any) -> Any:
    ratio, least = p / q, float(finfo(aval_of(p).dtype).tiny)
    extreme = bitwise_or(lt(ratio, least), gt(ratio, 1 / least))
    return where(extreme, log(p) - log(q), log(where(extreme, 1.0, ratio)))
