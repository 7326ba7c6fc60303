"""A limit on the calls of programs that are recorded, as the recording of millions takes longer to read than to make.

C++ dispatch tells nobody of its calls, but has a hook behind each, which takes a tenth of a microsecond. Calls that
come to Python by another way take so long themselves that the limit of time is enough for them.
"""
from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from xlamini.runtime.execution.dispatch import post_hook

MOST_CALLS = 10_000
"""To record and read so many calls of small operations takes half a second."""


class CallBudget:
    """A context manager that calls `end` in a thread of its own, after so many calls of programs."""

    def __init__(self, calls: int, end: Callable[[], None]):
        self._calls, self._numbers, self._end = calls, itertools.count(1), end
        self._thread: threading.Thread | None = None

    def __enter__(self) -> CallBudget:
        post_hook.set_global(self._count)
        return self

    def __exit__(self, *error: object) -> None:
        post_hook.set_global(None)
        if self._thread is not None:
            self._thread.join()

    @property
    def is_spent(self) -> bool:
        """Whether there were so many calls."""
        return self._thread is not None

    def _count(self, *call: object) -> None:
        if next(self._numbers) == self._calls:
            post_hook.set_global(None)
            self._thread = threading.Thread(target=self._end, name="xlamini end of recording", daemon=True)
            self._thread.start()
