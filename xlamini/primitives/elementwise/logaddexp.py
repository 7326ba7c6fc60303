"""logaddexp: a sum in the world of logarithms, with a derivative that stays finite where its formula's would not."""
from __future__ import annotations

from typing import Any

from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import abs, max, neg
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp, log1p
from xlamini.primitives.elementwise.hyperbolic import logistic
from xlamini.primitives.elementwise.select import where


@elementwise(accepts=FLOAT, flops=2 * TRANSCENDENTAL)
def logaddexp(x: Any, y: Any) -> Any:
    """`log(exp(x) + exp(y))`, elementwise, without overflow.

    >>> logaddexp(1000.0, 1000.0)
    Array(1000.6932, dtype=float32, weak_type=True)
    """


@logaddexp.formula
def _(x: Any, y: Any) -> Any:
    """The maximum of both operands plus the smaller one's contribution."""
    return max(x, y) + log1p(exp(neg(abs(_distance(x, y)))))


def _distance(x: Any, y: Any) -> Any:
    """`x - y`, and 0 of equal infinities, which share a tangent equally."""
    return where(eq(x, y), 0, x - y)


def _share(x: Any, y: Any) -> Any:
    """`exp(x - out)`, from the arguments, as the rounded result has lost the smaller one for higher derivatives."""
    return logistic(_distance(x, y))


logaddexp.derivatives(lambda x, y, out: _share(x, y), lambda x, y, out: _share(y, x))
