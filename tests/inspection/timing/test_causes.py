"""Scripts with one planted cause each, which `python -m xlamini profile` finds first, and clean ones without any."""
from __future__ import annotations

import hashlib
import linecache
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.inspection.timing.planes import Planes, recording
from xlamini import numpy as jnp
from xlamini.inspection.timing.causes import programs
from xlamini.inspection.timing.causes.devices import copied_work, idle_devices, slow_device
from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.causes.findings import worthwhile
from xlamini.inspection.timing.causes.programs import inserted_copies
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.script.causes import compiled_by_line, compiled_first, small_waits, waits as waited
from xlamini.inspection.timing.script.record import ScriptRecord
from xlamini.inspection.timing.script.samples import LIBRARY, PYTHON, FrameSample, Samples, by_line
from xlamini.inspection.timing.script.transfers import LineTransfers, Transfers
from xlamini.inspection.timing.script.waits import END, LineWait
from xlamini.inspection.timing.trace.calls import ProgramCall
from xlamini.inspection.timing.trace.events import KernelRun, seconds_until_next
from xlamini.inspection.timing.trace.files import Recording
from xlamini.inspection.timing.trace.spans import Spans
from xlamini.inspection.timing.trace.trace import TimedKernel, Trace
from xlamini.staging.compile.ledger import Cause, Compilation, Compilations, Function

PLANTED = Path(__file__).with_name("planted")

CAUSES = {
    "recompiles": ("@jax.jit", "step (FILE:LINE) was compiled 12 times: x is float32[41,64], before float32[40,64]"),
    "host_sync": ("float(value)", "FILE:LINE (<module>) waits for the device 300 times; keep the arrays"),
    "callback": ("jax.pure_callback(", "FILE:LINE calls Python from a compiled program, 100 times"),
    "small_operations": ("force = ", "9001 operations ran one by one outside of jit (jit_neg, "),
    "transposed_product": ("table.T @ h", "FILE:LINE multiplies by an array that lies transposed, 100 times; keep it"),
    "gather_for_slice": ("series[rows]", "FILE:LINE picks neighbours by an array of indices, one by one"),
    "float64": ("x * scale", "FILE:LINE makes float64 of float32, as the other"),
    "wrong_dtype": ("w = step(", "FILE:LINE (<module>) gives float64[4096,512], which becomes float32, 80 times"),
    "captured_constant": ("jnp.asarray(table)", "at FILE:LINE (lookup) a jitted function captures float64[40000,1000]"),
    "undonated": (".at[i].set(row)", "FILE:LINE changes a part of an argument of push, 64 MiB, which is copied"),
    "scan_saves": ("jax.lax.scan(", "the loop around FILE:LINE keeps 3 intermediates of each step"),
    "unsharded": ("jax.grad(", "each of 8 devices computes all of step (FILE:LINE), as no argument is split"),
    "one_device": ("jax.grad(", "device 0 of 8 does all the work, the most of it at FILE:LINE; split the batch: "),
    "slow_device": ("fori_loop(", "and wait for it; the most of it is at FILE:LINE: give all devices as much to do"),
    "slow_loader": ("", "as the next step is called late: FILE:"),
    "first_compile": ("weights[i]", "at FILE:LINE a Python loop repeats 6 operations 100 times"),
    "printing": ("print(i, w)", "FILE:LINE (<module>) writes arrays as text 200 times"),
}  # fmt: skip
"""A part of the planted line, and of the first finding."""
CLEAN = ["clean_training", "clean_scan", "clean_sines", "clean_generation", "clean_data_parallel"]


