"""`python -m xlamini.launch -n 4 script.py args…`: launch a multi-process (SPMD) program on this machine.

Each process runs the script, which calls `xlamini.distributed.initialize()`. Output lines are prefixed with the rank of
their process. When a process fails the others are stopped, and the exit code is that of the first failure. They end
with the launcher, on Linux also if it is killed.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

_GRACE = 3.0
"""Seconds that the other processes have to end after a failure; after the same time again they are killed."""
_INTERVAL = 0.05
_QUIET = 25.0
"""Seconds after a signal that was passed on, after which the processes that go on are named."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a script in several processes; returns the exit code of the first failure, 0 if none fails."""
    options = _parser().parse_args(argv)
    if options.n < 1:
        _say("-n must be at least 1")
        return 2
    address = f"127.0.0.1:{options.port or _free_port()}"
    processes = [_start(options, i, address) for i in range(options.n)]
    readers = [reader for i, p in enumerate(processes) for reader in _start_readers(p, i)]
    told = _forward_signals(processes)
    code = _wait(processes, told)
    for reader in readers:
        reader.join(_GRACE)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m xlamini.launch", description="Run a script in several processes.")
    parser.add_argument("-n", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("--devices", type=int, metavar="N", help="how many CPU devices each of them has")
    parser.add_argument("--port", type=int, help="where process 0 listens; a free port by default")
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")
    parser.add_argument("script", help="the program, in Python")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's arguments (sys.argv)")
    return parser


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _start(options: argparse.Namespace, number: int, address: str) -> subprocess.Popen[bytes]:
    """Start one process, with its rank in the environment; its platform is the CPU unless the user sets another."""
    env = {"XLAMINI_PLATFORMS": "cpu", "PYTHONUNBUFFERED": "1", **os.environ}
    env |= {"XLAMINI_COORDINATOR_ADDRESS": address, "XLAMINI_NUM_PROCESSES": str(options.n)}
    env["XLAMINI_PROCESS_ID"] = str(number)
    if options.devices is not None:
        env["XLAMINI_NUM_CPU_DEVICES"] = str(options.devices)
    command = [sys.executable, *(["-m"] if options.module else []), options.script, *options.args]
    pipe, ends = subprocess.PIPE, _ending_with(os.getpid()) if sys.platform == "linux" else None
    return subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, preexec_fn=ends  # no thread runs yet
    )


def _ending_with(launcher: int) -> Callable[[], None]:
    """What a child does first: it asks Linux to be killed when the launcher is, however that ends."""
    prctl, on_death = ctypes.CDLL(None).prctl, 1

    def ask() -> None:
        prctl(on_death, signal.SIGKILL)
        if os.getppid() != launcher:  # it has ended already
            os._exit(1)

    return ask


def _start_readers(process: subprocess.Popen[bytes], number: int) -> list[threading.Thread]:
    """Start threads that forward the output lines of a process."""
    prefix, ways = f"[{number}] ".encode(), [(process.stdout, sys.stdout), (process.stderr, sys.stderr)]
    readers = [threading.Thread(target=_forward, args=(a, b.buffer, prefix), daemon=True) for a, b in ways]
    for reader in readers:
        reader.start()
    return readers


def _forward(lines: Any, out: BinaryIO, prefix: bytes) -> None:
    """Pass lines on. Once nobody reads them, the process that writes them is told so in the same way."""
    try:
        for line in lines:
            out.write(prefix + line.rstrip(b"\n") + b"\n")
            out.flush()
    except BrokenPipeError:
        lines.close()


def _forward_signals(processes: Sequence[subprocess.Popen[bytes]]) -> list[tuple[float, str]]:
    """Forward the launcher's signals to all processes, except Ctrl-C, which a terminal sends to each of them.

    The result is a list to which the handler adds when it passed on which signal.
    """
    told: list[tuple[float, str]] = []

    def pass_on(number: int, _: object) -> None:
        from_terminal = number == signal.SIGINT and os.isatty(0)
        for process in processes:
            if process.poll() is None and not from_terminal:
                process.send_signal(number)
        told.append((time.monotonic(), signal.Signals(number).name))

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), pass_on)
    return told


def _wait(processes: Sequence[subprocess.Popen[bytes]], told: list[tuple[float, str]]) -> int:
    """Wait until all processes have ended; after a failure, stop the others.

    Those that a signal does not end are named. They are not killed, since they may be saving what they have.
    """
    while (failed := _failed(processes)) is None:
        if all(p.poll() == 0 for p in processes):
            return 0
        if told and time.monotonic() - told[0][0] > _QUIET:
            alive = ", ".join(str(i) for i, p in enumerate(processes) if p.poll() is None)
            _say(f"still running {_QUIET:.0f} s after {told[0][1]}: {alive}; SIGKILL ends them with the launcher")
            told.clear()
        time.sleep(_INTERVAL)
    code = _exit_code(processes[failed])
    _say(f"process {failed} {_how(processes[failed])}; the others are stopped")
    _stop(processes)
    return code


def _failed(processes: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """The rank of a failed process; one killed by a signal precedes one that ended as a consequence."""
    codes = {i: p.returncode for i, p in enumerate(processes) if p.poll()}
    return min(codes, key=lambda i: (codes[i] > 0, i), default=None)


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """The exit code as a shell reports it: 128 plus the signal's number for a killed process."""
    return 128 - process.returncode if process.returncode < 0 else process.returncode


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Give the processes time to report their errors, then stop them."""
    _wait_for_end(processes, _GRACE)
    for process in processes:
        process.terminate()
    if not _wait_for_end(processes, _GRACE):
        for process in processes:
            process.kill()


def _wait_for_end(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(p.poll() is None for p in processes) and time.monotonic() < deadline:
        time.sleep(_INTERVAL)
    return all(p.poll() is not None for p in processes)


def _say(text: str) -> None:
    sys.stderr.write(f"xlamini.launch: {text}\n")
    sys.stderr.flush()
