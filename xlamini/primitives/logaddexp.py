"""logaddexp: a sum in the world of logarithms, with a derivative that stays finite where its formula's would not."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.arithmetic import abs, max, neg
from xlamini.primitives.comparison import eq
from xlamini.primitives.elementwise import Elementwise, elementwise
from xlamini.primitives.exponential import TRANSCENDENTAL, exp, log1p
from xlamini.primitives.kinds import FLOAT
from xlamini.primitives.promotion import in_dtype
from xlamini.primitives.select import where


class LogAddExp(Elementwise):
    """The maximum of both operands plus the smaller one's contribution."""

    def lower(self, ctx: Any, *operands: Any) -> Any:
        return ctx.inline(_formula, *operands)


def _formula(x: Any, y: Any) -> Any:
    # Equal infinities have no difference.
    distance = where(eq(x, y), 0, x - y)
    return max(x, y) + log1p(exp(neg(abs(distance))))


@elementwise(family=LogAddExp, accepts=FLOAT, flops=2 * TRANSCENDENTAL)
def logaddexp(x: Any, y: Any) -> Any:
    """`log(exp(x) + exp(y))`, elementwise, without overflow.

    >>> logaddexp(1000.0, 1000.0)
    Array(1000.6932, dtype=float32, weak_type=True)
    """


def _share(x: Any, y: Any, out: Any) -> Any:
    # Equal infinities share the tangent equally.
    half = in_dtype(-math.log(2), aval_of(x).dtype)
    return exp(where(eq(x, out), where(eq(x, y), half, 0), x - out))


logaddexp.derivatives(lambda x, y, out: _share(x, y, out), lambda x, y, out: _share(y, x, out))
