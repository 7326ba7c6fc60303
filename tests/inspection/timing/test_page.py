"""The page of a profile: its content keeps the schema and the sums of the tables, and long recordings are cut."""
from __future__ import annotations

import base64
import copy
import gc
import gzip
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.inspection.timing.planes import GPU, recording
from tests.support.paths import ROOT
from xlamini import numpy as jnp, profiler
from xlamini.inspection.page import page
from xlamini.inspection.timing.page.content import FORM, VERSION, problems, time_content
from xlamini.inspection.timing.page.snippets import types_in, types_of_programs
from xlamini.inspection.timing.page.window import window
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.script.profile import ScriptProfile
from xlamini.inspection.timing.script.samples import FrameSample
from xlamini.inspection.timing.script.spans import python_spans
from xlamini.inspection.timing.trace.calls import ProgramCall, calls_of, segments_of
from xlamini.inspection.timing.trace.files import Recording
from xlamini.inspection.timing.trace.runs import KernelRun, Segment
from xlamini.runtime.execution.executable import SegmentPlace


def layer(x: Any) -> Any:
    return jnp.tanh(x @ x)


def step(x: Any) -> Any:
    for _ in range(3):
        x = layer(x)
    return x


def line_of(text: str) -> int:
    """The number of the first line of this file that has the text."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def script() -> ScriptProfile:
    jitted = xlamini.jit(step)
    with ScriptProfile() as found:
        for n in (64, 64, 64, 72):
            jitted(jnp.ones((n, n))).block_until_ready()
    return found


@pytest.fixture(scope="module")
def saved(script: ScriptProfile, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("page") / "profile.json"
    script.save(file)
    return json.loads(file.read_text("utf-8"))


def embedded(text: str) -> Any:
    found = re.search('<script id="report" type="application/octet-stream">([A-Za-z0-9+/=]*)</script>', text)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_the_content_keeps_the_schema(saved: dict[str, Any]) -> None:
    assert problems(saved) == []
    assert (saved["schema"], saved["kind"]) == (VERSION, "profile")


def test_the_sums_are_those_of_the_tables(script: ScriptProfile, saved: dict[str, Any]) -> None:
    table, lines, kernels = script.kernels, saved["lines"], saved["kernels"]
    assert sum(lines["seconds"]) == pytest.approx(table.seconds)
    assert sum(kernels["seconds"]) == pytest.approx(table.seconds)
    assert sum(program["seconds"] for program in saved["programs"]) == pytest.approx(table.seconds)
    assert sum(saved["timeline"]["duration"]) * 1e-9 == pytest.approx(table.seconds, abs=1e-9 * sum(kernels["runs"]))
    assert len(saved["timeline"]["kernel"]) == sum(kernels["runs"])
    by_row = [0.0] * len(lines["name"])
    for row, seconds in zip(kernels["row"], kernels["seconds"], strict=True):
        by_row[row] += seconds
    assert by_row == pytest.approx(lines["seconds"])
    host = sum(share["seconds"] for share in saved["shares"] if share["of"] == "host")
    assert host == pytest.approx(script.wall) == saved["totals"]["wall"]


def test_lines_have_their_functions_and_texts(saved: dict[str, Any]) -> None:
    lines = saved["lines"]
    row = lines["name"].index(f"{__file__}:{line_of('return jnp.tanh(x @ x)')}")
    assert lines["function"][row] == "layer"
    file = saved["files"][lines["file"][row]]
    assert file["path"] == __file__
    assert file["texts"][file["numbers"].index(lines["line"][row])] == "    return jnp.tanh(x @ x)"
    waited = lines["name"].index(f"{__file__}:{line_of('jitted(jnp.ones((n, n)))')}")
    assert lines["waits"][waited] == 4
    assert lines["seconds"][waited] == 0
    compiled = lines["name"].index(f"{__file__}:{line_of('def step(')}")
    assert lines["compiled"][compiled] > 0


def lane_of(content: dict[str, Any], title: str) -> list[tuple[str, str | None, int, int, int]]:
    """The name, line, bytes, beginning and end of what is in a lane of the host."""
    host, found, at = content["host"], list[tuple[str, str | None, int, int, int]](), 0
    for i, name in enumerate(host["name"]):
        at += host["gap"][i]
        if host["lanes"][host["lane"][i]] == title:
            line = None if host["row"][i] is None else content["lines"]["name"][host["row"][i]]
            found.append((host["names"][name], line, host["bytes"][i], at, at + host["duration"][i]))
    return found


def test_what_lines_did_on_the_host_is_on_the_clock_of_the_kernels(tmp_path: Path) -> None:
    jitted, x, on_device = xlamini.jit(step), np.ones((64, 64), "float32"), jnp.ones((64, 64))
    jitted(on_device).block_until_ready()
    with ScriptProfile() as found:
        jitted(on_device).block_until_ready()
        for _ in range(3):
            jitted(jnp.asarray(x)).block_until_ready()
            end = time.perf_counter() + 0.03
            while time.perf_counter() < end:
                pass
        jitted(on_device).block_until_ready()  # what is after the last kernel is out of sight
    found.save(tmp_path / "page.json")
    content = json.loads((tmp_path / "page.json").read_text("utf-8"))
    assert problems(content) == []
    moving, turning = (f"{__file__}:{line_of(text)}" for text in ("jitted(jnp.asarray(x))", "while time.perf_counter"))
    moves, waits, turns = (
        [each for each in lane_of(content, title) if each[1] == line]
        for title, line in (("transfers", moving), ("waits", moving), ("Python", turning))
    )
    assert [each[:3] for each in moves] == [("float32[64,64] to the device", moving, 64 * 64 * 4)] * 3
    assert [each[:3] for each in waits] == [("wait", moving, 0)] * 3
    calls = [each for each in lane_of(content, "host") if each[0] == "call of step"]
    assert turns
    for move, wait, following in zip(moves, waits, [*moves[1:], None], strict=True):
        assert any(move[3] < call[4] and call[3] < wait[4] for call in calls)
        assert move[4] <= wait[3]
        assert following is None or wait[4] <= following[3]
    row = content["lines"]["name"].index(moving)
    assert content["lines"]["bytes"][row] == 3 * 64 * 64 * 4
    assert content["lines"]["moved"][row] == pytest.approx(found.transfers.seconds, abs=1e-8)
    assert content["lines"]["python"][content["lines"]["name"].index(turning)] > 0.03


def test_copies_of_a_device_are_a_lane() -> None:
    content = time_content(TimeReport([Recording("", recording(GPU))]))
    assert problems(content) == []
    assert lane_of(content, "copies of /device:GPU:0") == [("H2D copy", None, 4096, 9100, 9700)]


def test_samples_of_one_line_that_follow_on_each_other_are_one_span() -> None:
    samples = [
        FrameSample(when, 0.005, line, "python", True)
        for when, line in ((0.005, "a"), (0.010, "a"), (0.015, "b"), (0.020, "a"), (0.060, "a"))
    ]
    assert [(span.line, round(span.start, 6), round(span.end, 6)) for span in python_spans(samples)] == [
        ("a", 0.0, 0.01), ("b", 0.01, 0.015), ("a", 0.015, 0.02), ("a", 0.055, 0.06)
    ]  # fmt: skip


def test_programs_say_how_to_inspect_them(saved: dict[str, Any]) -> None:
    program = next(it for it in saved["programs"] if it["name"] == "jit_step")
    assert program["calls"] == 4
    assert program["place"] == f"{__file__}:{line_of('def step(')}"
    assert re.fullmatch(
        rf"python -m xlamini inspect {__file__}:step --arg 'f32\[(64,64|72,72)\]' --measure -o step.html",
        program["command"],
    )
    assert program["snippet"].startswith('xlamini.inspect(step, measure=True)(*args).save("step.html")')


def test_a_tree_is_no_argument_of_a_command_line(tmp_path: Path) -> None:
    """It takes several arrays, and the names of functions may have letters of any language."""

    @xlamini.jit
    def größe(params: dict[str, Any], x: Any) -> Any:
        return x @ params["w"] + params["b"]

    with profiler.trace() as session:
        größe({"w": jnp.ones((64, 64)), "b": jnp.ones(64)}, jnp.ones((64, 64))).block_until_ready()
    session.save(tmp_path / "page.json")
    programs = {it["name"]: it for it in json.loads((tmp_path / "page.json").read_text("utf-8"))["programs"]}
    executables = session.programs
    assert programs["jit_gr__e"]["place"].startswith(__file__)
    assert types_of_programs(executables, {"jit_gr__e"}) == {}


def test_findings_name_rows(script: ScriptProfile, saved: dict[str, Any]) -> None:
    assert [it["text"] for it in saved["findings"]] == [it.text for it in script.findings()]
    assert all(it["row"] is None or saved["lines"]["name"][it["row"]] in it["text"] for it in saved["findings"])


def test_the_line_of_a_finding_is_a_row_with_its_text() -> None:
    class Loader(TimeReport):
        def findings(self) -> list[Any]:
            line = f"{__file__}:{line_of('def line_of')}"
            return [SimpleNamespace(share=0.5, text="the loader is slower than the step", line=line)]

    content = time_content(Loader([Recording("", profiler.ProfileData.from_text_proto("planes {}"))]))
    assert problems(content) == []
    (finding,) = content["findings"]
    row, file = finding["row"], content["files"][0]
    assert content["lines"]["line"][row] == line_of("def line_of")
    assert "def line_of(text: str) -> int:" in file["texts"]


def test_a_page_has_its_content(script: ScriptProfile, saved: dict[str, Any], tmp_path: Path) -> None:
    script.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    content = embedded(text)
    content["programs"] = [{**program, "page": None} for program in content["programs"]]
    assert content == saved
    assert text.startswith("<!doctype html>")
    assert "<title>xlamini profile</title>" in text
    assert len(page({"schema": 1}, template="profile")) < 100_000


def test_a_session_is_saved_and_says_what_it_cannot(tmp_path: Path) -> None:
    jitted, x = xlamini.jit(step), jnp.ones((32, 32))
    with profiler.trace() as session:
        jitted(x).block_until_ready()
        with pytest.raises(RuntimeError, match="save: the session has recorded nothing yet; ask after its end"):
            session.save(tmp_path / "early.html")
    session.save(tmp_path / "page.html")
    content = embedded((tmp_path / "page.html").read_text("utf-8"))
    assert problems(content) == []
    assert content["totals"]["wall"] is None
    assert {share["of"] for share in content["shares"]} == {"device"}
    with pytest.raises(ValueError, match=r"save: path must end in \.html or \.json, got '.*page\.txt'"):
        session.save(tmp_path / "page.txt")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["page.html", "page_files"]


def test_a_page_links_to_inspections_with_the_times_of_the_trace(tmp_path: Path) -> None:
    traced, said = list[int](), list[str]()

    def step(x: Any) -> Any:
        traced.append(1)
        return layer(x)

    def main() -> None:
        jitted, x = xlamini.jit(step), jnp.ones((96, 96))
        for _ in range(4):
            jitted(x).block_until_ready()

    with ScriptProfile(inspects=True) as found:
        main()
    found.save(tmp_path / "my page.html", said.append)
    program = embedded((tmp_path / "my page.html").read_text("utf-8"))["programs"][0]
    assert (program["page"], program["unwritten"]) == ("my%20page_files/step.html", "")
    assert said == [f"inspecting step, which is compiled again, for {tmp_path / 'my page_files' / 'step.html'}"]
    report = embedded((tmp_path / "my page_files" / "step.html").read_text("utf-8"))
    (target,) = report["targets"]
    assert traced == [1]
    assert [argument["name"] for argument in report["arguments"]] == ["x"]
    assert target["measured"]["count"] == 4
    measured = sum(kernel["measured"]["seconds"] for kernel in target["kernels"])
    assert measured == pytest.approx(target["measured"]["kernels"])
    assert report["failure"] is None


def test_a_function_that_is_gone_is_said_and_loses_no_page(tmp_path: Path) -> None:
    def main() -> None:
        def lost(x: Any) -> Any:
            return jnp.cumsum(jnp.cos(x))

        xlamini.jit(lost)(jnp.ones((64, 64))).block_until_ready()

    with ScriptProfile() as found:
        main()
    gc.collect()
    found.save(tmp_path / "page.html")
    program = embedded((tmp_path / "page.html").read_text("utf-8"))["programs"][0]
    assert (program["page"], program["snippet"] is None) == (None, False)
    assert "no longer has what this program was made from" in program["unwritten"]
    assert not (tmp_path / "page_files").exists()


def test_an_inspection_that_fails_says_why(script: ScriptProfile, tmp_path: Path) -> None:
    (tmp_path / "page_files").write_text("in the way")
    script.save(tmp_path / "page.html")
    program = next(
        it for it in embedded((tmp_path / "page.html").read_text("utf-8"))["programs"] if it["name"] == "jit_step"
    )
    assert program["page"] is None
    assert program["unwritten"].startswith("It could not be inspected: FileExistsError: ")


def broken(saved: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The content with another value at a path such as `kernels.row.0`."""
    content = copy.deepcopy(saved)
    *steps, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    inner: Any = content
    for part in steps:
        inner = inner[part]
    inner[last] = value
    return content


