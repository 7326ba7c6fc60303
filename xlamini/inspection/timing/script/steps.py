"""The end of a profile before the script's own: after some steps, or where nothing else would run, as by `os._exit`."""
from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from xlamini.staging.compile.ledger import compilations
from xlamini.staging.run.jit.call_events import calls_heard


class StepCount:
    """A context manager that calls `end` when a program of the user's has run `steps` times and is called again."""

    steps: int
    function: str
    """The name of the function that has run so often."""

    def __init__(self, steps: int, end: Callable[[], None]):
        self.steps, self._end = steps, end
        self._calls, self._stack = Counter[Any](), ExitStack()
        self.function = ""

    def __enter__(self) -> StepCount:
        self._stack.enter_context(calls_heard(self._count))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _count(self, event: Any) -> None:
        self._calls[event.program] += 1
        if self._calls[event.program] == self.steps + 1 and _is_users(event.name):
            self.function = event.name
            self._stack.close()
            self._end()


def _is_users(name: str) -> bool:
    """Whether a function of this name was compiled that is none of the library's."""
    return any(entry.name == name and not entry.is_own for entry in compilations())


@contextmanager
def before_exit(end: Callable[[], None]) -> Generator[None]:
    """Call `end` before the process leaves by `os._exit`."""
    leave = os._exit

    def leave_after(status: int) -> None:
        try:
            end()
        finally:
            leave(status)

    os._exit = leave_after  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave


@contextmanager
def before_termination(end: Callable[[], None]) -> Generator[None]:
    """Call `end` before SIGTERM, such as a job scheduler's, ends the process; a handler of the script's is left alone.

    Python runs a handler when the main thread is back from a call of C, so that a running program is waited for.
    """
    if not _is_main() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(number: int, frame: object) -> None:
        try:
            end()
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        if _is_main() and signal.getsignal(signal.SIGTERM) is terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()  # in no other may handlers be set
