"""Programs compiled for this CPU and examined: coverage, costs, hostile names, and parts that fail by themselves."""
from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.inspection.xla.bars import check, check_entry
from tests.support import inspected_programs as programs
from xlamini import lax
from xlamini.errors import JaxRuntimeError
from xlamini.inspection.xla import dump
from xlamini.inspection.xla.entry import entry_of
from xlamini.inspection.xla.examine import examine, unexamined
from xlamini.inspection.xla.roofs import roof_of_this_cpu
from xlamini.staging.compile.program import compile_uncached, with_flags

pytestmark = pytest.mark.usefixtures("optimized")

X = np.ones((64, 64), np.float32)


def layer(x: Any) -> Any:
    return jnp.tanh(x @ x) + 1


def lowered() -> Any:
    return xlamini.jit(layer).lower(X)


@pytest.mark.full
@pytest.mark.parametrize("name", ["mlp", "conv", "rnn"])
def test_programs(name: str) -> None:
    found = examine(getattr(programs, name)(), "here")
    entry = check(found)
    assert set(found.unavailable) == {"reasons"}
    assert entry["platform"] == "cpu" and entry["assembly"] is not None and entry["roof"]["flops"] > 1e8
    assert any(stage.changed for stage in found.passes[1:])


@pytest.mark.slow
def test_a_transformer() -> None:
    found = examine(programs.transformer(), "here")
    assert check(found)["memory"]["peak"] > 10**7 and len(found.kernels) > 500


@pytest.mark.full
def test_a_sharded_step() -> None:
    found = examine(programs.sharded(xlamini.devices()), "here")
    entry = check(found)
    assert entry["devices"] == 8 and {each["kind"] for each in entry["collectives"]} == {"all-reduce"}
    assert not any(each["asked"] for each in entry["collectives"])
    assert all(each["row"] is not None and each["group"] in (2, 4) for each in entry["collectives"])


@pytest.mark.full
def test_costs_are_those_of_the_compiled_program() -> None:
    program = programs.mlp()
    cost = examine(program, "here").cost
    expected = program.compile().cost_analysis("xla")
    assert cost is not None
    assert cost.flops == expected["flops"]
    assert cost.bytes == pytest.approx(expected["bytes accessed"], rel=0.01)


def test_dumps_change_nothing() -> None:
    program = lowered()._program
    text = compile_uncached(program, with_flags(program, None)).as_text()
    with dump.compilation_with_dump(program, None) as compilation:
        compiled = compilation()
        assert compiled.executable.as_text() == text
        assert compiled.dump is not None and len(list(compiled.dump.passes())) > 10


def test_flags_of_this_thread_hold_in_the_thread_that_compiles(caplog: pytest.LogCaptureFixture) -> None:
    with xlamini.log_compiles():
        examine(lowered(), "here")
    assert "Finished XLA compilation of jit(" in caplog.text


def test_the_disk_cache_is_neither_read_nor_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cached(*_: Any) -> None:
        raise AssertionError("the disk cache was asked")

    monkeypatch.setattr("xlamini.staging.compile.compile_cache.cached_executable", cached)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert examine(lowered(), "here").kernels
    assert list(tmp_path.iterdir()) == []  # and the dumps are removed


def test_no_dumps(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    found = examine(lowered(), "here")
    assert found.unavailable["passes"] == "No temporary folder can be made for XLA's dumps."
    assert set(found.unavailable) == {"passes", "reasons", "live ranges", "assembly"}
    assert found.kernels and found.moments and found.coverage and found.boundaries  # memory is by the schedule


def test_a_compiler_that_does_not_know_the_options_of_dumps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump, "_WHAT", {"xla_dump_in_another_way": ".*"})
    found = examine(lowered(), "here")
    assert found.unavailable["passes"] == "XLA's compiler for this device does not take the options of dumps."
    assert found.kernels and found.moments