@pytest.mark.parametrize(("path", "value", "problem"), [
    ("kind", "report", "kind must be one of profile, is 'report'"),
    ("totals.covered", float("nan"), "totals.covered must be a finite number, is nan"),
    ("kernels.row.0", 99, r"kernels.row\[0\] must be the index of one of the \d+ rows, is 99"),
    ("timeline.kernel.0", -1, r"timeline.kernel\[0\] must be the index of one of the \d+ kernels, is -1"),
    ("lines.file.0", 7, r"lines.file\[0\] must be the index of one of the \d files, is 7"),
    ("lines.waits", [1], r"lines.waits has 1 rows, lines.name has \d+"),
    ("timeline.gap", [], r"timeline.gap has 0 rows, timeline.kernel has \d+"),
    ("shares.0.of", "cloud", r"shares\[0\].of must be one of host, device, is 'cloud'"),
])  # fmt: skip
def test_a_slip_is_found(saved: dict[str, Any], path: str, value: Any, problem: str) -> None:
    (found,) = problems(broken(saved, path, value))
    assert re.fullmatch(problem, found)


def test_a_recording_without_kernels() -> None:
    content = time_content(TimeReport([Recording("", profiler.ProfileData.from_text_proto("planes {}"))]))
    assert problems(content) == []
    assert content["timeline"]["shown"] == "no run of a kernel"
    assert content["kernels"]["name"] == []


