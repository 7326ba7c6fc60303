"""The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function, elementwise."""
from __future__ import annotations

import math
from typing import Any, NoReturn

from xlamini.core import MissingRule
from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise import rounding
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL
from xlamini.primitives.elementwise.power import square
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.zeta_derivative import zeta_slope
from xlamini.primitives.elementwise.trigonometric import sin
from xlamini.primitives.forms.cpu.math import formula


@elementwise(hlo="chlo.lgamma", on_cpu=formula("gamma.log_gamma"), accepts=FLOAT, flops=TRANSCENDENTAL)
def lgamma(x: Any) -> Any:
    """The logarithm of the magnitude of the gamma function, elementwise.

    >>> lax.lgamma(1.0)
    Array(0., dtype=float32, weak_type=True)
    """


@lgamma.derivative
def _(x: Any, *, out: Any) -> Any:
    return digamma(x)


@elementwise(hlo="chlo.digamma", on_cpu=formula("gamma.digamma"), accepts=FLOAT, flops=TRANSCENDENTAL)
def digamma(x: Any) -> Any:
    """The derivative of the logarithm of the gamma function, elementwise.

    >>> lax.digamma(1.0).round(3)
    Array(-0.577, dtype=float32, weak_type=True)
    """


@digamma.derivative
def _(x: Any, *, out: Any) -> Any:
    return trigamma(x)


def not_differentiable(operation: str, argument: str, error: type[Exception] = MissingRule) -> Any:
    """The partial derivative in an argument that has none: it raises an error."""

    def partial(*operands: Any, out: Any) -> NoReturn:
        raise error(f"{operation} has no derivative in {argument}; hold it fixed with stop_gradient({argument})")

    return partial


@elementwise(hlo="chlo.polygamma", accepts=FLOAT, flops=4 * TRANSCENDENTAL)
def polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of `digamma` at x, elementwise; m is a whole number in the dtype of x.

    >>> round(float(lax.polygamma(1.0, 1.0)), 3)
    1.645
    """


polygamma.derivatives(not_differentiable("polygamma", "m"), lambda m, x, out: polygamma(m + 1, x))


@elementwise(hlo="chlo.zeta", accepts=FLOAT, flops=4 * TRANSCENDENTAL)
def zeta(x: Any, q: Any) -> Any:
    """Hurwitz' zeta function, elementwise: the sum of `(q + k) ** -x` over k = 0, 1, 2, …

    >>> round(float(lax.zeta(2.0, 1.0)), 3)
    1.645
    """


def trigamma(x: Any) -> Any:
    """`polygamma(1, x)`, which is `zeta(2, x)`; of negative x by reflection: XLA's series holds only down to -9.

    >>> round(float(trigamma(jnp.float32(-20.5))), 3)
    9.822
    """
    left = lt(x, 0)
    right = zeta(2, where(left, 1 - x, x))
    sine = sin(math.pi * where(left, x - rounding.round(x), 0.5))
    return where(left, square(math.pi / sine) - right, right)


zeta.derivatives(lambda x, q, out: zeta_slope(x, q), lambda x, q, out: -x * zeta(x + 1, q))
