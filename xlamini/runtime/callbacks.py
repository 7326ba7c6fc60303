"""Python functions that programs call: what XLA gets to call, waiting for effects, and whose error it was.

XLA knows of a failed call only a text. So the error itself is kept under a number, which the text bears; where an error
leaves the library, the number leads back to the error that the user's function raised.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import re
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core.config import callback_depth, default_device, enable_x64
from xlamini.core.edges import edge, install_explanation, trim
from xlamini.core.errors import CallbackError
from xlamini.core.tracer import active
from xlamini.runtime.platforms import local_devices

MAX_PENDING = 64
MAX_FAILURES = 16


class WrongResult(Exception):
    """What a function returned is not what it was announced to return."""


class _Here(threading.local):
    """The last program with ordered effects that a thread has started."""

    last_ordered: Any = None


_here = _Here()


# --- calling the user's function


class HostCall:
    """What XLA calls: `run(operands) -> results`, ndarrays both.

    `what` says in messages what was called (`pure_callback of load`), `place` which line put it into the program.
    """

    def __init__(self, run: Callable[[Sequence[Any]], Sequence[np.ndarray]], what: str, place: str):
        self.run, self.what, self.place, self.x64 = run, what, place, enable_x64.value

    def __call__(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        """For XLA, which passes on no more than a text."""
        try:
            return self._results(operands)
        except BaseException as error:
            raise CallbackError(_noted(error, self._message(error))) from None

    def now(self, operands: Sequence[Any]) -> Sequence[np.ndarray]:
        """Call it outside any program."""
        try:
            return self._results(operands)
        except Exception as error:
            raise CallbackError(self._message(error)) from _cause(error)

    def _results(self, operands: Sequence[Any]) -> tuple[np.ndarray, ...]:
        with _in_call(), active(None), enable_x64(self.x64), default_device(cpu()):
            return tuple(np.asarray(x, order="C") for x in self.run(operands))

    def _message(self, error: BaseException) -> str:
        if isinstance(error, WrongResult):
            return f"{self.what} {error}; it is called at {self.place}"
        trim(error)
        text = "".join(traceback.format_exception(error)).rstrip()
        return f"{self.what} raised {type(error).__name__}: {error}\nIt is called at {self.place}\n{text}"


def cpu() -> Any:
    """The device of what a callback gets and computes."""
    return local_devices(backend="cpu")[0]


@contextmanager
def _in_call() -> Generator[None]:
    depth = callback_depth.value
    callback_depth.set_local(depth + 1)
    try:
        yield
    finally:
        callback_depth.set_local(depth)


# --- failures


class _Failure:
    """A call that failed: what it is to be reported as, and whether it has been."""

    def __init__(self, error: BaseException, message: str):
        self.error, self.message, self.reported = error, message, False


_failures: OrderedDict[int, _Failure] = OrderedDict()
_numbers = itertools.count(1)
_MARK = re.compile(r"\[failed callback (\d+)\]")


def _noted(error: BaseException, message: str) -> str:
    """Keep an error; the message with the number it is kept under."""
    number = next(_numbers)
    _failures[number] = _Failure(error, message)
    if len(_failures) > MAX_FAILURES:
        _failures.popitem(last=False)
    return f"{message} [failed callback {number}]"


def _failure_behind(error: BaseException) -> _Failure | None:
    """The failed call that XLA's error speaks of."""
    found = _MARK.search(str(error)) if isinstance(error, _jax.JaxRuntimeError) else None
    return _failures.get(int(found[1])) if found else None


def _explain(error: BaseException) -> None:
    """Make of XLA's error for a failed call a CallbackError; what is no Exception, such as an interrupt, goes on."""
    failure = _failure_behind(error)
    if failure is None:
        return
    failure.reported = True
    if not isinstance(failure.error, Exception):
        raise failure.error from None
    error.__class__ = CallbackError
    error.args = (failure.message,)
    error.__cause__ = _cause(failure.error)


def _cause(error: Exception) -> Exception | None:
    return None if isinstance(error, WrongResult) else error


install_explanation(_explain)


# --- waiting


_pending: deque[Any] = deque()
_late: deque[_jax.JaxRuntimeError] = deque(maxlen=MAX_FAILURES)


def run_with_callbacks(loaded: Any, arrays: Sequence[Any], ordered: bool) -> Any:
    """Run a program that calls Python functions; its results. Ordered ones wait for those that this thread has started.

    Inside a callback nothing is waited for: that might be the very program that the callback is part of. XLA runs a
    program whose inputs are there at once, in this thread. It would take one of its own threads for one that has to
    wait, of which callbacks that use the library might then find none.
    """
    if ordered and not callback_depth.value and _here.last_ordered is not None:
        _failure_of(_here.last_ordered)
    for x in arrays:
        x.block_until_ready()
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
    failure = _failure_behind(error)
    return failure is not None and failure.reported


def _release(phase: str, info: dict[str, int]) -> None:
    """Let go of the functions of programs that are gone, which C++ must not do by itself."""
    if phase == "stop":
        _jax.collect_garbage()


gc.callbacks.append(_release)
atexit.register(effects_barrier)
