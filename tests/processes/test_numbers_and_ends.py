"""Processes that were told different numbers of processes; where process 0 listens; what ends with the launcher."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from xlamini.runtime.processes.head_count import HeadCount, number_told
from xlamini.runtime.processes.rendezvous import default_bind

JOIN = """
import xlamini
try:
    xlamini.distributed.initialize("127.0.0.1:{port}", {count}, {rank})
except RuntimeError as error:
    print(error)
"""

WITH_SIGNALS = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a command with the signals that a job in the background, or one under nohup, hands down as ignored."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(2, 3), (3, 2)])
def test_two_numbers_are_named_at_once(counts: tuple[int, int]) -> None:
    port, start = free_port(), time.monotonic()
    programs = [JOIN.format(port=port, count=count, rank=rank) for rank, count in enumerate(counts)]
    found = [subprocess.Popen([sys.executable, "-c", p], stdout=subprocess.PIPE, text=True) for p in programs]
    said = [process.communicate(timeout=60)[0] for process in found]
    for rank, (own, other) in enumerate((counts, counts[::-1])):
        assert f"process {rank} of {own}, but process {1 - rank} was told that there are {other}" in said[rank]
    assert time.monotonic() - start < 40


def test_the_number_is_asked_for() -> None:
    where, others = ("127.0.0.1", free_port()), queue.Queue[tuple[int, int]]()
    count = HeadCount(where, 4, lambda *told: others.put(told))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
            for text in (b"", b"xlamini processes", b"xlamini processes 1 x", b"xlamini processes 1 2 3", b"\xff" * 99):
                noise.sendto(text, where)
        assert number_told(where, 1, 4) == 4 and others.empty()
        assert number_told(where, 2, 3) == 4 and others.get(timeout=60) == (2, 3)  # told after the answer
    finally:
        count.stop()
    assert number_told(where, 1, 4) is None


def test_a_coordinator_of_one_machine_listens_to_it_alone() -> None:
    assert default_bind("127.0.0.1:80") == "127.0.0.1:80" and default_bind("[::1]:80") == "[::1]:80"
    assert default_bind("127.3.2.1:80") == "127.3.2.1:80" and "0.0.0.0" not in default_bind("localhost:80")
    assert default_bind("localhost:80") in ("127.0.0.1:80", "[::1]:80")
    for address in ("10.0.0.1:80", "machine:80", "[fe80::1]:80", "0.0.0.0:80"):
        assert default_bind(address) == "[::]:80"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_outlives_the_launcher(number: int, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-c", WITH_SIGNALS, sys.executable, "-m", "xlamini.launch", "-n", "2", str(script)]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    try:
        assert launcher.stdout is not None
        children = [int(launcher.stdout.readline().split()[-1]) for _ in range(2)]
        launcher.send_signal(number)
        launcher.wait(30)
        deadline = time.monotonic() + 10
        while any(map(is_alive, children)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(is_alive, children))
    finally:
        launcher.kill()
        launcher.communicate()  # closes the pipe


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{process}")
