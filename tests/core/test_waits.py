"""Waits: what waits for longer than half a minute says for what, and no call of the source waits without a name."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import xlamini
from tests.support.paths import ROOT
from xlamini.core import waits
from xlamini.core.caching import memo
from xlamini.runtime.execution import effects, serial_execution

WAITS = {"wait", "join", "acquire", "result", "communicate", "get", "accept", "recv", "recvfrom", "connect", "readline"}
WAITS |= {"block_until_ready", "consume_token"}
NAMED = {
    "core/waits.py: done.wait",  # after the line
    "core/waits.py: lock.acquire",
    "runtime/execution/serial_execution.py: _Previous.token.block_until_ready",
     # others than the first are named by `take`
    "runtime/execution/serial_execution.py: results.consume_token",  # does not wait
    "runtime/execution/collective_callbacks.py: results.consume_token",
    "runtime/execution/collective_callbacks.py: results.consume_token().block_until_ready",
     # the call of the user's program
    "runtime/execution/effects.py: token.block_until_ready",  # effects_barrier names it
    "runtime/execution/effects.py: results.consume_token",
    "runtime/exit_gate.py: _never.acquire",  # daemon threads at the end of the process
    "runtime/files/reader_process.py: back.readline",  # inside `_asked`, which is announced
    "runtime/files/reader_process.py: process.wait",  # it has been killed
    "runtime/processes/head_count.py: listening.recvfrom",  # a daemon thread that answers
    "runtime/processes/head_count.py: asking.recv",  # the socket has a time-out
    "runtime/processes/rendezvous.py: ended.get",  # the thread inside is announced
    "runtime/processes/rendezvous.py: route.connect",  # of datagrams: nothing is sent
    "runtime/processes/roll_call.py: client.connect",  # jaxlib's time-out for connecting
    "runtime/processes/roll_call.py: thread.join",
    "runtime/processes/shutdown.py: x.block_until_ready",  # in `finish`, which is announced
    "transforms/sharding/device_put.py: leaf.block_until_ready",  # what the user waits for
    "runtime/arrays/dlpack.py: array.block_until_ready",
    "runtime/arrays/keys.py: self.words.block_until_ready",
    "experimental/sparse/array.py: x.block_until_ready",
    "experimental/array_serialization/pytree_serialization.py: self._future.result",
    "inspection/timing/script/budget.py: self._thread.join",  # for the end of a recording of so many calls
    "inspection/timing/script/samples.py: self._thread.join",  # for at most one period, some milliseconds
    "inspection/timing/script/profile.py: self._timer.join",  # it may be ending a recording of limited length
    "runtime/files/module_reader.py: sys.stdin.buffer.readline",  # the child, for the next file
    "runtime/processes/rendezvous.py: client.connect",  # jaxlib's time-out for connecting
    "transforms/pallas/tune.py: x.block_until_ready",
    "transforms/pallas/copies.py: async_copy(src_ref, dst_ref, sem).wait",  # equations of kernels, to the end
    "experimental/pallas/pipeline.py: window.read(first, 0).wait",
    "experimental/pallas/pipeline.py: window.write(last, (n - 1) % 2).wait",
    "experimental/pallas/pipeline.py: copy.wait",
    "transforms/checkify/error.py: self.get",  # no waits
    "experimental/hijax/boxes.py: _box('box_get', box).get",
    "experimental/hijax/boxes.py: _box('cur_qdd', x).get",
}
"""Calls that wait without a time-out, and why they need no name of their own."""


def unnamed(path: Path) -> Iterator[str]:
    """The calls of a file that wait without a time-out, outside of `with announced`."""
    tree = ast.parse(path.read_text())
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.With) and "announce(" in ast.unparse(n.items[0])]
    inside = {id(n) for block in blocks for n in ast.walk(block)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or id(node) in inside:
            continue
        sized = node.func.attr in ("recv", "recvfrom", "connect") and len(node.args) == 1
        if node.func.attr in WAITS and (sized or not (node.args or node.keywords)):
            yield f"{path.relative_to(ROOT / 'xlamini').as_posix()}: {ast.unparse(node.func)}"


@pytest.mark.full
def test_no_call_waits_without_a_name() -> None:
    found = {call for path in (ROOT / "xlamini").rglob("*.py") for call in unnamed(path)}
    assert found == NAMED


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "QUIET", 0.2)


def test_a_wait_for_another_threads_program_is_named(short: None, capsys: pytest.CaptureFixture[str]) -> None:
    began, ends, found = threading.Event(), threading.Event(), {}

    def make() -> int:
        began.set()
        assert ends.wait(30)
        found["key"] = 3
        return 3

    def work() -> None:
        memo.made_once("key", "the compilation of f", lambda: found.get("key"), make)

    threads = [threading.Thread(target=work, name=name) for name in ("first", "second")]
    threads[0].start()
    assert began.wait(30)
    threads[1].start()
    said = ""
    for _ in range(300):
        said += capsys.readouterr().err
        if said:
            break
        threads[1].join(0.1)
    ends.set()
    for thread in threads:
        thread.join(30)
    assert said == "xlamini: thread second has waited for the compilation of f, by thread first, for 0 s\n"


def test_a_wait_for_a_turn_is_named(short: None, capsys: pytest.CaptureFixture[str]) -> None:
    lock = threading.Lock()
    lock.acquire()
    timer = threading.Timer(0.6, lock.release)
    timer.start()
    waits.take(lock, "this has waited for that")
    assert capsys.readouterr().err == "xlamini: this has waited for that for 0 s\n"
    timer.join(30)


def test_a_turn_is_given_back() -> None:
    with pytest.raises(ValueError, match="odd"), serial_execution.exclusive():
        raise ValueError("odd")
    with serial_execution.exclusive():
        pass


def test_the_barrier_of_effects_is_named(short: None, capsys: pytest.CaptureFixture[str]) -> None:
    class Token:
        def block_until_ready(self) -> None:
            time.sleep(0.8)

    effects._pending.append(Token())
    xlamini.effects_barrier()
    assert "has waited for programs with callbacks for 0 s" in capsys.readouterr().err


LAUNCH = "import sys; from xlamini.commands import launch; launch._QUIET = 0.5; sys.exit(launch.main(sys.argv[1:]))"
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the processes with the launcher")
def test_processes_that_a_signal_does_not_end_are_named(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(DEAF)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", LAUNCH, "-n", "2", str(script)]
    launcher = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    assert launcher.stdout is not None and launcher.stderr is not None
    try:
        for _ in range(2):
            assert "ready" in launcher.stdout.readline()
        launcher.send_signal(signal.SIGTERM)
        assert launcher.stderr.readline() == (
            "xlamini.launch: still running 0 s after SIGTERM: 0, 1; SIGKILL ends them with the launcher\n"
        )
    finally:
        launcher.kill()
        launcher.communicate(timeout=30)
