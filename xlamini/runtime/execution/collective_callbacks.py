"""Host callbacks in multi-device programs: such programs run one at a time, and each call blocks until it ends.

The devices of such a program wait for one another, so no device may fail alone: the first exception is stored, the
failed call and all later ones return NaNs or zeros, and the exception is raised when all devices have ended. A callback
of such a program cannot run another multi-device program: that one would wait for the first, which waits for the
callback.
"""
from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core import ShapedArray, issubdtype
from xlamini.core.flags.config import devices_busy
from xlamini.runtime.execution.callbacks import HostCall, keep_thread_state
from xlamini.runtime.execution.serial_execution import exclusive

MAX_SKIPPED = 2000
"""The number of skipped calls after which the error is printed: the program may loop until a callback's result."""


class _CallbackRun:
    """The state of the running program: its failures, and the number of calls skipped since."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.skipped = itertools.count()


class _Current:
    run = _CallbackRun()


class CollectiveHostCall:
    """The callback for multi-device programs, in place of a `HostCall`, with results of types `avals`."""

    avals: list[ShapedArray]
    call: HostCall

    def __init__(self, call: HostCall, avals: Sequence[ShapedArray]):
        self.call, self.avals = call, list(avals)

    def __call__(self, *operands: np.ndarray) -> Sequence[np.ndarray]:
        keep_thread_state()
        before = devices_busy.swap_local(True)
        try:
            return self._results(_Current.run, operands)
        finally:
            devices_busy.set_local(before)

    def _results(self, run: _CallbackRun, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        if not run.failures:
            try:
                return tuple(self.call.now(operands))
            except BaseException as error:
                run.failures.append(error)
        if next(run.skipped) == MAX_SKIPPED:
            sys.stderr.write(f"{run.failures[0]}\nThe program goes on without results; stop it if it does not end\n")
        return tuple(map(_skipped_result, self.avals))


def _skipped_result(aval: ShapedArray) -> np.ndarray:
    """The result of a skipped call: NaNs where the dtype has them, because NaNs end most loops, else zeros."""
    return np.full(aval.shape, np.nan if issubdtype(aval.dtype, np.inexact) else 0, aval.dtype)


def run_with_collective_callbacks(loaded: Any, arrays: Sequence[Any]) -> Any:
    """Run a multi-device program with callbacks, whose inputs are ready; returns its results when it has ended."""
    with exclusive():
        run = _Current.run = _CallbackRun()
        results = loaded.execute_sharded(arrays, with_tokens=True)
        try:
            results.consume_token().block_until_ready()
        except _jax.JaxRuntimeError:
            if not run.failures:
                raise
    if run.failures:
        raise run.failures[0]
    return results


def check_not_nested() -> None:
    """Raise RuntimeError inside a callback of a multi-device program."""
    if devices_busy.value:
        raise RuntimeError(
            "a callback of a program on several devices cannot run another program on several: it would wait for "
            "devices that wait for the callback; give it the values as arguments, or compute with "
            "numpy.asarray(x) in it"
        )
