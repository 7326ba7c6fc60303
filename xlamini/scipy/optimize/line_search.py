"""Line search for a step that meets the strong Wolfe conditions (Nocedal and Wright, 3.5 and 3.6).

One loop tries steps. `low` is the best one so far that lowers the function enough; once a step was too long there is a
`high` on the other side of a good one, and steps in between are tried; before, longer ones are.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.transforms.while_loop.api import while_loop

ENOUGH, FLATTER = 1e-4, 0.9  # c1 and c2 of Wolfe's conditions


class LinePoint(NamedTuple):
    """A step, the function's value and gradient there, and its slope in the direction."""

    step: Any
    value: Any
    gradient: Any
    slope: Any


class Search(NamedTuple):
    """The best step; a step too long and the value there, if there is one; the next step to try."""

    low: LinePoint
    high: Any
    high_value: Any
    bracketed: Any
    trial: Any
    found: Any
    count: Any


def line_search(
    evaluate: Callable[[Any], Any], x: Any, direction: Any, value: Any, gradient: Any, trial: Any, most: Any
) -> Search:
    """Up to `most` steps tried, the first one `trial`; `low` is the result, the start where no step goes down."""
    start = LinePoint(jnp.zeros_like(value), value, gradient, gradient @ direction)

    def turn(s: Search) -> Search:
        value, gradient = evaluate(x + s.trial * direction)
        return _learned(start, s, LinePoint(s.trial, value, gradient, gradient @ direction))

    none = jnp.zeros_like(value)
    search = Search(start, none, none, jnp.array(False), trial, jnp.array(False), jnp.array(0))
    return while_loop(lambda s: ~s.found & (s.count < most), turn, search)


def _learned(start: LinePoint, s: Search, point: LinePoint) -> Search:
    lowers = point.value <= start.value + ENOUGH * point.step * start.slope
    found = (lowers | _level(start, point)) & (abs(point.slope) <= -FLATTER * start.slope)
    too_long = ~found & ~(lowers & (point.value < s.low.value))
    # The slope says on which side of the new best step the minimum is.
    turned = ~too_long & jnp.where(s.bracketed, point.slope * (s.high - s.low.step) >= 0, point.slope >= 0)
    high = jnp.where(too_long, point.step, jnp.where(turned, s.low.step, s.high))
    high_value = jnp.where(too_long, point.value, jnp.where(turned, s.low.value, s.high_value))
    low = LinePoint(*(jnp.where(too_long, old, new) for old, new in zip(s.low, point, strict=True)))
    bracketed = s.bracketed | too_long | turned
    trial = jnp.where(bracketed, _between(low, high, high_value), 2 * point.step)
    return Search(low, high, high_value, bracketed, trial, found, s.count + 1)


def _level(start: LinePoint, point: LinePoint) -> Any:
    """True where the values differ by rounding alone, and the slope is downward (Hager and Zhang, 2005)."""
    rounding = 4 * float(jnp.finfo(point.value.dtype).eps) * abs(start.value)
    return (point.value <= start.value + rounding) & (point.slope <= (2 * ENOUGH - 1) * start.slope)


def _between(low: LinePoint, high: Any, high_value: Any) -> Any:
    """The minimum of the parabola through both ends, or the midpoint if that is near an end."""
    width = high - low.step
    bend = high_value - low.value - low.slope * width
    share = -low.slope * width / (2 * jnp.where(bend == 0, 1, bend))
    return low.step + width * jnp.where((share >= 0.1) & (share <= 0.9), share, 0.5)
