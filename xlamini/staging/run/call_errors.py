"""Error translation for jitted functions with static or donated arguments.

C++ raises its own error for an unhashable static argument, and does not notice that a donated array is deleted before
PJRT rejects it. So these functions are wrapped in a thin Python function; others are called in C++ directly.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Values, flatten, trim
from xlamini.core.config import callback_depth
from xlamini.core.state import state
from xlamini.runtime.lifetime import release
from xlamini.staging.trace.static_args import Selected

Explain = Callable[[Exception, Sequence[Any], dict[str, Any]], None]


def guarded(function: Any, explain: Explain, donate: Selected | None = None) -> Any:
    """Wrap C++'s `function` so that `explain(error, args, kwargs)` can raise a typed error in place of a raw one."""

    # C++ does not expect an array to be deleted while it waits for another thread to compile the same signature.
    # A callback may run in another thread than the call that waits for it, so each callback depth has its own lock.
    one_at_a_time: dict[int, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if not donate or state.builder is not None:
                return function(*args, **kwargs)
            with one_at_a_time.setdefault(callback_depth.value, threading.RLock()):
                out = function(*args, **kwargs)
                _release(donate, args, kwargs)
            return out
        except Exception as error:
            try:
                explain(error, args, kwargs)
            except Exception as explained:
                trim(explained)
                raise
            trim(error)
            raise

    call.__wrapped__ = function.__wrapped__  # type: ignore[attr-defined]
    return call


def _release(donate: Selected, args: Values, kwargs: dict[str, Any]) -> None:
    """Mark the donated arrays as deleted, so that their next use raises an error in Python."""
    given = [args[i] for i in donate.nums if i < len(args)]
    given += [kwargs[name] for name in donate.names if name in kwargs]
    release(flatten(given)[0])
