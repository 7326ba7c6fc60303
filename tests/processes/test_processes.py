"""Real processes over loopback compute together, and end, with a reason, when one of them does not come or dies.

Each run is bounded in time; whoever is left after that is killed.
"""
from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.paths import ROOT

PROGRAM = Path(__file__).with_name("process_programs.py")
LIMIT = 100

pytestmark = pytest.mark.full


class Ended(NamedTuple):
    """A process that has ended: its exit code and what it wrote."""

    code: int
    text: str


def environment(**more: str) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if not k.startswith("XLAMINI_")}
    path = os.pathsep.join([str(ROOT), *filter(None, [own.get("PYTHONPATH")])])
    return {**own, "PYTHONPATH": path, "XLAMINI_PLATFORMS": "cpu", **more}


def finished(process: subprocess.Popen[str]) -> Ended:
    guard = threading.Timer(LIMIT, process.kill)
    guard.start()
    text, _ = process.communicate()
    guard.cancel()
    return Ended(process.returncode, text)


def launched(count: int, *program: str, devices: int = 1) -> Ended:
    """A program in several processes of the launcher, in a session of its own that is ended as a whole."""
    command = [sys.executable, "-m", "xlamini.launch", "-n", str(count), "--devices", str(devices), str(PROGRAM)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen([*command, *program], env=environment(), start_new_session=True, **pipes)
    try:
        return finished(process)
    finally:
        end_session(process.pid)


def end_session(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def by_hand(count: int, who: list[int], *program: str, timeout: int = 60) -> dict[int, Ended]:
    """Some of `count` processes, as a scheduler would start them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    same = {"XLAMINI_COORDINATOR_ADDRESS": address, "XLAMINI_NUM_PROCESSES": str(count), "TEST_TIMEOUT": str(timeout)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = {
        i: subprocess.Popen(
            [sys.executable, str(PROGRAM), *program], env=environment(**same, XLAMINI_PROCESS_ID=str(i)), **pipes
        )
        for i in who
    }
    with ThreadPoolExecutor(len(who)) as pool:
        return dict(zip(who, pool.map(finished, started.values()), strict=True))


@pytest.fixture(scope="module")
def waiting() -> Iterator[dict[str, Future]]:
    """Runs that mostly wait, all begun at once."""
    with ThreadPoolExecutor(3) as pool:
        yield {
            "absent": pool.submit(by_hand, 4, [0, 2], "train", timeout=8),
            "no coordinator": pool.submit(by_hand, 2, [1], "train", timeout=5),
            "killed": pool.submit(by_hand, 3, [0, 1, 2], "harm", "SIGKILL", "1"),
        }


@pytest.mark.slow
@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize(("count", "devices"), [(2, 2), (4, 1)])
def test_training_together_gives_what_one_process_gives(count: int, devices: int) -> None:
    ended = launched(count, "train", devices=devices)
    assert ended.code == 0, ended.text
    assert sorted(re.findall(r"(\[\d\]) trained on 4 devices", ended.text)) == [f"[{i}]" for i in range(count)]
    assert ended.text.count("processes compute together") == 1


def test_values_go_between_processes() -> None:
    ended = launched(2, "helpers", devices=2)
    assert (ended.code, ended.text.count("helped")) == (0, 2), ended.text


def test_arrays_are_saved_in_one_folder(tmp_path: Path) -> None:
    ended = launched(2, "folders", str(tmp_path / "state"), devices=2)
    assert (ended.code, ended.text.count("saved and loaded")) == (0, 2), ended.text


@pytest.mark.slow
def test_preempted_processes_stop_at_one_step() -> None:
    ended = launched(2, "preemption")
    assert (ended.code, ended.text.count("stopped together")) == (0, 2), ended.text


@pytest.mark.slow
def test_one_thread_runs_programs_of_several_processes() -> None:
    ended = launched(2, "guard")
    assert (ended.code, ended.text.count("guarded")) == (0, 2), ended.text


@pytest.mark.slow
@pytest.mark.parametrize(("count", "devices"), [(2, 2), (4, 1)])
def test_arrays_over_processes(count: int, devices: int) -> None:
    ended = launched(count, "arrays", devices=devices)
    assert ended.code == 0, ended.text
    assert sorted(re.findall(r"(\[\d\]) held together", ended.text)) == [f"[{i}]" for i in range(count)]


def test_processes_that_disagree_are_told() -> None:
    ended = launched(2, "disagree")
    for text in (
        "AssertionError: in_tree['seed'] differs between processes: process 1 has not the value of process 0",
        "ProcessError: process_allgather: in_tree is float64[1] in process 0 and float64[2] in process 1",
        "ValueError: broadcast_one_to_all: exactly one process must be the source, but is_source is true in 2",
        "process 0 is at sync_global_devices('place 0'); process 1 is at sync_global_devices('place 1')",
    ):
        assert ended.text.count(text) == 2, ended.text
    assert ended.code == 0


def test_different_programs_are_refused_before_they_run() -> None:
    ended = launched(2, "different")
    assert ended.code == 1
    line = PROGRAM.read_text().splitlines().index("            y = y * 2  # only here") + 1
    assert "processes are about to run different programs together" in ended.text
    assert re.search(rf"'mul\(.*process_programs\.py:{line} of process 1", ended.text), ended.text


def test_a_failing_process_ends_the_others_with_its_error() -> None:
    ended = launched(2, "harm", "raise", "1")
    assert ended.code == 1
    assert "[1] OSError: the disk is full" in ended.text
    assert "process 0 of 2 ends, because process 1 failed: OSError: the disk is full" in ended.text, ended.text


def test_launcher_gives_the_exit_code_of_the_first_that_failed() -> None:
    ended = launched(2, "harm", "exit", "1")
    assert ended.code == 3
    assert "xlamini.launch: process 1 ended with exit code 3; the others are stopped" in ended.text


def test_launcher_passes_signals_on() -> None:
    command = [sys.executable, "-m", "xlamini.launch", "-n", "2", str(PROGRAM), "harm", "never", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "text": True}
    process = subprocess.Popen(command, env=environment(), start_new_session=True, **pipes)
    try:
        assert "2 processes compute together" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        ended = finished(process)
    finally:
        end_session(process.pid)
    assert ended.code == 128 + signal.SIGTERM
    assert re.search(r"xlamini.launch: process \d was killed by SIGTERM", ended.text), ended.text


def test_a_dead_coordinator_is_named() -> None:
    ended = by_hand(2, [0, 1], "harm", "SIGKILL", "0")
    assert (ended[0].code, ended[1].code) == (-signal.SIGKILL, 1), ended
    assert "process 1 of 2 ends, because process 0, which coordinates, cannot be reached any more" in ended[1].text


def test_a_process_that_dies_ends_the_others_with_its_number(waiting: dict[str, Future]) -> None:
    ended = waiting["killed"].result()
    assert ended[1].code == -signal.SIGKILL
    for i in (0, 2):
        assert ended[i].code == 1, ended[i].text
        assert f"process {i} of 3 ends, because process 1 died: no heartbeat for 6 s" in ended[i].text


def test_processes_that_never_come_are_named_by_all(waiting: dict[str, Future]) -> None:
    for i, ended in waiting["absent"].result().items():
        assert ended.code == 1
        assert f"processes 1, 3 did not come within 8 s; this is process {i} of 4" in ended.text, ended.text


def test_a_coordinator_that_never_comes_is_named(waiting: dict[str, Future]) -> None:
    ended = waiting["no coordinator"].result()[1]
    assert ended.code == 1
    assert "process 0 did not come within 5 s: this is process 1 of 2" in ended.text, ended.text
