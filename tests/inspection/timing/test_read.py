"""Traces from files: ours, one of JAX that is stored here, the folders they are in, and files that are none."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.inspection.timing.planes import TPU, xspace
from xlamini import numpy as jnp, profiler
from xlamini.errors import LoadError
from xlamini.inspection.timing.trace.metadata import recorded_programs

JAX = Path(__file__).parent / "traces/jax"
"""Recorded by JAX 0.10.2 on a CPU: three steps of a function with a scan of four products, in /tmp/train.py."""
FILE = JAX / "plugins/profile/first/laptop.xplane.pb"
READ = """
import sys
from xlamini import profiler
for path in sys.argv[1:]:
    try:
        print(len(profiler.read_trace(path).table().rows))
    except Exception as error:
        print(type(error).__name__, error)
"""


def step(x: Any) -> Any:
    return jnp.tanh(x @ x - 0.125).sum()


@pytest.mark.usefixtures("no_cache")
def test_a_trace_of_ours_has_the_lines_and_equations_of_its_session(tmp_path: Path) -> None:
    """The file has them, not the process."""
    x = jnp.asarray(np.eye(128), "float32")
    f = xlamini.jit(step)
    with profiler.trace(tmp_path) as session:
        for _ in range(3):
            f(x).block_until_ready()
    read = profiler.read_trace(tmp_path)
    for by in ("line", "kernel", "equation", "program"):
        assert read.table(by=by).rows == session.table(by=by).rows
    assert read.table().rows[0].name.startswith(f"{__file__}:")


def test_a_trace_of_jax_has_lines_and_names_of_hlo() -> None:
    read = profiler.read_trace(JAX)
    assert [(row.name, row.calls) for row in read.table().rows] == [
        ("/tmp/train.py:4", 3),
        ("/tmp/train.py:5", 3),
        ("/tmp/train.py:10", 3),
    ]
    rows = {row.name: row for row in read.table(by="kernel").rows}
    assert rows["dot.4 of jit_step"].calls == 12
    assert rows["dot.4 of jit_step"].detail == "train.py:4"
    assert not any(row.name.startswith("while") for row in rows.values())


def test_the_program_of_a_recording() -> None:
    (program,) = (each for each in recorded_programs(FILE.read_bytes()) if each.name == "jit_step")
    assert program.to_string().startswith("HloModule jit_step, is_scheduled=true")
    with pytest.raises(ValueError, match="it is no message of protocol buffers"):
        recorded_programs(b"\x0a\xff\x01abc")


def test_a_program_from_a_cache_has_another_number() -> None:
    """In the table of programs than in the events."""
    read = profiler.read_trace(JAX)
    recording = read.trace.recordings[0]
    renamed = [program._replace(program=f"{program.name}(99)") for program in recording.programs]
    read.trace.recordings = [recording._replace(programs=renamed)]
    assert read.table().rows == profiler.read_trace(JAX).table().rows


def test_an_hlo_that_cannot_be_read_leaves_the_names() -> None:
    """As that of another version of XLA may be."""
    read = profiler.read_trace(JAX)
    recording = read.trace.recordings[0]
    read.trace.recordings = [recording._replace(programs=[p._replace(proto=b"\x0a\xff") for p in recording.programs])]
    assert [(row.name, row.calls, row.detail) for row in read.table().rows] == [("no line known", 3, "jit_step")]


def test_the_newest_run_of_a_folder(tmp_path: Path) -> None:
    """And a run, a file or the folder of runs that is named."""
    for age, run in ((2, "b"), (1, "c"), (3, "a")):
        folder = tmp_path / "plugins/profile" / run
        folder.mkdir(parents=True)
        (folder / "host.xplane.pb").write_bytes(xspace(TPU) if run == "c" else FILE.read_bytes())
        os.utime(folder / "host.xplane.pb", (1e9 - age, 1e9 - age))
    assert profiler.read_trace(tmp_path).trace.runs[0].device == "/device:TPU:0"
    assert profiler.read_trace(tmp_path / "plugins/profile").trace.runs[0].device == "/device:TPU:0"
    for named in ("plugins/profile/a", "plugins/profile/b/host.xplane.pb"):
        assert profiler.read_trace(tmp_path / named).trace.runs[0].device == "device 0"


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    """In a process of its own, as C++ reads them."""
    whole = FILE.read_bytes()
    contents = {f"cut{n}": whole[:n] for n in (0, 1, 20, len(whole) // 3, len(whole) // 2, len(whole) - 1)}
    contents |= {"text": b"step 1: loss 0.5\n", "zip": b"PK\x03\x04" + bytes(64)}
    for name, content in contents.items():
        (tmp_path / f"{name}.xplane.pb").write_bytes(content)
    (tmp_path / "empty").mkdir()
    paths = [str(tmp_path / f"{name}.xplane.pb") for name in contents]
    others = [str(tmp_path / "empty"), str(tmp_path / "missing")]
    done = subprocess.run(
        [sys.executable, "-c", READ, *paths, *others], capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    for line, path in zip(said, paths, strict=False):
        assert line.startswith(f"LoadError read_trace: {path!r} was cut off, or is no trace of XLA's profiler; copy or")
    assert f"FileNotFoundError read_trace: {others[0]!r} has no trace, which is a file *.xplane.pb; give" in said[-2]
    assert f"FileNotFoundError read_trace: there is no file or folder {others[1]!r}; give the folder that" in said[-1]


def test_bytes_that_are_damaged(tmp_path: Path) -> None:
    """A file is read or refused, whatever its bytes are."""
    whole, random, file = FILE.read_bytes(), np.random.default_rng(0), tmp_path / "x.xplane.pb"
    refused = 0
    for _ in range(20):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= int(random.integers(1, 256))
        file.write_bytes(damaged)
        try:
            assert str(profiler.read_trace(file))
        except LoadError:
            refused += 1
    assert refused < 20


def test_the_text_has_what_is_found(tmp_path: Path) -> None:
    starts = [1000 * n for n in range(20)]
    operations = [("%dot.1 = f32[8]{0} dot(%p)", start, 100, {}) for start in starts]
    modules = [("jit_step(7)", start, 100, {"run_id": start}) for start in starts]
    (tmp_path / "a.xplane.pb").write_bytes(xspace({"/device:TPU:0": {"XLA Modules": modules, "XLA Ops": operations}}))
    assert str(profiler.read_trace(tmp_path)).startswith("Findings\n 85%  no program runs in 16.2 us of 19.1 us")


@pytest.mark.full
@pytest.mark.parametrize(("arguments", "code", "says"), [
    (["--read", "folder"], 0, "/tmp/train.py:4"),
    (["--read", "missing"], 2, "error: read_trace: there is no file or folder 'missing'"),
    (["--read", "folder", "train.py"], 2, "error: give a program, or --read, one of both"),
    ([], 2, "error: give a program, or --read, one of both"),
])  # fmt: skip
def test_the_command(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    shutil.copytree(JAX, tmp_path / "folder")
    command = [sys.executable, "-m", "xlamini", "profile", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, says in (done.stderr if code else done.stdout)) == (code, True), done.stderr
