"""Which lines of the user's program the threads are at, sampled every few milliseconds.

A sample counts for the time since the one before, so that a thread that does not let others run, as in a long call of
NumPy, is not counted less for it. Meanwhile Python's switch interval is shorter: with the usual five milliseconds, the
sampler would get the GIL only in the calls of C that follow on shorter stretches of Python, and never see these. A
sample takes microseconds, and its frames tell whether the line computes by itself or is in a call of the library.
"""
from __future__ import annotations

import sys
import sysconfig
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from xlamini.core.errors.frames import own_files

PERIOD = 0.005
"""Seconds between samples."""
_SWITCH_INTERVAL = 1e-4
"""Python's switch interval during sampling, in seconds, after which the sampler gets the GIL."""
PYTHON, LIBRARY, COMPILING, MEASURED = "python", "library", "compiling", "measured"
"""What a thread does at a line: its own Python, or a call of the library, in which it compiles, or does what others
measure: it waits for the device, or moves an array."""

_PACKAGE = Path(__file__).parents[3]
_COMPILING = ("staging/compile", "staging/trace", "lowering", "interpreters")
_COMPILERS = tuple(f"{_PACKAGE / folder}/" for folder in _COMPILING)
_MEASURING = tuple(str(Path(__file__).with_name(name)) for name in ("waits.py", "transfers.py"))
INSTALLED = "installed"
"""Other libraries and Python's own, which compute for the line of the user's that calls them."""
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class FrameSample(NamedTuple):
    """At `when`, on the clock of `time.perf_counter`, a thread was at a line, `file:line (function)`."""

    when: float
    seconds: float
    line: str
    does: str
    is_main: bool
    """Whether it is the thread in which the recording began."""
    cpu: float = 0.0
    """The seconds for which the process had the CPU meanwhile, which other programs do not make longer."""


class Samples:
    """A context manager that samples all threads of Python but its own."""

    def __init__(self, period: float = PERIOD) -> None:
        self.found: list[FrameSample] = []
        self._period, self._end, self._main = period, threading.Event(), 0
        self._files = FileKinds()
        self._thread = threading.Thread(target=self._run, name="xlamini samples", daemon=True)

    def __enter__(self) -> Samples:
        self._main, self._interval = threading.get_ident(), sys.getswitchinterval()
        sys.setswitchinterval(min(_SWITCH_INTERVAL, self._interval))
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()
        sys.setswitchinterval(self._interval)

    def _run(self) -> None:
        own, last, before = threading.get_ident(), time.perf_counter(), time.process_time()
        while not self._end.wait(self._period):
            now, cpu = time.perf_counter(), time.process_time()
            for thread, frame in sys._current_frames().items():
                if thread != own and (where := _place(frame, self._files)) is not None:
                    self.found.append(FrameSample(now, now - last, *where, thread == self._main, cpu - before))
            last, before = now, cpu


class FileKinds(dict[str, str]):
    """What a thread does that runs code of a file; a look-up is quick, as each sample needs many."""

    def __missing__(self, file: str) -> str:
        if not own_files[file]:
            found = INSTALLED if file.startswith((*_INSTALLED, "<frozen")) else PYTHON
        else:
            found = MEASURED if file in _MEASURING else COMPILING if file.startswith(_COMPILERS) else LIBRARY
        self[file] = found
        return found


def _place(frame: FrameType, files: FileKinds) -> tuple[str, str] | None:
    """The innermost line of the user's own code, and what it does; None if there is none."""
    inner: FrameType | None = frame
    does = PYTHON
    while inner is not None and (kind := files[inner.f_code.co_filename]) is not PYTHON:
        if kind is not INSTALLED and does in (PYTHON, LIBRARY):
            does = kind
        inner = inner.f_back
    if inner is None:
        return None
    return f"{inner.f_code.co_filename}:{inner.f_lineno} ({inner.f_code.co_qualname})", does


class LineSamples(NamedTuple):
    """The seconds that a thread was at a line."""

    line: str
    seconds: float


def by_line(samples: Iterable[FrameSample]) -> list[LineSamples]:
    """The samples added up by line, the longest first."""
    found: dict[str, float] = {}
    for sample in samples:
        found[sample.line] = found.get(sample.line, 0.0) + sample.seconds
    return sorted((LineSamples(*each) for each in found.items()), key=lambda each: -each.seconds)
