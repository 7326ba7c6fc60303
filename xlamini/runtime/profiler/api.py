"""`xlamini.profiler`: traces of the host and the devices, and memory profiles.

    with xlamini.profiler.trace("/tmp/profile"):
        step(state, batch).block_until_ready()

writes `/tmp/profile/plugins/profile/<time>/`: `<host>.xplane.pb` for XProf and TensorBoard
(`xprof --logdir /tmp/profile`), and `<host>.trace.json.gz`, which https://ui.perfetto.dev opens.
"""
from __future__ import annotations

import functools
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from xlamini.core import hooks
from xlamini.runtime.profiler.recording import (
    ProfileData,
    ProfileEvent,
    ProfileLine,
    ProfileOptions,
    ProfilePlane,
    ProfilerServer,
    TraceMe,
    heap_profile,
    recorder,
    register_subprocess,
)
from xlamini.runtime.profiler.session import ProfileSession, export_profile_data

if TYPE_CHECKING:
    from xlamini.inspection.timing.report import TimeReport

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "ProfileSession",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "export_profile_data",
    "read_trace",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

P = ParamSpec("P")
R = TypeVar("R")


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> ProfileSession:
    """Start a trace of the host and the devices, until `stop_trace()`, and return its session.

    Args:
      log_dir: the folder to write to; it is created if needed.
      create_perfetto_link: print a link that opens the trace in Perfetto, and wait until it has been opened.
      create_perfetto_trace: write `perfetto_trace.json.gz` beside the other files.
      profiler_options: the profiler's options, such as the tracer levels.

    Raises RuntimeError while a trace is being recorded, TypeError for a folder or options of a wrong type.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = start_trace(folder)
    ...     _ = jnp.sin(1.0).block_until_ready()
    ...     data = stop_trace()
    ...     os.listdir(folder)
    ['plugins']
    """
    folder = os.fspath(log_dir)
    return ProfileSession(folder, create_perfetto_link, create_perfetto_trace, profiler_options).start()


def stop_trace() -> ProfileData | None:
    """Stop the trace, write it and return it; RuntimeError if no trace is being recorded.

    >>> stop_trace()
    Traceback (most recent call last):
        ...
    RuntimeError: stop_trace: no trace is being recorded; call start_trace(folder) first
    """
    session = recorder.owner or ProfileSession()
    return session.stop()


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Generator[ProfileSession]:
    """Trace a `with` block; the arguments are those of `start_trace`. Without a folder only the session has the trace.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with xlamini.profiler.trace(folder):
    ...         _ = xlamini.numpy.ones(3).sum().block_until_ready()
    ...     os.listdir(folder)
    ['plugins']
    """
    with ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options) as session:
        yield session


def read_trace(where: os.PathLike[str] | str) -> TimeReport:
    """Read a trace from files, also one that JAX wrote, and say where its time went.

    Args:
      where: the folder that the trace was written to, of which the newest run is read, the folder of another run, or
        one `.xplane.pb` file. Each process has written a file of its own, and all of a run are read.

    The report has `findings`, `table` and `skew` as a `ProfileSession`; `str` is a text of all. Lines and equations are
    those in the HLO of the programs, which the files have; the text of a line is shown if its file is on this machine
    too. A program that was loaded from a cache has the name and the lines of the process that compiled it.

    Raises FileNotFoundError if there is no trace, LoadError for a file that is cut off or none of the profiler's.

    >>> import tempfile
    >>> def step(x):
    ...     return jnp.sin(x) @ x
    >>> x = jnp.ones((64, 64))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with xlamini.profiler.trace(folder):
    ...         _ = xlamini.jit(step)(x).block_until_ready()
    ...     report = xlamini.profiler.read_trace(folder)
    >>> [row.calls for row in report.table(by="program").rows]
    [1]
    """
    return hooks.read_trace(where)


class TraceAnnotation(TraceMe):
    """A named span in the trace, for a `with` block; keyword arguments become its metadata.

    >>> with xlamini.profiler.TraceAnnotation("input", batch=3):
    ...     x = xlamini.numpy.ones(3)
    """


class StepTraceAnnotation(TraceAnnotation):
    """A span for one step of a loop, so that XProf reports times by step; pass the step's number as `step_num=i`.

    >>> for i in range(2):
    ...     with xlamini.profiler.StepTraceAnnotation("train", step_num=i):
    ...         x = xlamini.numpy.ones(3)
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[P, R], name: str | None = None, **decorator_kwargs: Any) -> Callable[P, R]:
    """A function whose calls are spans in the trace, under its own name or `name`; usable as a decorator.

    >>> xlamini.profiler.annotate_function(abs, name="size")(-2)
    2
    """
    if not callable(func):
        raise TypeError(f"annotate_function: func must be a function, got {func!r}")
    shown = name or getattr(func, "__qualname__", None) or type(func).__name__

    @functools.wraps(func)
    def annotated(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_server(port: int, requires_backend: bool = True) -> ProfilerServer:
    """Start the profiler server at `port`, through which XProf and TensorBoard trace this process.

    With `requires_backend` the default platform is started first, so that its devices are traced too. ValueError if a
    server already runs, or for an invalid port. The server is jaxlib's, which listens at all interfaces and asks for no
    password: let no firewall pass the port.

    >>> import socket
    >>> with socket.socket() as probe:
    ...     probe.bind(("localhost", 0))
    ...     port = probe.getsockname()[1]
    >>> server = start_server(port)
    >>> start_server(port)
    Traceback (most recent call last):
        ...
    ValueError: start_server: a profiler server runs already; call stop_server() first
    >>> stop_server()
    """
    if not 0 < port < 2**16:
        raise ValueError(f"start_server: a port is a number from 1 to 65535, got {port}")
    return recorder.serve(port, requires_backend)


def stop_server() -> None:
    """Stop the profiler server; ValueError if none runs.

    >>> stop_server()
    Traceback (most recent call last):
        ...
    ValueError: stop_server: no profiler server runs; start_server(port) starts one
    """
    recorder.stop_serving()


def device_memory_profile(backend: str | None = None) -> bytes:
    """A memory profile of a platform's devices, by allocation site: a compressed profile that `pprof` reads.

    >>> len(xlamini.profiler.device_memory_profile()) > 0
    True
    """
    return heap_profile(backend)


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file; `pprof -http=: FILE` shows it.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "memory.prof"
    ...     save_device_memory_profile(file)
    ...     print(file.stat().st_size > 0)
    True
    """
    Path(filename).write_bytes(heap_profile(backend))
