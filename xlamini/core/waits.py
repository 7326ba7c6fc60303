"""Waits with a name: what waits for longer than half a minute says on stderr what it waits for.

Programs, threads and processes wait for each other, and where one of them hangs, nothing else would tell which.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

QUIET = 25.0
"""Seconds of waiting without a word."""


def say(text: str) -> None:
    """Write a line to stderr: such events would otherwise be invisible to the user."""
    sys.stderr.write(f"xlamini: {text}\n")
    sys.stderr.flush()


@contextmanager
def announce(text: str) -> Generator[None]:
    """Write the line if what is inside waits for long. It costs a thread, so it is for what is rare."""
    timer = threading.Timer(QUIET, say, [f"{text} for {QUIET:.0f} s"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def wait_for_thread(done: threading.Event, text: str) -> None:
    """Wait for an event of another thread, and write the line once."""
    if not done.wait(QUIET):
        say(f"{text} for {QUIET:.0f} s")
        done.wait()


def take(lock: threading.Lock, text: str) -> None:
    """Acquire a lock that is held for long, and write the line once."""
    if not lock.acquire(timeout=QUIET):
        say(f"{text} for {QUIET:.0f} s")
        lock.acquire()
