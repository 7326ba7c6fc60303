"""XLA's profiler: what the host and the devices do, when, recorded to files; one recording at a time in a process."""
from __future__ import annotations

import gzip
import threading
from typing import Any

from jaxlib import _profile_data, _profiler

from xlamini.runtime.devices.platforms import client

ProfileOptions = _profiler.ProfileOptions
ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfilePlane = _profile_data.ProfilePlane
ProfilerServer = _profiler.ProfilerServer
TraceMe = _profiler.TraceMe
register_subprocess = _profiler.register_subprocess


class Recorder:
    """The recording that is under way, and the server that others may ask for one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Any = None
        self.folder = ""
        self.server: ProfilerServer | None = None

    def start(self, folder: str, options: ProfileOptions | None) -> None:
        """Begin to record; RuntimeError if a recording is under way."""
        client()  # the devices' part of the profiler is there once they are started
        with self.lock:
            if self.session is not None:
                raise RuntimeError(f"start_trace: a trace to {self.folder} is being recorded; call stop_trace() first")
            self.session = _profiler.ProfilerSession(options or ProfileOptions())
            self.folder = folder

    def stop(self) -> str:
        """Write what was recorded, and return the folder; RuntimeError if nothing was."""
        with self.lock:
            if self.session is None:
                raise RuntimeError("stop_trace: no trace is being recorded; call start_trace(folder) first")
            session, self.session = self.session, None
            session.stop_and_export(self.folder)
            return self.folder

    def serve(self, port: int, start_platform: bool) -> ProfilerServer:
        """Start the server, and the default platform before; ValueError if it runs already."""
        if start_platform:
            client()
        with self.lock:
            if self.server is not None:
                raise ValueError("start_server: a profiler server runs already; call stop_server() first")
            self.server = _profiler.start_server(port)
            return self.server

    def stop_serving(self) -> None:
        """Stop the server; ValueError if none runs."""
        with self.lock:
            if self.server is None:
                raise ValueError("stop_server: no profiler server runs; start_server(port) starts one")
            self.server = None


recorder = Recorder()


def heap_profile(backend: str | None) -> bytes:
    """What lies in a platform's memory, as pprof reads it."""
    return gzip.compress(client(backend).heap_profile())


def live_arrays(platform: str | None = None) -> list[Any]:
    """All arrays of a platform that have not been deleted, by default of the default one.

    >>> x = xlamini.numpy.arange(3)
    >>> any(y is x for y in xlamini.live_arrays())
    True
    """
    return client(platform).live_arrays()
