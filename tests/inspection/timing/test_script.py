"""`python -m xlamini profile`: scripts with a planted cause, which is the first finding, with its line."""
from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.inspection.timing.script import profile as profile_of_script
from xlamini.inspection.timing.script.profile import ScriptProfile
from xlamini.inspection.timing.script.waits import HostWaits
from xlamini.runtime.profiler.recording import recorder

HEAD = """
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((jnp.tanh(x @ w) - 1) ** 2).mean())(w)
rng = np.random.default_rng(0)
w, x = (jnp.asarray(rng.normal(size=(n, 256)), "float32") for n in (256, 512))
step(w, x).block_until_ready()
"""
LOSSES = """
for i in range(60):
    w = step(w, x)
    float(w[0, 0])
"""
LENGTHS = """
for i in range(12):
    w = step(w, np.ones((30 + i, 256), "float32"))
w.block_until_ready()
"""
CLEAN = """
for i in range(400):
    w = step(w, x)
w.block_until_ready()
"""


def profile(folder: Path, text: str, *arguments: str, script: str = "train.py") -> subprocess.CompletedProcess[str]:
    (folder / script).write_text(text)
    command = [sys.executable, "-m", "xlamini", "profile", str(folder / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.full
def test_a_wait_in_the_loop_is_the_first_finding(tmp_path: Path) -> None:
    done = profile(tmp_path, HEAD + LOSSES)
    first = done.stderr.partition("Findings\n")[2].splitlines()[0]
    assert f"{tmp_path}/train.py:12 (<module>) waits for the device 60 times; keep the arrays" in first
    assert "train.py:5" in done.stderr.partition("share  calls")[2].splitlines()[1]


@pytest.mark.full
def test_losses_that_are_read_after_the_loop_are_no_finding(tmp_path: Path) -> None:
    done = profile(tmp_path, HEAD + """
values = []
for i in range(100):
    w = step(w, x)
    values.append(w)
for i, value in enumerate(values):
    print(i, value.tolist()[0][0])
""")
    assert "Nothing stands out." in done.stderr
    assert re.search(r" 100 .*train.py:15 \(<module>\)", done.stderr)


@pytest.mark.full
def test_a_function_that_is_compiled_again_is_the_first_finding(tmp_path: Path) -> None:
    done = profile(tmp_path, HEAD + LENGTHS)
    first = done.stderr.partition("Findings\n")[2].splitlines()[0]
    assert f"step ({tmp_path}/train.py:3) was compiled 13 times: x is float32[41,256], before float32[40,256]" in first
    assert "to avoid it, " in first


@pytest.mark.full
def test_a_clean_script_has_no_finding(tmp_path: Path) -> None:
    assert "Nothing stands out." in profile(tmp_path, HEAD + CLEAN).stderr


@pytest.mark.full
@pytest.mark.parametrize(("end", "code", "says"), [
    ("import sys; sys.exit(3)", 3, "of wall time"),
    ("raise KeyError('lost')", 1, "KeyError: 'lost'"),
    ("raise KeyboardInterrupt", 130, "of wall time"),
    ("import os; os._exit(7)", 7, "of wall time"),
    ("import os; os.fork() or os._exit(7)", 0, "of wall time"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15, "of wall time"),
    ("import os, signal; os.fork() or os.kill(os.getpid(), signal.SIGTERM)", 0, "of wall time"),
])  # fmt: skip
def test_the_end_of_the_script_is_kept(tmp_path: Path, end: str, code: int, says: str) -> None:
    done = profile(tmp_path, f"import sys\nprint(sys.argv[1:])\n{end}\n", "--lr", "0.1")
    assert done.stdout == "['--lr', '0.1']\n"
    assert done.returncode in (code, -2 if code == 130 else code)
    assert done.stderr.count("of wall time") == 1
    assert says in done.stderr


@pytest.mark.full
def test_a_handler_of_the_script_takes_the_place_of_ours(tmp_path: Path) -> None:
    done = profile(tmp_path, """
import os, signal, sys
def stop(*_):
    print("saving")
    sys.exit(4)
signal.signal(signal.SIGTERM, stop)
os.kill(os.getpid(), signal.SIGTERM)
""")
    assert (done.returncode, done.stdout, done.stderr.count("of wall time")) == (4, "saving\n", 1)


@pytest.mark.full
@pytest.mark.parametrize("end", ["", "import sys; sys.exit(3)", "raise KeyError"])
def test_what_the_script_does_at_exit_is_in_the_report(tmp_path: Path, end: str) -> None:
    """As an evaluation after the last step, and the functions of the script still have their lines."""
    done = profile(tmp_path, f"""{HEAD}
import atexit
atexit.register(lambda: [print(float(step(w, x)[0, 0])) for _ in range(20)])
{end}
""")
    assert re.search(r" 20  .*train.py:11 \(<lambda>", done.stderr)
    assert re.search(rf"% +21 .*  {tmp_path.parent}", done.stderr)
    assert done.stdout.count("\n") == 20


def test_the_report_comes_after_some_steps() -> None:
    step, x, found = xlamini.jit(lambda x: jnp.tanh(x @ x) + 0.375), jnp.ones((16, 16)), []
    with ScriptProfile(steps=5, on_end=found.append) as profile:
        for i in range(12):
            x = step(jnp.sin(x))
            assert len(found) == (i >= 5)
    assert found == [profile]
    row = next(row for row in profile.kernels.rows if row.name.startswith(__file__))
    assert row.calls == 5
    assert str(profile).endswith("This is until <lambda> had run 5 times; the script goes on.")


def test_steps_are_one_or_more() -> None:
    command = [sys.executable, "-m", "xlamini", "profile", "--steps", "0", __file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--steps must be 1 or more, got 0" in done.stderr


def test_a_file_that_is_not_there() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "xlamini", "profile", "nothing.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no file 'nothing.py'; a module is run by -m" in done.stderr


def test_reads_are_counted_by_line_and_once() -> None:
    x = jnp.arange(3.0)
    with HostWaits() as waits:
        repr(x)
        for _ in range(4):
            float(x[0] + jnp.ones(1000).sum())
        x.tolist()
        x.block_until_ready()
        xlamini.device_get([x + i for i in range(50)])
        xlamini.block_until_ready([x + i for i in range(50)])
    counts = [wait.count for wait in sorted(waits.lines(), key=lambda wait: int(wait.line.split(":")[1].split()[0]))]
    assert counts == [1, 4, 1, 1, 1, 1]
    assert all(wait.line.startswith(f"{__file__}:") for wait in waits.lines())
    before = waits.seconds
    x.tolist()
    assert waits.seconds == before > 0


def test_numpy_reads_arrays_of_the_cpu() -> None:
    x, before = jnp.arange(3.0), (np.asarray, np.array)
    with HostWaits() as waits:
        for _ in range(3):
            assert np.asarray(x, dtype="int32").tolist() == np.array(x).tolist() == [0, 1, 2]
            assert np.array(object=[1.0], ndmin=2).shape == (1, 1)
    assert [wait.count for wait in waits.lines()] == [6]
    assert (np.asarray, np.array) == before


def test_callbacks_do_not_wait() -> None:
    """What they read is there, and the line of the call is none that reads."""
    read: list[float] = []

    @xlamini.jit
    def step(x: Any) -> Any:
        xlamini.debug.print("{x}", x=x[:3])
        xlamini.debug.callback(lambda x: read.append(float(x)), x.sum())
        return x * 1.5

    x = jnp.ones(8)
    with HostWaits() as waits:
        for _ in range(3):
            x = step(x)
        xlamini.effects_barrier()
    assert read == [8.0, 12.0, 18.0]
    assert waits.lines() == []


@pytest.mark.usefixtures("no_cache")
def test_the_report_of_a_block() -> None:
    step = xlamini.jit(lambda x: jnp.tanh(x @ x).sum())
    with ScriptProfile() as found:
        for n in (3, 4, 5):
            step(jnp.ones((n, n))).block_until_ready()
    text = str(found)
    assert text.splitlines()[0].endswith("of wall time")
    counts = {function.name: len(entries) for function, entries in found.compiled.by_function().items()}
    assert counts["<lambda>"] == 3
    assert "<lambda>" in found.findings()[0].text
    assert "was compiled 3 times: x is float32[5,5], before float32[4,4]; to avoid it, " in found.findings()[0].text


def test_a_trace_of_the_script_itself() -> None:
    step, x = xlamini.jit(lambda x: (x @ x).sum()), jnp.ones((64, 64))
    with ScriptProfile() as found:
        step(x).block_until_ready()
        with xlamini.profiler.trace() as own:
            step(x).block_until_ready()
    assert [row.calls for row in own.table(by="program").rows] == [1]
    assert [row.calls for row in found.kernels.rows][:1] == [1]
    assert str(found).endswith("The script took a trace of its own, and those from then on are not listed. "
                               "Shares of kernels are of the time before.")  # fmt: skip


def test_recording_has_an_end() -> None:
    step, x = xlamini.jit(lambda x: (x @ x).sum()), jnp.ones((8, 8))
    with ScriptProfile(seconds=0.05) as found:
        for _ in range(50):
            step(x).block_until_ready()
            time.sleep(0.01)
    (row, *_) = found.kernels.rows
    assert 0 < row.calls < 50
    assert "\nKernels were recorded for 0.05 s, and those from then on are not listed. Shares" in str(found)


@pytest.mark.full
def test_recording_ends_after_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of kernels are of the recorded time, and the line of calls is that of calls to the end."""
    monkeypatch.setattr(profile_of_script, "MOST_CALLS", 20)
    step, x = xlamini.jit(lambda x: jnp.tanh(x @ x)), jnp.ones((512, 512))
    step(x).block_until_ready()
    with ScriptProfile() as found:
        for _ in range(80):
            x = step(x).block_until_ready()
    (row, *_) = found.kernels.rows
    assert 0 < row.calls < 80
    assert str(found).endswith("Kernels were recorded for 20 calls of programs, and those from then on are not listed. "
                               "Shares of kernels are of the time before.")  # fmt: skip
    assert sum(found.recorded.on_device.values()) == pytest.approx(found.wall)
    assert found.recorded.on_device["the device was not recorded"] > 0
    before, after = (sum(s.seconds for s in some) for some in (found.recorded.sampled, found.recorded.samples))
    assert before == pytest.approx(after)


def test_a_script_may_end_while_its_recording_does(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, stop = threading.Event(), recorder.stop

    def slow(owner: Any) -> Any:
        found = stop(owner)
        stopped.set()
        time.sleep(0.1)
        return found

    monkeypatch.setattr(recorder, "stop", slow)
    with ScriptProfile(seconds=0.01) as found:
        xlamini.jit(lambda x: (x @ x).sum() * 0.375)(jnp.ones((8, 8))).block_until_ready()
        stopped.wait()
    assert "Kernels were recorded for 0.01 s, and those from then on are not listed." in str(found)


def test_programs_of_functions_that_are_gone_have_lines() -> None:
    def main() -> None:
        step = xlamini.jit(lambda x: jnp.tanh(x @ x).sum())
        step(jnp.ones((64, 64))).block_until_ready()

    with ScriptProfile() as found:
        main()
    assert found.kernels.rows[0].name.startswith(f"{__file__}:")


@pytest.mark.full
def test_operations_outside_of_jit_are_a_finding_without_a_line(tmp_path: Path) -> None:
    """All lines share their programs, so that none of them can be named."""
    done = profile(tmp_path, """
import jax.numpy as jnp
x = jnp.ones(3)
for _ in range(2000):
    x = jnp.sin(x)
y = jnp.cos(x) - jnp.sin(x)
for _ in range(2000):
    y = y * 2 + x
""")
    assert "6003 operations ran one by one outside of jit (jit_sin, " in done.stderr
    assert "operations outside of jit  jit_sin, " in done.stderr
    assert "train.py:" not in done.stderr.partition("share  calls")[2].replace("train.py:3", "")
