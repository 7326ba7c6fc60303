"""Schedules: the size of a step by its number."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini import numpy as jnp
from xlamini.numpy.arguments import as_operand

Schedule = Callable[[Any], Any]
"""A function from the number of a step to its size."""


def constant(step_size: float) -> Schedule:
    """The same size at every step.

    >>> constant(0.1)(1000)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """`step_size * decay_rate ** (i / decay_steps)`.

    >>> schedule = exponential_decay(0.8, decay_steps=10, decay_rate=0.5)
    >>> schedule(0), schedule(10), schedule(20)
    (0.8, 0.4, 0.2)
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: float, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Schedule:
    """`step_size / (1 + decay_rate * i / decay_steps)`; with `staircase` the quotient `i / decay_steps` is an integer.

    >>> inverse_time_decay(0.1, 3, 0.5)(3)
    0.06666666666666667
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: float, decay_steps: float, final_step_size: float, power: float = 1.0
) -> Schedule:
    """From `step_size` to `final_step_size` in `decay_steps` steps, by a power of the share that remains.

    >>> schedule = polynomial_decay(1.0, decay_steps=10, final_step_size=0.0, power=2)
    >>> [float(schedule(step)) for step in (0, 5, 10, 99)]
    [1.0, 0.25, 0.0, 0.0]
    """

    def schedule(step_num: Any) -> Any:
        remaining = 1 - jnp.minimum(step_num, decay_steps) / decay_steps
        return remaining**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Sequence[float], values: Sequence[float]) -> Schedule:
    """The value i up to and including the boundary i, the last value after all of them.

    >>> [float(piecewise_constant([2, 4], [1.0, 0.5, 0.25])(i)) for i in (0, 2, 3, 9)]
    [1.0, 1.0, 0.5, 0.25]
    """
    limits, sizes = jnp.array(boundaries), jnp.array(values)
    if limits.ndim != 1 or sizes.ndim != 1:
        raise ValueError("piecewise_constant: boundaries and values must be sequences of numbers")
    if limits.size != sizes.size - 1:
        raise ValueError(
            f"piecewise_constant: values must be one more than boundaries, got {sizes.size} and {limits.size}"
        )
    return lambda i: sizes[jnp.sum(i > limits)]


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """A schedule as it is; a number as a constant one. TypeError for anything else.

    >>> make_schedule(0.1)(7), make_schedule(lambda step: 1 / (1 + step))(3)
    (0.1, 0.25)
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if isinstance(scalar_or_schedule, str) or jnp.shape(as_operand("make_schedule", scalar_or_schedule)) != ():
        raise TypeError(f"a step size must be a number or a function of the step, got {scalar_or_schedule!r}")
    return constant(scalar_or_schedule)
