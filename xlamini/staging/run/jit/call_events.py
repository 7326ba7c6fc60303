"""Calls of compiled programs as events, for those who count steps.

C++ dispatch tells nobody of its calls. While somebody listens, each call therefore comes to Python, which takes some
tens of microseconds more.
"""
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xlamini.core.events import CALLED, Listener, subscribe, unsubscribe
from xlamini.staging.run.jit.calls_without_cpp import python_calls
from xlamini.staging.run.jit.cpp_function import clear_dispatch


@contextmanager
def calls_heard(listener: Listener) -> Generator[None]:
    """Call `listener(event)` for each call of a program; `event.program` is the `Program`."""
    clear_dispatch()
    subscribe(listener, CALLED)
    try:
        yield
    finally:
        unsubscribe(listener)
        python_calls.clear()
        clear_dispatch()
