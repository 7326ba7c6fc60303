"""Programs on several devices that call Python functions: one at a time, and each is waited for.

The devices of such a program wait for one another. So none may fail by itself: what a function raises is kept, it and
those that come later give NaNs or zeros, and when all devices have come to the end the error is raised. And while one
runs, a function that it calls cannot run another on several devices: it would wait for the first, and that for the
function.
"""
from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core.avals import ShapedArray
from xlamini.core.config import devices_busy
from xlamini.core.dtypes import issubdtype
from xlamini.core.errors import CallbackError
from xlamini.runtime.callbacks import HostCall, keep_thread_state

MAX_SKIPPED = 2000
"""How often a device may come to a call after one has failed: it may be in a loop that would end by a result."""

_turn = threading.Lock()
_failures: list[BaseException] = []
_skipped: Counter[int] = Counter()
"""How many calls have been left out since, for each of XLA's threads: so all devices give up in the same turn."""


class CallTogether:
    """What XLA calls in place of a `HostCall` whose results are of the types `avals`."""

    def __init__(self, call: HostCall, avals: Sequence[ShapedArray]):
        self.call, self.avals = call, list(avals)

    def __call__(self, *operands: np.ndarray) -> Sequence[np.ndarray]:
        keep_thread_state()
        before = devices_busy.swap_local(True)
        try:
            return self._results(operands)
        finally:
            devices_busy.set_local(before)

    def _results(self, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        if not _failures:
            try:
                return tuple(self.call.now(operands))
            except BaseException as error:
                _failures.append(error)
        _skipped[threading.get_ident()] += 1
        if _skipped[threading.get_ident()] > MAX_SKIPPED:
            raise CallbackError(str(_failures[0]))
        return tuple(map(_nothing, self.avals))


def _nothing(aval: ShapedArray) -> np.ndarray:
    """What a call gives that has none to give: NaNs, which end most loops, where the dtype has them."""
    return np.full(aval.shape, np.nan if issubdtype(aval.dtype, np.inexact) else 0, aval.dtype)


def run_together(loaded: Any, arrays: Sequence[Any]) -> Any:
    """Run a program with such calls, whose inputs are there; its results when it has ended."""
    with _turn:
        _failures.clear()
        _skipped.clear()
        results = loaded.execute_sharded(arrays, with_tokens=True)
        try:
            results.consume_token().block_until_ready()
        except _jax.JaxRuntimeError:
            if not _failures:
                raise
        failures = list(_failures)
    if failures:
        raise failures[0]
    return results


def refuse_within_another() -> None:
    """RuntimeError in a callback of a program on several devices."""
    if devices_busy.value:
        raise RuntimeError(
            "a callback of a program on several devices cannot run another program on several: it would wait for "
            "devices that wait for the callback; give it the values as arguments, or compute with "
            "numpy.asarray(x) in it"
        )
