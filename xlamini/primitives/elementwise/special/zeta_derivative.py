"""The derivative of Hurwitz' zeta function in its first argument: the sum of Euler and Maclaurin, term by term.

F. Johansson, Rigorous high-precision computation of the Hurwitz zeta function and its derivatives, equation 5.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.elementwise.exponential import exp, log
from xlamini.primitives.elementwise.select import where

TERMS = 10
# B_2j / (2j)!, of the Bernoulli numbers
COEFFICIENTS = tuple(
    bernoulli / math.factorial(2 * j)
    for j, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), start=1)
)
LARGE = 1e4  # powers with this exponent are 0 or infinite, and its products with itself are finite in float32


def zeta_slope(x: Any, q: Any) -> Any:
    """The derivative in x of the sum of `(q + k) ** -x`."""
    x = where(lt(x, LARGE), x, where(x >= LARGE, LARGE, x))
    head = sum((_power_slope(x, log(q + k)) for k in range(1, TERMS)), _power_slope(x, log(q)))
    return head + _tail_slope(x, q + TERMS)


def _power_slope(x: Any, logarithm: Any) -> Any:
    return -logarithm * exp(-x * logarithm)


def _tail_slope(x: Any, start: Any) -> Any:
    """Of the sum from `start` on: its integral, half of its first term, and corrections."""
    logarithm = log(start)
    power, rest = exp(-x * logarithm), x - 1
    integral = -power * start / rest * (logarithm + 1 / rest)
    return integral - power * logarithm / 2 + _corrections(x, start, power, logarithm)


def _corrections(x: Any, start: Any, power: Any, logarithm: Any) -> Any:
    """Sum of B_2j / (2j)! times the derivative of `x (x + 1) … (x + 2j - 2) start ** (1 - 2j - x)`."""
    rising, slope, total = x * power / start, power / start * (1 - x * logarithm), 0.0
    for j, coefficient in enumerate(COEFFICIENTS, start=1):
        total = total + coefficient * slope
        for factor in (x + (2 * j - 1), x + 2 * j):
            rising, slope = rising * factor / start, (slope * factor + rising) / start
    return total
