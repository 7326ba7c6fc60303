"""The end of the process: daemon threads wait at a gate, as one that came back from C++ later would end the process.

When the interpreter ends, it ends a thread that asks for its lock, and C++ takes that for a fault: the process is
aborted. So at exit the gate is closed: a daemon thread that calls a compiled function waits for ever, and one that is
inside the library gets some time to come out.
"""
from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

_LIBRARY = str(Path(__file__).parents[1])
_COMPILES = "compile_module"
"""The function from which XLA compiles."""
_STEP = 0.005
_STILL, _STILL_INSIDE = 0.05, 0.25
"""Seconds that a thread may be in one place, outside and inside the library, until it is taken to wait for something.
"""
_LONG, _BUSY, _FEW_MOVES = 5.0, 0.05, 5
"""For so long a thread that hardly moves may run a program, if other threads have so much of a processor."""
_PATIENCE = 25.0


class _ThreadLocation(NamedTuple):
    """Where a thread is: its innermost frame and instruction; whether it is in the library, and whether it compiles."""

    frame: int
    instruction: int
    inside: bool
    compiles: bool


class _Seen(NamedTuple):
    """A thread's place, since when it is there, and how often it has moved."""

    place: _ThreadLocation
    since: float
    moves: int


_never = threading.Lock()
_never.acquire()


class _Process:
    """Whether what goes to a device must ask first (fork.py): the process was forked, or it is about to end."""

    is_barred = False


process: Final = _Process()


class _Gate:
    """The thread that has closed the gate, and those that wait at it."""

    def __init__(self) -> None:
        self.closed_by: int | None = None
        self.waiting: set[int] = set()


_gate = _Gate()


def pass_gate() -> None:
    """Wait for ever in a daemon thread while the gate is closed.

    Not in a thread of C++, which may run a program for whose end the main thread waits.
    """
    if _gate.closed_by is not None and _is_daemon(threading.current_thread()):
        _gate.waiting.add(threading.get_ident())
        _never.acquire()


def close_gate() -> None:
    """Close the gate to daemon threads; the caller empties the caches, so that every call comes to the gate."""
    _gate.closed_by, process.is_barred = threading.get_ident(), True


def wait_for_threads() -> None:
    """Wait until each daemon thread is at the gate, has ended, or will not come back from C++ soon."""
    start, work = time.monotonic(), _work_of_others()
    seen: dict[int, _Seen] = {}
    while threads := _outside():
        frames, passed = sys._current_frames(), time.monotonic() - start
        seen = {t: _seen(seen.get(t), _place(frames.get(t)), passed) for t in threads}
        del frames
        is_busy = passed < _LONG and _work_of_others() - work > _BUSY * passed
        if passed > _PATIENCE or not any(_may_come(each, passed, is_busy) for each in seen.values()):
            return
        time.sleep(_STEP)


def _seen(before: _Seen | None, place: _ThreadLocation, passed: float) -> _Seen:
    if before is None:
        return _Seen(place, passed, 0)
    return before if place == before.place else _Seen(place, passed, before.moves + 1)


def _may_come(seen: _Seen, passed: float, is_busy: bool) -> bool:
    """Whether a thread may soon come back from C++, or to the gate."""
    if seen.place.compiles:
        return True
    if seen.place.inside:
        return is_busy or passed - seen.since < _STILL_INSIDE
    return passed < _STILL or (is_busy and seen.moves <= _FEW_MOVES)


def _work_of_others() -> float:
    """Seconds of processor time that other threads have used."""
    return time.process_time() - time.thread_time()


def _outside() -> list[int]:
    """The daemon threads that are not at the gate."""
    every = [thread for thread in threading.enumerate() if _is_daemon(thread)]
    return [t.ident for t in every if t.ident is not None and t.ident not in _gate.waiting]


def _is_daemon(thread: threading.Thread) -> bool:
    mine = thread.ident == _gate.closed_by
    return thread.daemon and not mine and not isinstance(thread, threading._DummyThread)


def _place(frame: FrameType | None) -> _ThreadLocation:
    inner = (id(frame), frame.f_lasti) if frame else (0, 0)
    compiles = frame is not None and frame.f_code.co_name == _COMPILES
    while frame is not None and not frame.f_code.co_filename.startswith(_LIBRARY):
        frame = frame.f_back
    return _ThreadLocation(*inner, frame is not None, compiles)
