"""erfc_inv: the inverse of the complementary error function, precise also where its argument is close to 0."""

from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.base.promotion import accumulator, in_dtype
from xlamini.primitives.elementwise.arithmetic import neg
from xlamini.primitives.elementwise.comparison import eq, lt
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp, log
from xlamini.primitives.elementwise.power import sqrt, square
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.error_function import erf_inv, erfc

_STEPS = 3


@elementwise(accepts=FLOAT, flops=8 * TRANSCENDENTAL)
def erfc_inv(y: Any) -> Any:
    """The inverse of the complementary error function, elementwise; NaN outside [0, 2].

    >>> erfc_inv(1.0)
    Array(0., dtype=float32, weak_type=True)
    """


@erfc_inv.formula
def _(y: Any) -> Any:
    """erf_inv of `1 - y` where that is exact; for small y Halley's method on erfc, from a rational guess.

    Numerical Recipes, 3rd edition, section 6.2.2, `inverfc`.
    """
    dtype = aval_of(y).dtype
    wide = in_dtype(y, accumulator(dtype))
    near = erf_inv(1 - wide)
    return in_dtype(where(eq(wide, 0), math.inf, where(lt(wide, 0.5), _of_small(wide), near)), dtype)


def _of_small(y: Any) -> Any:
    t = sqrt(-2 * log(y / 2))
    x = 0.70711 * (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)))
    for _ in range(_STEPS):
        error = erfc(x) - y
        x = x + error / (2 / math.sqrt(math.pi) * exp(neg(square(x))) - x * error)
    return x


@erfc_inv.derivative
def _(y: Any, *, out: Any) -> Any:
    return -math.sqrt(math.pi) / 2 * exp(square(out))
