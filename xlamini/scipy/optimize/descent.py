"""Quasi-Newton descent: a direction from the approximate curvature, a line search, and an update of the curvature."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.scipy.optimize.line_search import line_search
from xlamini.transforms.while_loop.api import while_loop

GOING_ON, CONVERGED, LEVEL = -1, 0, 4


class DescentLimits(NamedTuple):
    """When to end, and the statuses that say so."""

    maxiter: Any
    gtol: Any
    norm: Any
    line_searches: Any
    ftol: Any = -1.0
    evaluations: Any = float("inf")


class DescentState(NamedTuple):
    """The state of the descent."""

    x: Any
    value: Any
    gradient: Any
    curvature: Any
    turns: Any
    evaluations: Any
    status: Any


def descend(evaluate: Callable[[Any], Any], x: Any, curvature: Any, limits: DescentLimits) -> DescentState:
    """Descend from x until the gradient is small, or a limit is met: see `status`."""
    value, gradient = evaluate(x)
    turns = jnp.array(0)
    status = jnp.where(_small(gradient, limits), CONVERGED, jnp.where(turns >= limits.maxiter, 1, GOING_ON))

    def turn(s: DescentState) -> DescentState:
        direction = s.curvature.direction(s.gradient)
        trial = jnp.where(s.turns == 0, jnp.minimum(1, 1 / jnp.linalg.norm(s.gradient)), 1)
        search = line_search(evaluate, s.x, direction, s.value, s.gradient, trial, limits.line_searches)
        low = search.low
        step = low.step * direction
        learned = s.curvature.learned(step, low.gradient - s.gradient)
        after = DescentState(
            s.x + step, low.value, low.gradient, learned, s.turns + 1, s.evaluations + search.count, s.status
        )
        stuck = jnp.where(low.step > 0, GOING_ON, jnp.where(search.bracketed, 3, 5))
        return after._replace(status=_status(s.value, after, stuck, limits))

    start = DescentState(x, value, gradient, curvature, turns, turns + 1, status)
    return while_loop(lambda s: s.status == GOING_ON, turn, start)


def _small(gradient: Any, limits: DescentLimits) -> Any:
    return jnp.linalg.norm(gradient, ord=limits.norm) < limits.gtol


def _status(before: Any, s: DescentState, stuck: Any, limits: DescentLimits) -> Any:
    """The status at the end: the first condition that holds."""
    size = jnp.maximum(jnp.maximum(abs(before), abs(s.value)), 1)
    status = jnp.where(before - s.value <= limits.ftol * size, LEVEL, GOING_ON)
    status = jnp.where(s.evaluations >= limits.evaluations, 2, status)
    status = jnp.where(s.turns >= limits.maxiter, 1, status)
    status = jnp.where(stuck != GOING_ON, stuck, status)
    return jnp.where(_small(s.gradient, limits), CONVERGED, status)
