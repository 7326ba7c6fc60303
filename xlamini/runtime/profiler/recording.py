"""Profiler sessions: traces of the host and the devices, written to files; one session at a time in a process."""
from __future__ import annotations

import gzip
import threading
from typing import Any, Final

from jaxlib import _profiler

from xlamini.runtime.devices.platforms import client
from xlamini.runtime.profiler import jaxlib_types

ProfileOptions = jaxlib_types.ProfileOptions
"""What a profile records: `host_tracer_level`, `python_tracer_level` and others, as attributes; `start_trace` takes it.

>>> options = ProfileOptions()
>>> options.python_tracer_level = 0  # no event for each call of a Python function
>>> options.host_tracer_level
2
"""
ProfileData = jaxlib_types.ProfileData
"""The contents of an `.xplane.pb` file that `trace` wrote: its `planes`, each with `lines` of `events`.

>>> import pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     with xlamini.profiler.trace(folder):
...         _ = jnp.sin(1.0)
...     data = ProfileData.from_file(str(next(pathlib.Path(folder).rglob("*.xplane.pb"))))
>>> data.find_plane_with_name("/host:CPU").name
'/host:CPU'
"""
ProfileEvent = jaxlib_types.ProfileEvent
"""Something that ran: its `name`, `start_ns`, `end_ns`, `duration_ns` and `stats`.

>>> data = ProfileData.from_text_proto('''planes { name: "/host:CPU" lines { name: "python" events {
...     metadata_id: 1 duration_ps: 2500000 } } event_metadata { key: 1 value { id: 1 name: "step" } } }''')
>>> [(event.name, event.duration_ns) for plane in data.planes for line in plane.lines for event in line.events]
[('step', 2500.0)]
"""
ProfileLine = jaxlib_types.ProfileLine
"""What one thread or stream did: its `name`, and its `events`.

>>> data = ProfileData.from_text_proto('planes { name: "/host:CPU" lines { name: "python" } }')
>>> [type(line) is ProfileLine for plane in data.planes for line in plane.lines]
[True]
"""
ProfilePlane = jaxlib_types.ProfilePlane
"""What was recorded of a device, or of the host: its `name`, its `stats`, and `lines` of events, one for each thread.

>>> data = ProfileData.from_text_proto('planes { name: "/host:CPU" lines { name: "python" } }')
>>> [(plane.name, [line.name for line in plane.lines]) for plane in data.planes]
[('/host:CPU', ['python'])]
"""
ProfilerServer = jaxlib_types.ProfilerServer
TraceMe = jaxlib_types.TraceMe
register_subprocess: Final = jaxlib_types.register_subprocess
"""`register_subprocess(pid, port)`: trace a process together with this one, through its profiler server at `port`.

It returns a function that undoes it; JaxRuntimeError if no server answers.

>>> import os, socket
>>> with socket.socket() as probe:
...     probe.bind(("localhost", 0))
...     port = probe.getsockname()[1]
>>> server = xlamini.profiler.start_server(port)  # the other process does this
>>> undo = register_subprocess(os.getppid(), port)
>>> undo()
>>> xlamini.profiler.stop_server()
"""


class ProfilerState:
    """The profiler state of the process: the current session, and the profiler server."""

    def __init__(self) -> None:
        self.lock: threading.Lock = threading.Lock()
        self.session: Any = None
        self.owner: Any = None
        self.server: ProfilerServer | None = None

    def start(self, owner: Any, options: ProfileOptions | None) -> None:
        """Start a session for its `ProfileSession`; RuntimeError if one is running."""
        client()  # the profiler registers a device tracer when the platform starts
        if getattr(self.owner, "gives_way", False):
            self.owner.finish()
        with self.lock:
            if self.session is not None:
                place = "" if self.owner.log_dir is None else f" to {self.owner.log_dir}"
                raise RuntimeError(f"start_trace: a trace{place} is being recorded; call stop_trace() first")
            self.session, self.owner = _profiler.ProfilerSession(options or ProfileOptions()), owner

    def stop(self, owner: Any) -> tuple[Any, bytes]:
        """Stop the session, and return it with what it recorded; RuntimeError if its owner's is not running."""
        with self.lock:
            if self.session is None or self.owner is not owner:
                raise RuntimeError("stop_trace: no trace is being recorded; call start_trace(folder) first")
            session, self.session, self.owner = self.session, None, None
            return session, session.stop()

    def serve(self, port: int, start_platform: bool) -> ProfilerServer:
        """Start the server, after the default platform if asked; ValueError if it already runs."""
        if start_platform:
            client()
        with self.lock:
            if self.server is not None:
                raise ValueError("start_server: a profiler server runs already; call stop_server() first")
            self.server = _profiler.start_server(port)
            return self.server

    def stop_serving(self) -> None:
        """Stop the profiler server; ValueError if none runs."""
        with self.lock:
            if self.server is None:
                raise ValueError("stop_server: no profiler server runs; start_server(port) starts one")
            self.server = None


recorder: Final = ProfilerState()


def heap_profile(backend: str | None) -> bytes:
    """The memory profile of a platform's devices, in pprof's format."""
    return gzip.compress(client(backend).heap_profile())


def live_arrays(platform: str | None = None) -> list[Any]:
    """All live arrays of a platform, by default of the default one.

    >>> x = xlamini.numpy.arange(3)
    >>> any(y is x for y in xlamini.live_arrays())
    True
    """
    return client(platform).live_arrays()
