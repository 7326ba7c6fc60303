"""Jitted functions with static or donated arguments: what C++ would leave raw is said in the user's terms.

C++ refuses an unhashable static argument by itself, and after a call on its path a donated array looks alive to it,
until PJRT refuses that array. So these functions get a thin Python function around the C++ one; the others do without.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.api_boundary import trim
from xlamini.core.config import callback_depth
from xlamini.core.pytree import flatten
from xlamini.core.tracer import state
from xlamini.runtime.lifetime import release
from xlamini.staging.trace.static_args import Selected

Explain = Callable[[Exception, Sequence[Any], dict[str, Any]], None]


def guarded(function: Any, explain: Explain, donate: Selected | None = None) -> Any:
    """A function like C++'s `function`; `explain(error, args, kwargs)` raises the typed error behind a raw one."""

    # C++ does not expect that an array is deleted while it waits for another thread to compile the same signature.
    # A callback may run in another thread than the call that waits for it, so each depth has a lock of its own.
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


def _release(donate: Selected, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Mark the arrays deleted whose memory the call took, so that their next use finds it out in Python."""
    given = [args[i] for i in donate.nums if i < len(args)]
    given += [kwargs[name] for name in donate.names if name in kwargs]
    release(flatten(given)[0])
