"""The phases of a compilation: tracing, rewriting, lowering, compiling, loading from disk, and the seconds of each.

A phase counts without the phases inside of it, so that the seconds of nested compilations add up to the time that
passed. They are added to the `seconds` that this thread measures; where it measures none, they are only reported to
listeners and logged.
"""
from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from xlamini.core import monitoring
from xlamini.core.jax_flags import log_compiles

Seconds = dict[str, float]
"""Seconds by the name of the phase."""

TRACE, REWRITE, LOWER, COMPILE, LOAD = PHASES = ("trace", "rewrite", "lower", "compile", "load")
_EVENTS = {TRACE: monitoring.TRACED, LOWER: monitoring.LOWERED, COMPILE: monitoring.COMPILED}
_MESSAGES = {TRACE: "Finished tracing %s for jit in %.9f sec",
             LOWER: "Finished jaxpr to MLIR module conversion jit(%s) in %.9f sec"}  # fmt: skip
_logger = logging.getLogger("xlamini")


class _Thread(threading.local):
    phase: Phase | None = None
    seconds: Seconds | None = None


_thread = _Thread()


class Phase:
    """A context manager around one phase of the work on the function called `name`."""

    __slots__ = ("inner", "name", "outer", "phase", "start")

    def __init__(self, phase: str, name: str):
        self.phase, self.name, self.inner = phase, name, 0.0

    def __enter__(self) -> None:
        self.outer, _thread.phase = _thread.phase, self
        self.start = time.perf_counter()

    def __exit__(self, kind: Any, *error: Any) -> None:
        elapsed = time.perf_counter() - self.start
        _thread.phase = self.outer
        if self.outer is not None:
            self.outer.inner += elapsed
        if (seconds := _thread.seconds) is not None:
            seconds[self.phase] = seconds.get(self.phase, 0.0) + elapsed - self.inner
        if kind is None and self.phase in _EVENTS:
            self._tell(elapsed)

    def _tell(self, elapsed: float) -> None:
        if monitoring.listeners:
            monitoring.record_since(_EVENTS[self.phase], time.time() - elapsed, self.name)
        if log_compiles.value and self.phase in _MESSAGES:
            _logger.warning(_MESSAGES[self.phase], self.name, elapsed)


@contextmanager
def measured(seconds: Seconds) -> Generator[None]:
    """Add the phases inside to these seconds, in this thread."""
    outer, _thread.seconds = _thread.seconds, seconds
    try:
        yield
    finally:
        _thread.seconds = outer
