"""Effects of running programs: the order of programs with ordered effects, and the barrier that waits for all."""
from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from jaxlib import _jax

from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.flags.config import callback_depth, forked
from xlamini.core.waits import announce
from xlamini.runtime.arrays.lifetime import wait_for
from xlamini.runtime.execution.call_failures import MAX_FAILURES, failure_of
from xlamini.runtime.execution.collective_callbacks import run_with_collective_callbacks

MAX_PENDING = 64


class _LastToken(threading.local):
    """The token of a thread's last program with ordered effects."""

    last_ordered: Any = None


_here = _LastToken()

_pending: deque[Any] = deque()
_unreported: deque[_jax.JaxRuntimeError] = deque(maxlen=MAX_FAILURES)


def run_with_callbacks(loaded: Any, arrays: Sequence[Any], ordered: bool, several: bool) -> Any:
    """Run a program with host callbacks; returns its results. An ordered program waits for this thread's last one.

    Inside a callback it does not wait, because it might wait for the program that the callback is part of. The inputs
    are waited for first: XLA runs a program whose inputs are ready in this thread. For one that has to wait it would
    block a thread of its pool, and callbacks that use the library might then find none free. A multi-device program
    runs to its end before this returns.
    """
    if ordered and not callback_depth.value and _here.last_ordered is not None:
        _failure_of(_here.last_ordered)
    wait_for(arrays)
    if several:
        return run_with_collective_callbacks(loaded, arrays)
    results = loaded.execute_sharded(arrays, with_tokens=True)
    token = results.consume_token()
    _pending.append(token)
    if ordered and not callback_depth.value:
        _here.last_ordered = token
    while len(_pending) > MAX_PENDING and not callback_depth.value:
        _wait_for_oldest()
    return results


def _failure_of(token: Any) -> _jax.JaxRuntimeError | None:
    """Wait until a program has ended; returns its error if it failed."""
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
        _unreported.append(error)


@api_boundary
def effects_barrier() -> None:
    """Wait until all running programs have completed their effects, such as prints and callbacks.

    Raises CallbackError for a failed callback that has not been reported yet, and RuntimeError inside a callback, which
    would wait for itself.

    >>> xlamini.effects_barrier()
    """
    if callback_depth.value:
        raise RuntimeError("effects_barrier: a callback cannot wait for its own program; call it outside")
    if _pending:
        with announce("effects_barrier, or the end of the process, has waited for programs with callbacks"):
            while _pending:
                _wait_for_oldest()
    errors = [error for error in _drain(_unreported) if not _is_reported(error)]
    if errors:
        raise errors[0]


def _drain(queue: deque[Any]) -> list[Any]:
    found = list(queue)
    queue.clear()
    return found


def _is_reported(error: BaseException) -> bool:
    failure = failure_of(error)
    return failure is not None and failure.reported


def _wait_at_exit() -> None:
    if not forked.value:  # the programs that a parent started do not end in its child
        effects_barrier()


atexit.register(_wait_at_exit)
