"""Adaptive integration of ODEs by the Dormand-Prince method of order 5(4), with interpolated output.

Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations I", sections II.4 to II.6; Shampine, "Some
Practical Runge-Kutta Formulas" (1986).
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import tree_map
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.scan.api import scan
from xlamini.transforms.while_loop.api import while_loop

Slope = Callable[[Any, Any], Any]
"""The right-hand side of `y' = f(y, t)`, for vectors y."""

_TIMES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_WEIGHTS = np.array([
    [0, 0, 0, 0, 0, 0, 0],
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
])
_SOLUTION = _WEIGHTS[-1]
_EMBEDDED = np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
_MIDPOINT = 0.5 * np.array([
    6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728,
    187940372067 / 1594534317056, -1776094331 / 19743644256, 11237099 / 235043384,
])  # fmt: skip
_SAFETY, _LARGEST_FACTOR, _SMALLEST_FACTOR, _ORDER = 0.9, 10.0, 0.2, 5


class StepLimits(NamedTuple):
    """Tolerances, the most steps between two output times, and the longest step."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


class StepState(NamedTuple):
    """The end of the last step, the slope there, the next step's length, and the last step's start and polynomial."""

    y: Any
    slope: Any
    t: Any
    step: Any
    start: Any
    polynomial: Any


def integrate(slope: Slope, y0: Any, times: Any, limits: StepLimits) -> Any:
    """The solution at each of the increasing `times`, along a new first axis; NaN from where `mxstep` is exceeded."""
    at_start = _slope_at(slope, y0, times[0])
    step = jnp.clip(_first_step(slope, y0, times[0], at_start, limits), 0, limits.hmax)
    start = StepState(y0, at_start, times[0], step, times[0], jnp.stack([y0] + 4 * [jnp.zeros_like(y0)]))

    def advance(s: StepState, target: Any) -> tuple[StepState, Any]:
        s = _until(slope, s, target, limits)
        passed = (s.start <= target) & (target <= s.t)
        return s, jnp.where(passed, _interpolated(s, target), jnp.nan).astype(y0.dtype)

    _, ys = scan(advance, start, times[1:])
    return jnp.concatenate([y0[None], ys])


def _until(slope: Slope, s: StepState, target: Any, limits: StepLimits) -> StepState:
    """Steps until `target` is passed."""

    def goes_on(carry: tuple[StepState, Any]) -> Any:
        s, count = carry
        return (s.t < target) & (s.step > 0) & (count < limits.mxstep)

    def body(carry: tuple[StepState, Any]) -> tuple[StepState, Any]:
        s, count = carry
        return _stepped(slope, s, limits), count + 1

    return while_loop(goes_on, body, (s, 0))[0]


def _stepped(slope: Slope, s: StepState, limits: StepLimits) -> StepState:
    """After one attempted step: moved on if the error is small enough; with a new step length in any case."""
    stages = _stages(slope, s)
    end = s.y + _combined(_SOLUTION, stages, s.step)
    error = _combined(_SOLUTION - _EMBEDDED, stages, s.step)
    ratio = _error_ratio(error, s.y, end, limits)
    next_step = jnp.clip(_next_step(s.step, ratio), 0, limits.hmax)
    accepted = StepState(end, stages[-1], s.t + s.step, next_step, s.t, _polynomial(s, end, stages))
    return tree_map(functools.partial(jnp.where, ratio <= 1), accepted, s._replace(step=next_step))


def _stages(slope: Slope, s: StepState) -> Any:
    """The slopes of the seven stages; a loop, so that the slope is compiled once."""
    times, weights = jnp.asarray(_TIMES, s.t.dtype), jnp.asarray(_WEIGHTS, _real(s.y))

    def stage(i: Any, stages: Any) -> Any:
        y = s.y + _combined(weights[i], stages, s.step)
        return stages.at[i].set(_slope_at(slope, y, s.t + s.step * times[i]))

    first = jnp.zeros((len(times), *s.y.shape), s.y.dtype).at[0].set(s.slope)
    return fori_loop(1, len(times), stage, first)


def _combined(weights: Any, stages: Any, step: Any) -> Any:
    """`step` times the weighted sum of the stages."""
    weighted = jnp.dot(jnp.asarray(weights, _real(stages)), stages, precision="highest")
    return (step.astype(_real(stages)) * weighted).astype(stages.dtype)


def _real(x: Any) -> Any:
    """The dtype of the real part."""
    return jnp.finfo(x.dtype).dtype


def _slope_at(slope: Slope, y: Any, t: Any) -> Any:
    return slope(y, t).astype(y.dtype)


def _polynomial(s: StepState, end: Any, stages: Any) -> Any:
    """The coefficients, constant first, of the quartic over the step with its values and slopes at the ends.

    The fifth condition is its value at the midpoint.
    """
    middle = s.y + _combined(_MIDPOINT, stages, s.step)
    first, last = ((s.step.astype(_real(s.y)) * slope).astype(s.y.dtype) for slope in (stages[0], stages[-1]))
    return jnp.stack([
        s.y,
        first,
        -4 * first + last - 11 * s.y - 5 * end + 16 * middle,
        5 * first - 3 * last + 18 * s.y + 14 * end - 32 * middle,
        -2 * first + 2 * last - 8 * s.y - 8 * end + 16 * middle,
    ])


def _interpolated(s: StepState, target: Any) -> Any:
    """The value of the last step's polynomial at a time within that step."""
    length = s.t - s.start
    x = jnp.where(length > 0, (target - s.start) / jnp.where(length > 0, length, 1), 0)
    powers = x.astype(_real(s.y)) ** np.arange(5)
    return jnp.dot(powers, s.polynomial, precision="highest")


def _error_ratio(error: Any, start: Any, end: Any, limits: StepLimits) -> Any:
    """The root mean square of the error relative to the tolerance; a step is good enough up to 1."""
    tolerance = limits.atol + limits.rtol * jnp.maximum(abs(start), abs(end))
    return jnp.sqrt(jnp.mean((abs(error) / tolerance) ** 2))


def _next_step(step: Any, ratio: Any) -> Any:
    """The step length for which the error is predicted to be just within the tolerance."""
    smallest = jnp.where(ratio < 1, 1.0, _SMALLEST_FACTOR)
    wanted = _SAFETY * jnp.where(ratio > 0, ratio, 1) ** (-1 / _ORDER)
    factor = jnp.where(ratio == 0, _LARGEST_FACTOR, jnp.clip(wanted, smallest, _LARGEST_FACTOR))
    return (step * factor).astype(step.dtype)


def _first_step(slope: Slope, y0: Any, t0: Any, at_start: Any, limits: StepLimits) -> Any:
    """A length for the first step, from the sizes of the first two derivatives (Hairer and others, II.4)."""
    scale = limits.atol + limits.rtol * abs(y0)

    def size(x: Any) -> Any:
        return jnp.linalg.norm(abs(x) / scale)

    d0, d1 = size(y0), size(at_start)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    trial = jnp.where(tiny, 1e-6, 0.01 * d0 / jnp.where(tiny, 1, d1))
    moved = _slope_at(slope, (y0 + trial * at_start).astype(y0.dtype), (t0 + trial).astype(t0.dtype))
    d2 = size(moved - at_start) / trial
    largest = jnp.maximum(d1, d2)
    flat = largest <= 1e-15
    by_order = (0.01 / jnp.where(flat, 1, largest)) ** (1 / _ORDER)
    second = jnp.where(flat, jnp.maximum(1e-6, trial * 1e-3), by_order)
    return jnp.minimum(100 * trial, second).astype(t0.dtype)