def runs(*parts: tuple[str, str, float], each: int = 4) -> list[KernelRun]:
    """Calls of programs, as (number of the program, call, start); each has kernels of 10 ns with 5 between."""
    return [
        KernelRun("jit_f", program, f"k{i}", "device 0", call, start + 15 * i, start + 15 * i + 10)
        for program, call, start in parts
        for i in range(each)
    ]


def calls(runs: list[KernelRun], places: dict[str, SegmentPlace] | None = None) -> dict[Segment, ProgramCall]:
    """The calls of programs, given the places of those that are segments by their numbers."""
    names = {run.of: run.module for run in runs}
    return calls_of(segments_of(runs), names, {key: places[key[2]] for key in names if places and key[2] in places})


def test_a_long_recording_is_cut_to_calls_in_the_middle() -> None:
    all_runs = runs(*(("1", str(i), 100.0 * i) for i in range(400)))
    found = window(all_runs, calls(all_runs), most=10)
    assert found.shown == "2 of 400 calls of jit_f; the recording has 1600 runs of kernels"
    assert [run.call for run in found.runs] == ["200"] * 4 + ["201"] * 4
    assert found.focus == ProgramCall("", "jit_f", 20_000.0, 20_055.0)
    assert (found.start, found.end) == (20_000.0, 20_155.0)
    whole = window(all_runs, calls(all_runs), most=1600)
    assert whole.shown == "all 1600 runs of kernels, in which jit_f was called 400 times"
    assert len(whole.runs) == 1600


