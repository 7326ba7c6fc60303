"""Elementwise special functions: the error function, the gamma function and their kin."""
from __future__ import annotations

import math
from typing import Any, NoReturn

from xlamini.core.errors import MissingRule
from xlamini.primitives.elementwise import FLOAT, elementwise
from xlamini.primitives.exponential import TRANSCENDENTAL, exp
from xlamini.primitives.power import square


@elementwise(hlo="chlo.erf", accepts=FLOAT, flops=TRANSCENDENTAL)
def erf(x: Any) -> Any:
    """The error function, elementwise: the integral of `2 / sqrt(pi) * exp(-t ** 2)` from 0 to x."""


@erf.derivative
def _(x: Any, *, out: Any) -> Any:
    return 2 / math.sqrt(math.pi) * exp(-square(x))


@elementwise(hlo="chlo.erfc", accepts=FLOAT, flops=TRANSCENDENTAL)
def erfc(x: Any) -> Any:
    """The complement of the error function, elementwise: `1 - erf(x)`, precise also where x is large."""


@erfc.derivative
def _(x: Any, *, out: Any) -> Any:
    return -2 / math.sqrt(math.pi) * exp(-square(x))


@elementwise(hlo="chlo.erf_inv", accepts=FLOAT, flops=TRANSCENDENTAL)
def erf_inv(x: Any) -> Any:
    """The inverse of the error function, elementwise; NaN outside [-1, 1]."""


@erf_inv.derivative
def _(x: Any, *, out: Any) -> Any:
    return math.sqrt(math.pi) / 2 * exp(square(out))


@elementwise(hlo="chlo.lgamma", accepts=FLOAT, flops=TRANSCENDENTAL)
def lgamma(x: Any) -> Any:
    """The logarithm of the magnitude of the gamma function, elementwise."""


@lgamma.derivative
def _(x: Any, *, out: Any) -> Any:
    return digamma(x)


@elementwise(hlo="chlo.digamma", accepts=FLOAT, flops=TRANSCENDENTAL)
def digamma(x: Any) -> Any:
    """The derivative of the logarithm of the gamma function, elementwise."""


@digamma.derivative
def _(x: Any, *, out: Any) -> Any:
    return polygamma(1, x)


def _not_differentiable(operation: str, argument: str) -> Any:
    def partial(*operands: Any, out: Any) -> NoReturn:
        raise MissingRule(f"{operation} has no derivative in {argument}; hold it fixed with stop_gradient({argument})")

    return partial


@elementwise(hlo="chlo.polygamma", accepts=FLOAT, flops=4 * TRANSCENDENTAL)
def polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of `digamma` at x, elementwise; m is a whole number in the dtype of x."""


polygamma.derivatives(_not_differentiable("polygamma", "m"), lambda m, x, out: polygamma(m + 1, x))


@elementwise(hlo="chlo.zeta", accepts=FLOAT, flops=4 * TRANSCENDENTAL)
def zeta(x: Any, q: Any) -> Any:
    """Hurwitz' zeta function, elementwise: the sum of `(q + k) ** -x` over k = 0, 1, 2, …"""


zeta.derivatives(_not_differentiable("zeta", "x"), lambda x, q, out: -x * zeta(x + 1, q))
