"""Error translation for functions that C++ dispatch calls: those with static or donated arguments, and compiled ones.

C++ raises its own error for an unhashable static argument, and does not notice that a donated array is deleted before
PJRT rejects it. So these functions are wrapped in a thin Python function; others are called in C++ directly.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import trim
from xlamini.core.flags.config import callback_depth
from xlamini.core.pytree.flattening import return_levels
from xlamini.core.tracing.state import state
from xlamini.runtime.arrays.lifetime import release

Explain = Callable[[Exception, Sequence[Any], dict[str, Any]], None]


Donated = Callable[[Sequence[Any], dict[str, Any]], Sequence[Any]]
"""The donated arrays among the arguments of a call."""


def guarded(function: Any, explain: Explain, donated: Donated | None = None) -> Any:
    """Wrap C++'s `function` so that `explain(error, args, kwargs)` can raise a typed error in place of a raw one.

    What `donated(args, kwargs)` finds is marked as deleted after a call, so that its next use raises an error.
    """

    # C++ does not expect an array to be deleted while it waits for another thread to compile the same signature.
    # A callback may run in another thread than the call that waits for it, so each callback depth has its own lock.
    one_at_a_time: dict[int, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if donated is None or state.builder is not None:
                return function(*args, **kwargs)
            with one_at_a_time.setdefault(callback_depth.value, threading.RLock()):
                out = function(*args, **kwargs)
                release(donated(args, kwargs))
            return out
        except Exception as error:
            return_levels(error, [*args, *kwargs.values()])
            try:
                explain(error, args, kwargs)
            except Exception as explained:
                trim(explained)
                raise
            trim(error)
            raise

    call.__wrapped__ = getattr(function, "__wrapped__", function)
    return call