def report(script: Path, cache: Path) -> str:
    """What is reported of a script with an empty cache of programs."""
    fast = ("XLAMINI_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")  # as tests compile, and users do not
    environment = {name: value for name, value in os.environ.items() if name not in fast}
    environment["XLAMINI_COMPILATION_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-m", "xlamini", "profile", str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.full
@pytest.mark.parametrize("name", CAUSES)
def test_the_planted_cause_is_the_first_finding(name: str, tmp_path: Path) -> None:
    script, (planted, words) = PLANTED / f"{name}.py", CAUSES[name]
    first = report(script, tmp_path).partition("Findings\n")[2].splitlines()[0]
    line = next(n for n, text in enumerate(script.read_text().splitlines(), 1) if planted in text)
    assert words.replace("FILE", str(script)).replace("LINE", str(line)) in first


@pytest.mark.full
@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_script_has_no_finding(name: str, tmp_path: Path) -> None:
    assert "\nNothing stands out.\n" in report(PLANTED / f"{name}.py", tmp_path)


@pytest.mark.full
def test_a_script_says_how_many_devices_there_are(tmp_path: Path) -> None:
    """Recording starts no platform before the script does."""
    script = tmp_path / "devices.py"
    script.write_text('import jax\njax.config.update("jax_num_cpu_devices", 3)\nassert jax.device_count() == 3\n')
    assert "Nothing stands out." in report(script, tmp_path)


def test_findings_are_sorted_and_small_ones_left_out() -> None:
    found = worthwhile(TimeFinding(share, str(share)) for share in (0.06, 0.04, 0.5))
    assert repr(found) == " 50%  0.5\n  6%  0.06"
    assert repr(worthwhile([])) == "Nothing stands out."


def test_a_kernel_lasts_until_the_next_of_its_call() -> None:
    def run(kernel: str, call: str, start: float, end: float) -> KernelRun:
        return KernelRun("m", "", kernel, "d", call, start, end)

    runs = [run("dot", "1", 0, 2), run("add", "1", 10, 12), run("dot", "2", 20, 21), run("add", "2", 22, 25)]
    assert seconds_until_next(runs) == pytest.approx({"dot": 12e-9, "add": 5e-9})


def test_small_waits_are_one_finding() -> None:
    waits: Any = SimpleNamespace(lines=lambda: [LineWait(f"a.py:{n} (f)", 20, 0.04) for n in (1, 2, 3)])
    record: Any = SimpleNamespace(wall=1.0, waits=waits, calls=[], rounds=lambda wait: wait.count)
    (found,) = small_waits(record)
    assert (found.share, found.line) == (pytest.approx(0.12), "a.py:1")
    assert found.text.startswith("3 lines wait for the device, 60 times (a.py:1, a.py:2, a.py:3); keep the arrays")


def test_a_wait_after_many_calls_is_no_finding() -> None:
    """The device had work all along; neither are many reads after all calls."""
    waits: Any = SimpleNamespace(lines=lambda: [LineWait("a.py:1 (f)", 12, 0.5)])
    cases = (24, 12), (720, 12), (24, 1)
    records: Any = [
        SimpleNamespace(wall=1.0, waits=waits, calls=[(0, 1)] * calls, rounds=lambda _, n=rounds: n)
        for calls, rounds in cases
    ]
    assert [len([*waited(record)]) for record in records] == [1, 0, 0]


def test_a_line_outside_of_jit_that_is_compiled_for_each_shape_is_a_finding() -> None:
    def entry(where: str, name: str = "tanh", is_own: bool = True) -> Compilation:
        cause = Cause("shape", "x", "another shape")
        return Compilation(Function(name), cause, where, is_own, compiled=True, seconds={"compile": 0.02})

    often, rare = [entry("a.py:3 (f)")] * 24, [entry("a.py:4 (f)")] * 12 + [entry("a.py:3 (f)", "sin")]
    record: Any = SimpleNamespace(wall=1.0, compiled=[*often, *rare, *[entry("a.py:5 (f)", "step", False)] * 24])
    (found,) = compiled_by_line(record)
    assert (found.share, found.line) == (pytest.approx(0.48), "a.py:3")
    assert found.text.startswith("a.py:3 (f) compiles tanh 24 times, as each shape is a program of its own; pad")


@pytest.mark.parametrize(("compiling", "moving", "count"), [(2.0, 0.0, 1), (0.9, 0.0, 0), (2.0, 2.0, 0)])
def test_first_compilations_take_most_of_the_time(compiling: float, moving: float, count: int) -> None:
    """Not where other programs held them up, or where a captured array was moved meanwhile."""
    entry = Compilation(Function("f", "a.py", 2), Cause("first call", "", ""), "a.py:9 (g)", compiled=True)
    entry.seconds = {"compile": 4.0}
    captured = LineTransfers("a.py:3 (f)", "float32[8]", "float32", True, 1, 32, moving)
    record: Any = SimpleNamespace(
        wall=6.0, cpu=3.0, compiling=compiling, compiled=Compilations([entry]), programs=[],
        transfers=SimpleNamespace(lines=lambda: [captured]),
    )  # fmt: skip
    found = list(compiled_first(record))
    assert [f.text[:55] for f in found] == ["f (a.py:2) took 4 s to compile for its first call; keep"] * count


def test_samples_have_the_time_of_the_cpu() -> None:
    def spin(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    with Samples(0.001) as samples:
        time.sleep(0.2)
        spin(0.1)
    own = [sample for sample in samples.found if sample.is_main]
    spun = sum(sample.cpu for sample in own if "spin" in sample.line)
    assert sum(sample.cpu for sample in own) - spun < 0.05 < spun


def test_times_are_merged() -> None:
    spans = Spans([(5, 6), (0, 2), (1, 3)])
    assert spans.seconds == 4
    assert [when in spans for when in (-1, 0, 2.5, 3, 4, 5.5, 7)] == [False, True, True, False, False, True, False]
    assert [spans.before(when) for when in (-1, 2, 9)] == [0, 1, 2]


class OfKernels(Trace):
    """A trace with given kernels."""

    runs: Any = ()

    def __init__(self, kernels: list[TimedKernel]):
        super().__init__([])
        self.kernels = kernels


def test_a_device_with_more_to_do_is_named_with_its_line() -> None:
    def kernel(name: str, place: str, *seconds: float) -> TimedKernel:
        devices = {f"device {n}": s for n, s in enumerate(seconds)}
        return TimedKernel("jit_step", "", name, (), False, place, sum(seconds), 4, frozenset(), devices=devices)

    even, skewed = kernel("add", "a.py:1", 1, 1, 1, 1), kernel("dot", "a.py:2", 1, 1, 4, 1)
    waiting = kernel("all-reduce.1", "a.py:3", 3, 3, 0, 3)
    (found,) = slow_device(OfKernels([even, skewed, waiting]))
    assert (found.share, found.line) == (3.0, "a.py:2")
    assert found.text.startswith("device 2 computes 5 s, the others 2 s, and wait for it; the most of it is at a.py:2")
    assert not list(slow_device(OfKernels([even, waiting])))
    (held_up,) = slow_device(OfKernels([k._replace(seconds=3 * k.seconds) for k in (even, skewed)]))
    assert (held_up.share, held_up.text) == (9.0, found.text)


@pytest.mark.parametrize(("size", "copied", "slow"), [(1, 0, 0), (2, 1, 1)])
def test_calls_on_one_device_each_are_of_no_common_work(size: int, copied: int, slow: int) -> None:
    """Independent models, one a device, may have one program, and one of them more steps."""
    sharding = SimpleNamespace(is_fully_replicated=True, device_set={*range(size)})
    program: Any = SimpleNamespace(in_shardings=[sharding], inside=lambda name: [])
    devices = {"device 0": 3.0, "device 1": 1.0}
    kernel = TimedKernel("jit_f", "", "dot", (), False, "a.py:2", 4.0, 4, frozenset(), program, devices=devices)
    found = [[*cause(OfKernels([kernel]))] for cause in (copied_work, slow_device)]
    assert [*map(len, found)] == [copied, slow]


@pytest.mark.parametrize(("fastest", "count"), [(0.5, 1), (0.1, 0)])
def test_copies_that_others_hold_up_are_no_finding(monkeypatch: pytest.MonkeyPatch, fastest: float, count: int) -> None:
    def kernel(name: str, seconds: float, fastest: float) -> TimedKernel:
        devices = {"device 0": fastest}
        return TimedKernel("jit_f", "", name, (), False, "a.py:2", seconds, 9, frozenset(), devices=devices)

    monkeypatch.setattr(programs, "_inserted", lambda kernel: kernel.place if kernel.name == "copy.1" else "")
    trace = OfKernels([kernel("copy.1", 2.0, fastest), kernel("dot.2", 3.0, 1.0)])
    trace.runs = [KernelRun("jit_f", "", "dot.2", "device 0", "1", 0, 5e9)]
    found = list(inserted_copies(trace))
    assert [each.share for each in found] == [2.0] * count


@pytest.mark.parametrize(("choices", "seconds", "calls", "count"), [
    (8, [2.0], 4, 1), (1, [2.0], 4, 0), (8, [2.0, 1.0], 4, 0), (8, [2.0], 1, 0), (8, [2.0], 40_000, 0)
])  # fmt: skip
def test_one_of_several_devices_does_all_the_work(choices: int, seconds: list[float], calls: int, count: int) -> None:
    devices = {f"/device:GPU:{n}": s for n, s in enumerate(seconds)}
    program: Any = SimpleNamespace(choices=choices)
    counts = calls, frozenset(ProgramCall("", "jit_step", i, i + 1) for i in range(calls))
    kernel = TimedKernel("jit_step", "", "dot", (), False, "a.py:2", sum(seconds), *counts, program, devices=devices)
    found = list(idle_devices(OfKernels([kernel])))
    assert [(each.share, each.line) for each in found] == [(1.75, "a.py:2")] * count


@pytest.mark.parametrize(("host", "length", "says"), [
    ("PjitFunction(step)", 800, "meanwhile the host calls functions, which takes longer than their programs: let each"),
    ("DevicePut", 800, "meanwhile the host moves arrays to the device: put the next batch there before you wait"),
    ("DevicePut", 300, "meanwhile the host runs other Python: prepare the next batch in a thread, and look at"),
    ("$train.py:3 load", 800, "in gaps between 20 programs; prepare the next batch in a thread, and look at results"),
])  # fmt: skip
def test_a_device_is_idle_between_programs(host: str, length: int, says: str) -> None:
    """A gap of 900 ns follows each program of 100, and one of all is a compilation's."""
    (found,) = TimeReport([Recording("", recording(steps(20, host, length)))]).findings()
    assert found.share == pytest.approx(18 * 900 / (20 * 1000 + 5000 - 900))
    assert found.text.startswith("no program runs in 16.2 us of 24.1 us, in gaps between 20 programs; ")
    assert says in found.text
    assert not TimeReport([Recording("", recording(steps(1, host, length)))]).findings()


def test_a_device_that_is_seldom_idle_is_no_finding() -> None:
    assert not TimeReport([Recording("", recording(steps(20, "DevicePut", 300, busy=700)))]).findings()


def steps(count: int, host: str, length: int, busy: int = 100) -> Planes:
    """Programs that begin each 1000 ns, from the tenth on 5000 later, with an activity of the host after each."""
    starts = [1000 * n + 5000 * (n >= 10) for n in range(count)]
    modules = [("jit_step(7)", start, busy, {"run_id": n}) for n, start in enumerate(starts)]
    return {
        "/device:TPU:0": {
            "XLA Modules": modules,
            "XLA Ops": [("%dot.1 = f32[8]{0} dot(%p)", start, busy, {}) for start in starts],
        },
        "/host:CPU": {"python": [(host, start + busy, length, {}) for start in starts]},
    }


def test_samples_see_short_stretches_of_python() -> None:
    """Between calls of C that let other threads run, though Python by itself would let this one run for 5 ms."""
    before, data = sys.getswitchinterval(), bytes(4096)
    with Samples(0.001) as samples:
        for _ in range(100):
            sum(range(50_000))  # which is the line of most of the time
            hashlib.sha256(data)  # which lets other threads run, but no other process, as sleep would
    (line, *_) = by_line(samples.found)
    file, _, number = line.line.partition(" ")[0].rpartition(":")
    assert linecache.getline(file, int(number)).strip().startswith("sum(range(")
    assert line.seconds > 0.5 * sum(sample.seconds for sample in samples.found)
    assert sys.getswitchinterval() == before


def test_samples_have_the_users_line() -> None:
    with Samples(0.001) as samples:
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            pass
    (line, *_) = by_line(samples.found)
    assert line.line.startswith(f"{__file__}:")
    assert line.line.endswith("(test_samples_have_the_users_line)")
    assert sum(sample.does == PYTHON for sample in samples.found) > len(samples.found) / 2


def test_a_library_that_is_called_counts_for_the_line_that_calls() -> None:
    ready, end = threading.Event(), threading.Event()

    def wait() -> None:
        ready.set()
        end.wait()

    thread = threading.Thread(target=wait)
    with Samples(0.001) as samples:
        thread.start()
        ready.wait()
        time.sleep(0.05)
        end.set()
        thread.join()
    other = by_line(sample for sample in samples.found if not sample.is_main)[0]
    assert other.line.endswith("(test_a_library_that_is_called_counts_for_the_line_that_calls.<locals>.wait)")


def test_time_at_no_line_of_the_script_is_none_of_the_library() -> None:
    samples = [FrameSample(n, 1.0, "a.py:1 (f)", does, True) for n, does in enumerate((PYTHON, LIBRARY, LIBRARY))]
    waits: Any = SimpleNamespace(seconds=0.5, lines=lambda: [LineWait(END, 1, 0.5)])
    report: Any = SimpleNamespace(trace=SimpleNamespace(host=[], of_library=()))
    none: Any = SimpleNamespace(seconds=0.0)
    record = ScriptRecord(10.0, Compilations([]), waits, none, samples, report, True, 0.0, [], 10.0)
    assert [seconds for seconds in record.host.values() if seconds] == [1.0, 0.5, 2.0, 6.5]
    assert list(record.host)[-1] == "no line of the script, as it begins and ends"


def test_samples_are_added_up_by_line() -> None:
    found = [FrameSample(0.0, seconds, line, PYTHON, True) for line, seconds in (("a", 1.0), ("b", 2.0), ("a", 3.0))]
    assert by_line(found) == [("a", 4.0), ("b", 2.0)]


def test_transfers_are_counted_by_line_and_dtype() -> None:
    step, captured = xlamini.jit(lambda x: x + 1), np.ones(300_000, "float32")
    with Transfers() as transfers:
        for _ in range(3):
            step(np.ones((4, 8)))
        jnp.asarray(np.ones(5, "float32"))
        xlamini.jit(lambda i: jnp.asarray(captured)[i])(0)
    found = {(each.given, each.made): each for each in transfers.lines()}
    batch = found["float64[4,8]", "float32"]
    assert (batch.count, batch.bytes, batch.is_converted, batch.is_captured) == (3, 3 * 256, True, False)
    assert batch.line.startswith(f"{__file__}:")
    assert not found["float32[5]", "float32"].is_converted
    assert found["float32[300000]", "float32"].is_captured
    before = [each.count for each in transfers.lines()]
    step(np.ones((4, 8)))
    assert [each.count for each in transfers.lines()] == before
