"""Failure detection: when a process of the group fails or dies, the others report it and end.

A thread polls the coordination service once a second. A process that ends by an exception publishes its error; a
process that dies silently is detected by its missing heartbeats.
"""
from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import Any, NoReturn

from jaxlib import _jax

from xlamini.runtime.processes.group import ProcessGroup, numbered
from xlamini.runtime.processes.rendezvous import is_refused

_INTERVAL = 1.0
_FAREWELL = 3.0
"""Seconds that a failing coordinator lives on, so that the others can read its error."""
_STAY = 1.0
"""Seconds that process 0 lives on when another one has failed: all should read the error first."""
_SILENCE = 0.6
"""The part of the heartbeat time-out after which a silent coordinator counts as dead; jaxlib waits for all of it."""
_SOON = 3.0
"""Seconds of silence after which the coordinator's port is probed: less than `delay_aborts` gains."""
_LONGEST = 300
_LONGEST_JOIN = 30.0

EXIT_CODE = 1
"""The exit code of a process that ends because another one did."""


class Watch:
    """The polling thread, and the `sys.excepthook` that publishes an exception which ends this process."""

    def __init__(self, group: ProcessGroup, heartbeat: float, address: str):
        self._group, self._heartbeat, self._address = group, heartbeat, address
        self._failed, self._round = False, 0
        self._hook = sys.excepthook
        self._thread = threading.Thread(target=self._run, name="xlamini-watch", daemon=True)
        sys.excepthook = self._on_exception
        delay_aborts()
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether an uncaught exception has ended this process's program."""
        return self._failed

    def stop(self) -> None:
        """Stop watching, after all processes have finished: from now on a disconnection is no failure.

        The thread is joined, because a thread inside jaxlib when Python exits would crash the process.
        """
        self._group.ended = True
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._hook
        self._group.put("failed", "")  # wakes the threads of all processes
        self._thread.join(_LONGEST_JOIN)

    def _run(self) -> None:
        try:
            while not self._is_last_round():
                self._poll()
        except _jax.JaxRuntimeError as error:
            if not (self._group.ended or self._failed):
                self._end(_coordinator_lost(_first_line(error)))

    def _poll(self) -> None:
        """One polling round; it is a barrier, which waits for all live processes."""
        group = self._group
        reason = group.get("failed", _INTERVAL)
        if reason:
            group.put(f"told/{group.process_id}", "")
        if reason and not self._failed:
            self._end(reason)
        last = self._rounds()
        if group.ended and group.service is not None and not last:
            group.put("rounds/last", str(self._round + 1))
        alive = group.client.get_live_nodes(list(group.everyone))
        self._round += 1
        gone = [p for p in group.everyone if p not in alive]
        if gone and not (group.ended or self._failed):
            self._end(f"{numbered(gone)} died: no heartbeat for {self._heartbeat:g} s")

    def _is_last_round(self) -> bool:
        """Whether this was the last round; process 0 announces it a round ahead, so that no process starts another."""
        last = self._group.below("rounds").get("last")
        return last is not None and self._round >= int(last)

    def _rounds(self) -> dict[str, str]:
        """The keys that process 0 writes about rounds; guarded, as jaxlib may hang and abort if process 0 is dead."""
        answered = threading.Event()
        threading.Thread(target=self._wait_for_answer, args=(answered,), daemon=True).start()
        try:
            return self._group.below("rounds")
        finally:
            answered.set()

    def _wait_for_answer(self, answered: threading.Event) -> None:
        patience = self._heartbeat * _SILENCE
        if answered.wait(min(_SOON, patience)):
            return
        if is_refused(self._address):
            self._end(_coordinator_lost("nothing listens there any more"))
        if not answered.wait(max(0.0, patience - _SOON)):
            self._end(f"process 0, which coordinates, has given no answer for {patience:g} s")

    def _end(self, reason: str) -> None:
        """End this process, whose main thread may be blocked in a collective with the dead process."""
        os.write(2, f"xlamini: {self._group.title} ends, because {reason}\n".encode())
        if self._group.service is not None:
            time.sleep(_STAY)
        end_process()

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        """The `sys.excepthook`: print the exception, then publish it to the others."""
        self._failed = not self._group.ended
        self._hook(kind, error, trace)
        if not self._failed:
            return
        if issubclass(kind, _jax.JaxRuntimeError) or "Gloo" in str(error):
            self._wait_for_cause()
        self._publish(f"process {self._group.process_id} failed: {kind.__name__}: {_first_line(error)}")

    def _wait_for_cause(self) -> None:
        """Wait, after a failed collective, for the polling thread to find a dead process and end this one."""
        seconds = self._heartbeat + 4 * _INTERVAL
        os.write(2, f"xlamini: {self._group.title} waits {seconds:g} s to learn whether another one died\n".encode())
        self._failed = False
        time.sleep(seconds)
        self._failed = True

    def _publish(self, reason: str) -> None:
        group = self._group
        try:
            group.put("failed", reason)
            deadline = time.monotonic() + _FAREWELL
            while group.service and len(group.below("told")) < group.num_processes - 1 and time.monotonic() < deadline:
                time.sleep(0.05)
        except _jax.JaxRuntimeError:
            return  # the coordinator is gone, and the others with it


def delay_aborts() -> None:
    """Delay `abort()` by six seconds: libc's `sleep` becomes the handler of SIGABRT, which is signal number 6.

    jaxlib aborts in a thread of its own as soon as the coordinator cannot be reached. The delay lets this process's
    watch report the cause first and end the process.
    """
    if os.name == "posix":
        libc = ctypes.CDLL(None)
        libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
        libc.signal(signal.SIGABRT, ctypes.cast(libc.sleep, ctypes.c_void_p))


def end_process() -> NoReturn:
    """End this process at once, without waiting for its threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_CODE)


def _coordinator_lost(why: str) -> str:
    return f"process 0, which coordinates, cannot be reached any more: it has died ({why})"


def _first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return (str(error).strip().splitlines() or [""])[0][:_LONGEST]
