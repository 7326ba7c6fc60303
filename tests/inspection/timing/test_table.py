"""Tables of traces: the time of kernels by line, kernel, equation and program."""
from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp, profiler
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.trace.events import KernelRun, kernel_runs, time_covered
from xlamini.inspection.timing.trace.files import Recording


def small_and_large(x: Any) -> Any:
    y = jnp.sin(x[:8, :8]).sum()
    large = x @ x
    return y + lax.fori_loop(0, 5, lambda _, c: jnp.tanh(c @ x), large).sum()


def line_of(text: str) -> int:
    """The line of this file that has the text."""
    lines, start = inspect.getsourcelines(small_and_large)
    return start + next(i for i, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def session() -> profiler.ProfileSession:
    x, step = jnp.asarray(np.eye(256), "float32"), xlamini.jit(small_and_large)
    step(x).block_until_ready()
    with profiler.trace() as found:
        for _ in range(3):
            step(x).block_until_ready()
    return found


def test_the_slow_line_is_the_first(session: profiler.ProfileSession) -> None:
    table = session.table()
    assert table.rows[0].name == f"{__file__}:{line_of('fori_loop')}"
    assert table.rows[0].detail.startswith("return y + lax.fori_loop(0, 5,")
    assert table.rows[0].calls == 3
    assert f"{__file__}:{line_of('x @ x')}" in [row.name for row in table.rows]


def test_ways_to_add_up_have_one_sum(session: profiler.ProfileSession) -> None:
    """A loop's own time is that of the kernels in it, which are not counted twice."""
    tables = [session.table(by=by) for by in ("line", "kernel", "equation", "program")]
    for table in tables:
        assert table.seconds == pytest.approx(tables[0].seconds)
        assert sum(row.share for row in table.rows) == pytest.approx(1)
    products = [row for row in tables[1].rows if "dot_general#" in row.detail]
    assert sorted(row.calls for row in products) == [3, 15]
    assert [(row.name, row.calls) for row in tables[3].rows] == [("jit_small_and_large", 3)]
    assert any(row.name.startswith("dot_general#e") for row in tables[2].rows)


def test_the_text_has_the_sums(session: profiler.ProfileSession) -> None:
    text = str(session.table(by="program"))
    assert text.splitlines()[0].split() == ["time", "share", "calls", "each", "program"]
    assert "100.0%      3" in text
    assert "Kernels took" in text
    assert "no kernel ran in" in text


def test_mistakes(session: profiler.ProfileSession) -> None:
    with pytest.raises(ValueError, match=r"table: by must be one of 'line', 'kernel', .*, got 'lines'; did you mean"):
        session.table(by="lines")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="table: the session has recorded nothing yet; ask after its end"):
        profiler.ProfileSession().table()


STATS = 'stats { metadata_id: 1 str_value: "loop_fusion" } stats { metadata_id: 2 str_value: "jit_gone" }'
STREAM = """
planes {
  name: "/device:GPU:0"
  lines { name: "Stream #13"
    events { metadata_id: 1 offset_ps: 1000000 duration_ps: 4000000 STATS }
    events { metadata_id: 1 offset_ps: 3000000 duration_ps: 4000000 STATS }
    events { metadata_id: 2 offset_ps: 9000000 duration_ps: 1000000 }
  }
  event_metadata { key: 1 value { id: 1 name: "loop_fusion" } }
  event_metadata { key: 2 value { id: 2 name: "MemcpyH2D" } }
  stat_metadata { key: 1 value { id: 1 name: "hlo_op" } }
  stat_metadata { key: 2 value { id: 2 name: "hlo_module" } }
}
""".replace("STATS", STATS)


def test_a_program_that_is_gone() -> None:
    """A GPU's stream in the form of the profiler, written by hand."""
    data = profiler.ProfileData.from_text_proto(STREAM)
    found = [(run.device, run.kernel, run.end - run.start) for run in kernel_runs(data)]
    assert found == [("/device:GPU:0", "loop_fusion", 4000.0)] * 2
    table = TimeReport([Recording("", data)]).table()
    assert [(row.name, row.calls, row.detail) for row in table.rows] == [("no line known", 2, "jit_gone")]
    assert (table.seconds, table.covered) == (pytest.approx(8e-6), pytest.approx(6e-6))
    empty = TimeReport([Recording("", profiler.ProfileData.from_text_proto("planes {}"))])
    assert str(empty.table()) == "The trace has no run of a kernel."


def test_covered_time_counts_once() -> None:
    def run(start: float, end: float) -> KernelRun:
        return KernelRun("m", "", "k", "d", "", start, end)

    assert time_covered([run(0, 10), run(2, 4), run(8, 12), run(20, 21)]) == pytest.approx(13e-9)


SCRIPT = """
import xlamini, xlamini.numpy as jnp
xlamini.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
def NAME(x):
    return jnp.tanh(x @ x)
step, x = xlamini.jit(NAME), jnp.ones((64, 64))
step(x).block_until_ready()
with xlamini.profiler.trace() as session:
    step(x).block_until_ready()
print({row.name.rpartition(":")[2] for row in session.table().rows}, session.table(by="program").rows[0].name)
"""


@pytest.mark.full
def test_a_program_from_the_disk_has_the_lines_of_this_process(tmp_path: Path) -> None:
    """The code on disk has the name and lines of the process that compiled it."""
    file, found = tmp_path / "train.py", []
    for lines, name in ((0, "first"), (3, "second")):
        file.write_text("\n" * lines + SCRIPT.replace("NAME", name))
        environment = {**os.environ, "XLAMINI_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.strip())
    assert found == ["{'5'} jit_first", "{'8'} jit_second"]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[None]:
    """A cache of programs that is empty, and keeps all of them."""
    flags = {"compilation_cache_dir": str(tmp_path), "persistent_cache_min_compile_time_secs": 0.0}
    before = {name: xlamini.config.read(name) for name in flags}
    for name, value in flags.items():
        xlamini.config.update(name, value)
    yield
    for name, value in before.items():
        xlamini.config.update(name, value)


def functions() -> list[Any]:
    """Two of one name whose kernels have the same names too, and two that are equal."""
    first = xlamini.jit(lambda x: jnp.tanh(x @ x) * 0.625)
    second = xlamini.jit(lambda x: jnp.tanh(x @ x) * 0.375)
    third = xlamini.jit(lambda x: jnp.sin(x @ x))
    fourth = xlamini.jit(lambda x: jnp.sin(x @ x))
    return [first, second, third, fourth]


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("way", ["compiled", "loaded"])
def test_functions_of_one_name_have_lines_of_their_own(way: str) -> None:
    """Compiled in this process or loaded from the disk, where equal ones share their code."""
    x, made = jnp.ones((64, 64)), {"compiled": functions(), "loaded": functions()}
    for function in (*made["compiled"], *made["loaded"]):
        function(x).block_until_ready()
    _, second, _, fourth = made[way]
    with profiler.trace() as session:
        xlamini.block_until_ready((second(x), fourth(x)))
    details = sorted(row.detail for row in session.table().rows)
    assert details[1].startswith("second =")
    assert re.match(r"\(or test_table.py:\d+: the trace cannot tell\) third =", details[0])
