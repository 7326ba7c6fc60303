"""Host callbacks: the Python objects that XLA calls from a program."""
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

from xlamini.core import active, enable_x64, trim
from xlamini.core.errors import CallbackError
from xlamini.core.flags.config import callback_depth, default_device
from xlamini.runtime import jaxlib_types
from xlamini.runtime.devices.platforms import local_devices
from xlamini.runtime.execution.call_failures import WrongResult, cause, record_failure


class HostCall:
    """A host callback: wraps `run(operands) -> results`, a function of ndarrays.

    For messages, `what` describes the call (`pure_callback of load`), and `place` is its source line.
    """

    place: str
    run: Callable[[Sequence[Any]], Sequence[np.ndarray]]
    what: str
    x64: Any

    def __init__(self, run: Callable[[Sequence[Any]], Sequence[np.ndarray]], what: str, place: str):
        self.run, self.what, self.place, self.x64 = run, what, place, enable_x64.value

    def __call__(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        """The entry point for XLA, which passes on only the text of an exception."""
        keep_thread_state()
        try:
            return self._results(operands)
        except BaseException as error:
            raise CallbackError(record_failure(error, self._message(error))) from None

    def now(self, operands: Sequence[Any]) -> Sequence[np.ndarray]:
        """Call the function directly, outside any program."""
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


Buffer = jaxlib_types.Buffer
"""An operand or a result of a callback: its `shape`, `dtype`, `ndim`, and whether it is `writeable`.

>>> from xlamini.experimental.buffer_callback import buffer_callback
>>> def double(ctx, out, x):
...     print(x.shape, x.dtype, x.writeable, out.writeable)
...     np.asarray(out)[:] = 2 * np.asarray(x)
>>> buffer_callback(double, xlamini.ShapeDtypeStruct((3,), "float32"))(jnp.arange(3.0))
(3,) float32 False True
Array([0., 2., 4.], dtype=float32)
"""

ExecutionContext = jaxlib_types.ExecutionContext
"""What XLA tells a callback of its call: the `stage`, and on a GPU the `stream`.

>>> from xlamini.experimental.buffer_callback import buffer_callback
>>> def double(ctx, out, x):
...     print(ctx.stage)
...     np.asarray(out)[:] = 2 * np.asarray(x)
>>> buffer_callback(double, xlamini.ShapeDtypeStruct((3,), "float32"))(jnp.arange(3.0))
ExecutionStage.EXECUTE
Array([0., 2., 4.], dtype=float32)
"""

ExecutionStage = jaxlib_types.ExecutionStage
"""When XLA calls a callback on buffers: as it prepares a program, or, with EXECUTE, as it runs it.

>>> list(ExecutionStage)[-1]
ExecutionStage.EXECUTE
"""


class BufferCall(HostCall):
    """A host callback on device buffers: wraps `run(operands)`, the context and buffers, which writes the results."""

    def _results(self, operands: Sequence[Any]) -> tuple[()]:
        with _in_call(), active(None), enable_x64(self.x64):
            self.run(operands)
        return ()


def cpu() -> Any:
    """The device of a callback's operands and of its own computations."""
    return local_devices(backend="cpu")[0]


@contextmanager
def _in_call() -> Generator[None]:
    depth = callback_depth.value
    callback_depth.set_local(depth + 1)
    try:
        yield
    finally:
        callback_depth.set_local(depth)


_thread_state = threading.local()


def keep_thread_state() -> None:
    """Keep the Python thread state of an XLA thread alive after its first callback.

    Python would delete it after each callback; thread-local objects of the library, such as MLIR's, cannot be freed at
    that moment, because their destructors need the state that is being deleted.
    """
    if not hasattr(_thread_state, "here"):
        _thread_state.here = ctypes.pythonapi.PyGILState_Ensure()


def _release(phase: str, info: dict[str, int]) -> None:
    """Free the callbacks of deleted programs, after each garbage collection: C++ must not do so without the GIL."""
    if phase == "stop":
        _jax.collect_garbage()


gc.callbacks.append(_release)
