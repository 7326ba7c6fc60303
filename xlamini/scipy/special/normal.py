"""The normal distribution's integral, its logarithm and its inverse."""
from __future__ import annotations

import math
from typing import Any

from xlamini.numpy.arguments import as_index
from xlamini.primitives import abs, exp, log, log1p, min, sign, sqrt, where
from xlamini.primitives.base.elementwise import neg
from xlamini.primitives.elementwise.special.error_function import erf, erfc
from xlamini.primitives.elementwise.special.formula import horner
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.error_functions import erfcx_formula
from xlamini.typing import ArrayLike


@special(lambda x, out: exp(-x * x / 2) / math.sqrt(2 * math.pi))
def ndtr(x: ArrayLike) -> Array:
    """The standard normal distribution's integral from minus infinity to each element.

    >>> ndtr(1.0)
    Array(0.8413447, dtype=float32)
    """
    scaled = x * math.sqrt(0.5)
    # Near zero the sum is rounded once, where `erfc` may err by some units of the last place.
    return where(abs(x) < 0.5, 0.5 + erf(scaled) / 2, erfc(neg(scaled)) / 2)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr`, precise in both tails.

    `series_order`, a whole number from 0 to 30, is there for JAX's sake: no series is cut off here.

    >>> log_ndtr(-20.0)
    Array(-203.91716, dtype=float32)
    """
    if not 0 <= as_index("log_ndtr", "series_order", series_order) <= 30:
        raise ValueError(f"log_ndtr: series_order must be from 0 to 30, got {series_order}")
    return _log_ndtr(x)


@special(lambda x, out: math.sqrt(2 / math.pi) / erfcx_formula(-x * math.sqrt(0.5)))
def _log_ndtr(x: Any) -> Any:
    below = log(erfcx_formula(where(x < 0, -x, 0.0) * math.sqrt(0.5)) / 2) - x * x / 2
    return where(x < 0, where(x == -math.inf, x, below), log1p(-erfc(x * math.sqrt(0.5)) / 2))


def _inverse_density(p: Any, out: Any) -> Any:
    # Finite at the ends too, as in JAX, so that masked elements don't spoil a sum.
    return where(abs(out) == math.inf, 0.0, math.sqrt(2 * math.pi) * exp(out * out / 2))


@special(_inverse_density)
def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`, for p from 0 to 1; NaN for others.

    Wichura, "Algorithm AS 241" (1988): three rational functions, the outer ones of sqrt(-log(p)).

    >>> ndtri(0.975)
    Array(1.9599644, dtype=float32)
    """
    q = p - 0.5
    r = 0.180625 - q * q
    central = q * (horner(r, _CENTRAL[0]) / horner(r, _CENTRAL[1]))
    tail = sqrt(-log(min(p, 1 - p)))
    near = horner(tail - 1.6, _NEAR[0]) / horner(tail - 1.6, _NEAR[1])
    far = horner(tail - 5, _FAR[0]) / horner(tail - 5, _FAR[1])
    outer = sign(q) * where(tail <= 5, near, where(tail == math.inf, tail, far))
    return where(abs(q) <= 0.425, central, outer)


_CENTRAL = (
    (
        2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
    ),
    (
        5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0,
    ),
)  # fmt: skip
_NEAR = (
    (
        7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
        3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
        0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0,
    ),
)  # fmt: skip
_FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
        0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772,
    ),
    (
        2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
        0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0,
    ),
)  # fmt: skip