def test_a_long_call_is_cut_to_its_beginning() -> None:
    all_runs = runs(("1", "0", 0.0), ("1", "1", 500.0), each=30)
    found = window(all_runs, calls(all_runs), most=7)
    assert found.shown == "1 of 2 calls of jit_f, cut to 7 of 30 runs of kernels; the recording has 60 runs of kernels"
    assert [run.start for run in found.runs] == [500.0 + 15 * i for i in range(7)]
    assert found.focus == ProgramCall("", "jit_f", 500.0, 600.0)


def test_segments_are_one_call_and_other_types_are_another() -> None:
    """The recording begins within a step of three runs of one segment and one of another; then come other types."""
    order, other = ((0, 0, 0, last) for last in (1, 1))
    places = {"1": SegmentPlace(0, order), "2": SegmentPlace(1, order), "7": SegmentPlace(0, other)}
    parts = [(program, str(i), 100.0 * i) for i, program in enumerate(("2", *("1112" * 2), "7", "1"))]
    found = dict.fromkeys(calls(runs(*parts), places).values())
    spans = [(0.0, 55.0), (100.0, 455.0), (500.0, 855.0), (900.0, 955.0), (1000.0, 1055.0)]
    assert [(it.start, it.end) for it in found] == spans
    assert len(set(calls(runs(*parts)).values())) == 11