@pytest.mark.full
@pytest.mark.parametrize(
    ("broken", "missing"),
    [
        ("examine.passes_of", "passes"),
        ("examine.program_text", "hlo"),
        ("examine.exchanges_of", "collectives"),
        ("examine.boundaries_of", "boundaries"),
        ("examine.memory_of", "live ranges"),
        ("examine.assembly_of", "assembly"),
        ("examine.predicted", "prediction"),
    ],
)
def test_a_format_that_changes_spoils_one_part(broken: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("a new format")

    monkeypatch.setattr(f"xlamini.inspection.xla.{broken}", fail)
    found = examine(lowered(), "here")
    assert set(found.unavailable) == {"reasons", missing}
    assert "KeyError" in found.unavailable[missing] and "a new format" in found.unavailable[missing]
    json.dumps(entry_of(found, lambda _: None, lambda _: 0, [], 0, None), allow_nan=False)


@pytest.mark.full
def test_kernels_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlamini.inspection.xla.examine.ModuleKernels.read", lambda _: {}["a new format"])
    found = examine(lowered(), "here")
    assert found.unavailable["boundaries"] == "The kernels could not be read."
    assert set(found.unavailable) == {"reasons", "kernels", "boundaries"} and found.passes and found.moments


@pytest.mark.full
def test_a_text_that_is_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "xlamini.runtime.execution.executable.CompiledModule.as_text", lambda _: "module @another_format {}"
    )
    found = examine(lowered(), "here")
    assert not found.kernels and found.hlo is None and found.memory and found.passes
    assert "no computations" in found.unavailable["hlo"]
    assert {"kernels", "boundaries", "coverage", "buffers"} <= found.unavailable.keys()
    json.dumps(entry_of(found, lambda _: None, lambda _: 0, [], 0, None), allow_nan=False)


HOSTILE = (
    'a"b',
    "</script><b onload=x>",
    "new\nline",
    "semi;colon#e9/x",
    "back\\slash",
    "\u2028separator",
    "ENTRY %main () -> f32[] {",
    'x", metadata={op_name="jit(f)/evil#e7"',
    "(a:b)",
    "control\x01\x0b",
    "naïve",
)


@pytest.mark.full
@pytest.mark.parametrize("scope", HOSTILE)
def test_hostile_names(scope: str) -> None:
    source = "def f(x):\n    with xlamini.named_scope(SCOPE):\n        y = jnp.tanh(x) @ x\n    return y + 1\n"
    names = {"xlamini": xlamini, "jnp": jnp, "SCOPE": scope}
    exec(compile(source, f"/users/{scope}.py", "exec"), names)
    found = examine(xlamini.jit(names["f"]).lower(X), "here")
    assert {label for kernel in found.kernels for label in kernel.labels} == {"tanh#e0", "dot_general#e1", "add#e2"}
    assert set(found.unavailable) == {"reasons"}
    check(found)


@pytest.mark.full
def test_branches_and_calls() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x[0] > 0, lambda x: jnp.sin(x) * 2, lambda x: jnp.cos(jnp.exp(x)), xlamini.jit(jnp.tanh)(x))

    found = examine(xlamini.jit(f).lower(np.ones(1000, np.float32)), "here")
    labels = {label for kernel in found.kernels for label in kernel.labels}
    assert {"cos#e5.branch_0.1", "sin#e5.branch_1.0"} <= labels
    check_entry(found)  # XLA counts the most expensive branch alone


@pytest.mark.full
def test_programs_without_kernels() -> None:
    found = examine(xlamini.jit(lambda x: x).lower(X), "here")
    entry = entry_of(found, lambda _: None, lambda _: 0, [], 0, None)
    assert entry["coverage"] is not None and set(found.unavailable) <= {"reasons", "assembly"}


def test_the_compilers_error_is_raised() -> None:
    program = xlamini.jit(layer, compiler_options={"xla_no_such_option": True}).lower(X)
    with pytest.raises(JaxRuntimeError, match="xla_no_such_option"):
        examine(program, "here")


def test_a_target_that_cannot_be_compiled_for() -> None:
    entry = entry_of(unexamined("tpu:v5e:2x2", "pip install libtpu"), lambda _: None, lambda _: 0, [], 0, None)
    assert (entry["error"], entry["kernels"], entry["hlo"], entry["cost"]) == ("pip install libtpu", [], None, None)


def test_the_roof_is_measured_once() -> None:
    roof = roof_of_this_cpu()
    assert roof is roof_of_this_cpu() and "measured on this CPU" in roof.source
    assert roof.flops > 1e8 and roof.bandwidth > 1e7
