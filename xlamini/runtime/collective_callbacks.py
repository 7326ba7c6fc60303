"""Programs on several devices that call Python functions: one at a time, and each is waited for.

The devices of such a program wait for one another. So none may fail by itself: what a function raises is kept, it and
those that come later give NaNs or zeros, and when all devices have come to the end the error is raised. And while one
runs, a function that it calls cannot run another on several devices: it would wait for the first, and that for the
function.
"""
from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core.avals import ShapedArray
from xlamini.core.config import devices_busy
from xlamini.core.dtypes import issubdtype
from xlamini.runtime.callbacks import HostCall, keep_thread_state
from xlamini.runtime.serial_execution import turn

MAX_SKIPPED = 2000
"""How many calls are left out before that is said: the program may be in a loop that would end by a result."""


class _Run:
    """What is known of the program that is running: what failed, and how many calls have been left out since."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.skipped = itertools.count()


class _Now:
    run = _Run()


class CallTogether:
    """What XLA calls in place of a `HostCall` whose results are of the types `avals`."""

    def __init__(self, call: HostCall, avals: Sequence[ShapedArray]):
        self.call, self.avals = call, list(avals)

    def __call__(self, *operands: np.ndarray) -> Sequence[np.ndarray]:
        keep_thread_state()
        before = devices_busy.swap_local(True)
        try:
            return self._results(_Now.run, operands)
        finally:
            devices_busy.set_local(before)

    def _results(self, run: _Run, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        if not run.failures:
            try:
                return tuple(self.call.now(operands))
            except BaseException as error:
                run.failures.append(error)
        if next(run.skipped) == MAX_SKIPPED:
            sys.stderr.write(f"{run.failures[0]}\nThe program goes on without results; stop it if it does not end\n")
        return tuple(map(_nothing, self.avals))


def _nothing(aval: ShapedArray) -> np.ndarray:
    """What a call gives that has none to give: NaNs, which end most loops, where the dtype has them."""
    return np.full(aval.shape, np.nan if issubdtype(aval.dtype, np.inexact) else 0, aval.dtype)


def run_together(loaded: Any, arrays: Sequence[Any]) -> Any:
    """Run a program with such calls, whose inputs are there; its results when it has ended."""
    with turn():
        run = _Now.run = _Run()
        results = loaded.execute_sharded(arrays, with_tokens=True)
        try:
            results.consume_token().block_until_ready()
        except _jax.JaxRuntimeError:
            if not run.failures:
                raise
    if run.failures:
        raise run.failures[0]
    return results


def refuse_within_another() -> None:
    """RuntimeError in a callback of a program on several devices."""
    if devices_busy.value:
        raise RuntimeError(
            "a callback of a program on several devices cannot run another program on several: it would wait for "
            "devices that wait for the callback; give it the values as arguments, or compute with "
            "numpy.asarray(x) in it"
        )
