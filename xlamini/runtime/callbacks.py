"""Python functions that programs call: what XLA gets to call."""
from __future__ import annotations

import ctypes
import gc
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core.api_boundary import trim
from xlamini.core.config import callback_depth, default_device, enable_x64
from xlamini.core.errors import CallbackError
from xlamini.core.tracer import active
from xlamini.runtime.call_failures import WrongResult, cause, noted
from xlamini.runtime.devices.platforms import local_devices


class HostCall:
    """What XLA calls: `run(operands) -> results`, ndarrays both.

    `what` says in messages what was called (`pure_callback of load`), `place` which line put it into the program.
    """

    def __init__(self, run: Callable[[Sequence[Any]], Sequence[np.ndarray]], what: str, place: str):
        self.run, self.what, self.place, self.x64 = run, what, place, enable_x64.value

    def __call__(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        """For XLA, which passes on no more than a text."""
        keep_thread_state()
        try:
            return self._results(operands)
        except BaseException as error:
            raise CallbackError(noted(error, self._message(error))) from None

    def now(self, operands: Sequence[Any]) -> Sequence[np.ndarray]:
        """Call it outside any program."""
        try:
            return self._results(operands)
        except Exception as error:
            raise CallbackError(self._message(error)) from cause(error)

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


_kept = threading.local()


def keep_thread_state() -> None:
    """Let a thread of XLA's be one thread to Python from its first callback on.

    Python would forget it after each; and what the library keeps for a thread, such as MLIR's objects, cannot be freed
    at that moment: they ask for the state that is going.
    """
    if not hasattr(_kept, "here"):
        _kept.here = ctypes.pythonapi.PyGILState_Ensure()


def _release(phase: str, info: dict[str, int]) -> None:
    """Let go of the functions of programs that are gone, which C++ must not do by itself."""
    if phase == "stop":
        _jax.collect_garbage()


gc.callbacks.append(_release)
