"""`python -m xlamini.launch -n 4 script.py args…`: several processes on this machine that compute together.

Each runs the script, which calls `xlamini.distributed.initialize()`. Their lines come out with the process's number in
front. When one fails the others are stopped, and the exit code is the code of the one that failed first.
"""
from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

_GRACE = 3.0
"""Seconds that the others have to end by themselves once one has failed; after as many again they are killed."""
_EVERY = 0.05


def main(argv: Sequence[str] | None = None) -> int:
    """Run a script in several processes; the exit code of the first that fails, 0 if none does."""
    asked = _parser().parse_args(argv)
    if asked.n < 1:
        _say("-n must be at least 1")
        return 2
    address = f"127.0.0.1:{asked.port or _free_port()}"
    processes = [_started(asked, i, address) for i in range(asked.n)]
    readers = [reader for i, p in enumerate(processes) for reader in _forwarded(p, i)]
    _forward_signals(processes)
    code = _wait(processes)
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
    parser.add_argument("args", nargs=argparse.REMAINDER, help="what it gets in sys.argv")
    return parser


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _started(asked: argparse.Namespace, number: int, address: str) -> subprocess.Popen[bytes]:
    """One of the processes. Its environment tells which; its devices are the CPU's unless others are asked for."""
    env = {"XLAMINI_PLATFORMS": "cpu", "PYTHONUNBUFFERED": "1", **os.environ}
    env |= {"XLAMINI_COORDINATOR_ADDRESS": address, "XLAMINI_NUM_PROCESSES": str(asked.n)}
    env["XLAMINI_PROCESS_ID"] = str(number)
    if asked.devices is not None:
        env["XLAMINI_NUM_CPU_DEVICES"] = str(asked.devices)
    command = [sys.executable, *(["-m"] if asked.module else []), asked.script, *asked.args]
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _forwarded(process: subprocess.Popen[bytes], number: int) -> list[threading.Thread]:
    """Threads that pass the lines of a process on."""
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


def _forward_signals(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """What is sent to the launcher is for all of them. A terminal sends Ctrl-C to each by itself."""

    def pass_on(number: int, _: object) -> None:
        from_terminal = number == signal.SIGINT and os.isatty(0)
        for process in processes:
            if process.poll() is None and not from_terminal:
                process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait until all have ended; once one has failed, stop the others."""
    while (failed := _failed(processes)) is None:
        if all(p.poll() == 0 for p in processes):
            return 0
        time.sleep(_EVERY)
    code = _exit_code(processes[failed])
    _say(f"process {failed} {_how(processes[failed])}; the others are stopped")
    _stop(processes)
    return code


def _failed(processes: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """The number of a process that has failed, one killed by a signal before one that ended because of it."""
    codes = {i: p.returncode for i, p in enumerate(processes) if p.poll()}
    return min(codes, key=lambda i: (codes[i] > 0, i), default=None)


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """As a shell gives it: 128 and the signal's number for one that was killed."""
    return 128 - process.returncode if process.returncode < 0 else process.returncode


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Give them a moment to say why they end, then stop them."""
    _ended(processes, _GRACE)
    for process in processes:
        process.terminate()
    if not _ended(processes, _GRACE):
        for process in processes:
            process.kill()


def _ended(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(p.poll() is None for p in processes) and time.monotonic() < deadline:
        time.sleep(_EVERY)
    return all(p.poll() is not None for p in processes)


def _say(text: str) -> None:
    sys.stderr.write(f"xlamini.launch: {text}\n")
    sys.stderr.flush()
