"""Branches and loops in kernels that write to refs instead of returning values: `when` and `loop`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Tracer
from xlamini.transforms.cond.api import cond
from xlamini.transforms.control_flow.fori_loop import fori_loop


def when(condition: Any) -> Callable[[Callable[[], None]], None]:
    """A decorator that runs a function of no arguments if the condition holds, at run time if it is traced.

    >>> @when(2 > 1)
    ... def _():
    ...     print("runs")
    runs
    """

    def run(fun: Callable[[], None]) -> None:
        if isinstance(condition, Tracer):
            cond(condition, _without_result(fun), lambda: None)
        elif condition:
            fun()

    return run


def _without_result(fun: Callable[[], Any]) -> Callable[[], None]:
    def branch() -> None:
        fun()

    branch.__name__ = getattr(fun, "__name__", "when")
    return branch


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that runs a function for each index from `lower` on, in steps of `step`, below `upper`.

    Without `init_carry` the function takes the index and returns None. With it, it takes the index and the carry and
    returns the next carry; the last one takes the place of the function. Raises ValueError for a step of 0.

    >>> @loop(0, 4, init_carry=0)
    ... def total(i, carry):
    ...     return carry + i
    >>> total
    Array(6, dtype=int32, weak_type=True)
    """
    if not isinstance(step, Tracer) and step == 0:
        raise ValueError("loop: step must not be 0; write step=1 for each index")
    trips = upper - lower if _is_one(step) else -((lower - upper) // step)

    def run(body: Callable[..., Any]) -> Any:
        def turn(i: Any, carry: Any) -> Any:
            index = lower + (i if _is_one(step) else i * step)
            return body(index) if init_carry is None else body(index, carry)

        turn.__name__ = getattr(body, "__name__", "loop")
        return fori_loop(0, trips, turn, init_carry, unroll=unroll)

    return run


def _is_one(step: Any) -> bool:
    return isinstance(step, int) and step == 1