@pytest.mark.full
def test_operations_outside_of_jit_have_no_function_to_inspect(tmp_path: Path) -> None:
    with profiler.trace() as session:
        jnp.cosh(jnp.ones(7)).block_until_ready()
    session.save(tmp_path / "page.json")
    programs = json.loads((tmp_path / "page.json").read_text("utf-8"))["programs"]
    assert "jit_cosh" in [each["name"] for each in programs]
    assert [each["command"] for each in programs] == [None] * len(programs)


def test_types_of_a_program() -> None:
    text = "HloModule jit_f, entry_computation_layout={(pred[2]{0}, (u32[]), bf16[8,4]{1,0:T(8)})->()}, x\n{(f32[])->}"
    assert types_in(text) == ["bool[2]", "(u32[])", "bf16[8,4]"]
    assert types_in("HloModule jit_f") == []


@pytest.mark.full
@pytest.mark.parametrize(("end", "code"), [("", 0), ("raise SystemExit(3)", 3), ("raise KeyError('lost')", 1)])
def test_the_command_writes_a_page_and_keeps_the_status(tmp_path: Path, end: str, code: int) -> None:
    done = profile(tmp_path, end)
    assert done.returncode == code
    assert f"The page is {tmp_path / 'page.html'}" in done.stderr
    content = embedded((tmp_path / "page.html").read_text("utf-8"))
    assert problems(content) == []
    assert content["name"] == "train.py"
    assert [(it["name"], it["calls"]) for it in content["programs"]] == [("jit_step", 5)]
    place = f"{tmp_path / 'train.py'}:step"
    of_jax = f"python -m xlamini run -m xlamini inspect {place} --arg 'f32[64,64]' --measure -o step.html"
    assert content["programs"][0]["command"] == of_jax


SCRIPT = """
import time, jax, jax.numpy as jnp
@jax.jit
def step(x):
    return jnp.tanh(x @ x)
x = jnp.ones((64, 64))
for _ in range(5):
    x = step(x).block_until_ready()
print("ready", flush=True)
"""

INTERRUPTED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts with & ignore it
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""


def command(folder: Path, end: str, page_file: str = "page.html") -> list[str]:
    (folder / "train.py").write_text(SCRIPT + end)
    return [sys.executable, "-m", "xlamini", "profile", "-o", str(folder / page_file), str(folder / "train.py")]


def profile(folder: Path, end: str, page_file: str = "page.html") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, end, page_file), capture_output=True, text=True, check=False)


@pytest.mark.full
def test_the_command_writes_a_page_when_it_is_interrupted(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, INTERRUPTED), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert process.returncode in (130, -signal.SIGINT)
    assert problems(embedded((tmp_path / "page.html").read_text("utf-8"))) == []


@pytest.mark.full
def test_the_command_writes_inspections_though_the_process_is_at_its_exit(tmp_path: Path) -> None:
    """When no thread can begin any more."""
    done = profile(tmp_path, "")
    assert done.returncode == 0, done.stderr
    (program, *_) = embedded((tmp_path / "page.html").read_text("utf-8"))["programs"]
    assert (program["page"], program["unwritten"]) == ("page_files/step.html", "")
    assert (tmp_path / "page_files" / "step.html").exists()


@pytest.mark.full
def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    """One of another ending is refused before the script runs; a folder that is not there is seen after it."""
    refused = profile(tmp_path, "", "page.pdf")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "save: path must end in .html or .json, got" in refused.stderr
    lost = profile(tmp_path, "raise SystemExit(3)", "nowhere/page.html")
    assert (lost.returncode, lost.stdout) == (3, "ready\n")
    assert "The page was not written: " in lost.stderr


def names(form: Any) -> set[str]:
    """Every name of a schema."""
    if isinstance(form, list):
        return names(form[0])
    if not isinstance(form, dict):
        return set()
    return {name.removesuffix("?") for name in form}.union(*(names(inner) for inner in form.values()))


def test_the_schema_is_described() -> None:
    text = (ROOT / "docs/inspect-schema.md").read_text("utf-8")
    assert {name for name in names(FORM) if f"`{name}`" not in text} == set()
