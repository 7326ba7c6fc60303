"""Programs with effects: in which order they run, and waiting for them."""
from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from jaxlib import _jax

from xlamini.core.api_boundary import edge
from xlamini.core.config import callback_depth
from xlamini.runtime.call_failures import MAX_FAILURES, failure_behind
from xlamini.runtime.collective_callbacks import run_together

MAX_PENDING = 64


class _Here(threading.local):
    """The last program with ordered effects that a thread has started."""

    last_ordered: Any = None


_here = _Here()

_pending: deque[Any] = deque()
_late: deque[_jax.JaxRuntimeError] = deque(maxlen=MAX_FAILURES)


def run_with_callbacks(loaded: Any, arrays: Sequence[Any], ordered: bool, several: bool) -> Any:
    """Run a program that calls Python functions; its results. Ordered ones wait for those that this thread has started.

    Inside a callback nothing is waited for: that might be the very program that the callback is part of. XLA runs a
    program whose inputs are there at once, in this thread. It would take one of its own threads for one that has to
    wait, of which callbacks that use the library might then find none. A program on several devices is waited for.
    """
    if ordered and not callback_depth.value and _here.last_ordered is not None:
        _failure_of(_here.last_ordered)
    for x in arrays:
        x.block_until_ready()
    if several:
        return run_together(loaded, arrays)
    results = loaded.execute_sharded(arrays, with_tokens=True)
    token = results.consume_token()
    _pending.append(token)
    if ordered and not callback_depth.value:
        _here.last_ordered = token
    while len(_pending) > MAX_PENDING and not callback_depth.value:
        _wait_for_oldest()
    return results


def _failure_of(token: Any) -> _jax.JaxRuntimeError | None:
    """Wait until a program has ended; its error if it failed."""
    try:
        token.block_until_ready()
    except _jax.JaxRuntimeError as error:
        return error
    return None


def _wait_for_oldest() -> None:
    try:
        token = _pending.popleft()
    except IndexError:  # another thread was faster
        return
    error = _failure_of(token)
    if error is not None:
        _late.append(error)


@edge
def effects_barrier() -> None:
    """Wait until all programs that were started have had their effects: printed, called back.

    Raises CallbackError for a callback that failed, unless that has been reported before, and RuntimeError inside a
    callback, where it would wait for itself.

    >>> xlamini.effects_barrier()
    """
    if callback_depth.value:
        raise RuntimeError("effects_barrier: a callback cannot wait for its own program; call it outside")
    while _pending:
        _wait_for_oldest()
    errors = [error for error in _taken(_late) if not _is_reported(error)]
    if errors:
        raise errors[0]


def _taken(queue: deque[Any]) -> list[Any]:
    found = list(queue)
    queue.clear()
    return found


def _is_reported(error: BaseException) -> bool:
    failure = failure_behind(error)
    return failure is not None and failure.reported


atexit.register(effects_barrier)
