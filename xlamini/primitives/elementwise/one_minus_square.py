"""one_minus_square: `1 - x ** 2` by its factors."""

from __future__ import annotations

from typing import Any

from xlamini.primitives.base.dtype_kinds import NUMERIC
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import add, mul, sub


@elementwise(accepts=NUMERIC, flops=3)
def one_minus_square(x: Any) -> Any:
    """`1 - x ** 2`, elementwise; precise also where x is close to 1 or -1.

    >>> lax.one_minus_square(0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """


@one_minus_square.formula
def _(x: Any) -> Any:
    """By its factors, which are exact where x is close to 1 or -1, and the difference of x ** 2 is not."""
    return mul(add(1, x), sub(1, x))


@one_minus_square.derivative
def _(x: Any, *, out: Any) -> Any:
    return -2 * x
