"""Jaxprs and StableHLO as text: beside JAX's own, and beside tests/snapshots."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini as jax
from tests.golden.jaxpr_programs import programs
from tests.inspection import shown_screens
from tests.support import snapshot_programs
from tests.support.paths import GOLDEN, SNAPSHOTS, TESTS
from xlamini import lax

RECORDED = json.loads((GOLDEN / "jaxprs.json").read_text())["texts"]
PROGRAMS = programs(jax)

Snapshot = Callable[[str, str], None]


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_as_jax_does(name: str) -> None:
    fun, args = PROGRAMS[name]
    assert str(jax.make_jaxpr(fun)(*args)).splitlines() == RECORDED[name]


@pytest.mark.parametrize("name", snapshot_programs.JAXPRS)
def test_jaxpr_snapshot(name: str, snapshot: Snapshot) -> None:
    fun, args = snapshot_programs.JAXPRS[name]
    snapshot(f"jaxpr_{name}", str(jax.make_jaxpr(fun)(*args)))


@pytest.mark.parametrize("name", snapshot_programs.MODULES)
def test_stablehlo_snapshot(name: str, snapshot: Snapshot) -> None:
    fun, args = snapshot_programs.MODULES[name]
    snapshot(f"stablehlo_{name}", jax.jit(fun).lower(*args).as_text())


def test_remarks_snapshot(snapshot: Snapshot) -> None:
    fun, args = snapshot_programs.JAXPRS["grad_of_shared"]
    text = jax.make_jaxpr(fun)(*args).pretty_print(ids=True, names=True, source=True, provenance=True)
    snapshot("jaxpr_remarks", re.sub(r" \S*/(\w+\.py):\d+", r" \1", text))


def test_no_snapshot_is_left_over() -> None:
    expected = {f"jaxpr_{name}.txt" for name in snapshot_programs.JAXPRS}
    expected |= {f"stablehlo_{name}.txt" for name in snapshot_programs.MODULES}
    expected |= {f"inspect_{name}.txt" for name in shown_screens.SHOWN}
    for file in TESTS.rglob("test_*.py"):
        expected |= {f"{name}.txt" for name in re.findall(r'\bsnapshot\("(\w+)"', file.read_text())}
    assert {path.name for path in SNAPSHOTS.iterdir()} == expected


# --- remarks


def two_lines(x: Any) -> Any:
    squared = x * x
    return lax.sin(squared)


def test_source_is_a_comment_in_one_column() -> None:
    lines = jax.make_jaxpr(two_lines)(np.ones(3, np.float32)).pretty_print(source=True, width=30).splitlines()
    first = two_lines.__code__.co_firstlineno
    assert lines == [
        "{ lambda ; a:f32[3]. let",
        f"    b:f32[3] = mul a a   # {__file__}:{first + 1} (two_lines)",
        f"    c:f32[3] = sin b     # {__file__}:{first + 2} (two_lines)",
        "  in (c,) }",
    ]


def test_remarks_of_equations_on_one_line_stand_below_each_other() -> None:
    text = jax.make_jaxpr(two_lines)(1.0).pretty_print(ids=True, names=True)
    assert text.splitlines() == [
        "{ lambda ; a:f32[]. let b:f32[] = mul a a; c:f32[] = sin b in (c,) } #e0 squared",
        "                                                                     #e1",
    ]


def test_ids_are_those_of_stablehlo() -> None:
    fun, args = snapshot_programs.JAXPRS["nested_jit"]
    traced = jax.jit(fun).trace(*args)
    in_jaxpr = set(re.findall(r"#(e[\d.]+)", traced.jaxpr.pretty_print(ids=True)))
    in_module = set(re.findall(r"#(e[\d.]+)", traced.lower().as_text(debug_info=True)))
    assert in_module == in_jaxpr


def test_provenance_names_the_rewrites() -> None:
    text = jax.make_jaxpr(jax.grad(lax.sin))(1.0).pretty_print(provenance=True)
    assert text.splitlines()[-2].endswith("# linearize of e0 sin, transpose of e0 mul")


# --- details


def test_width() -> None:
    text = str(jax.make_jaxpr(two_lines)(1.0))
    assert "\n" not in text
    narrow = jax.make_jaxpr(two_lines)(1.0).pretty_print(width=40)
    assert narrow.count("\n") == 3


def test_a_used_result_never_prints_as_unused() -> None:
    def pair(x: Any) -> Any:
        y = lax.sin(x)
        return y, lax.cos(y)

    text = str(jax.make_jaxpr(lambda x: jax.jit(pair)(x)[1])(1.0))
    assert "_:f32[] b:f32[] = jit[" in text
    assert "c:f32[] = sin a; b:f32[] = cos c in (c, b)" in text


def test_names_of_jaxprs_are_not_given_to_variables() -> None:
    def b(x: Any) -> Any:
        return lax.sin(x)

    called = jax.jit(b)
    text = str(jax.make_jaxpr(lambda x: called(called(x)))(1.0))
    assert text.startswith("let b = { lambda ; a:f32[]. let c:f32[] = sin a in (c,) } in\n")


def test_weakly_typed_numbers_print_as_they_are_written() -> None:
    """Texts of JAX 0.10.2."""
    lines = str(jax.make_jaxpr(lambda x: 1.67 * x + 0.1 - 1e22)(1.0)).split("\n")
    assert [line.split(" = ")[1] for line in lines[1:4]] == ["mul 1.67:f32[] a", "add b 0.1:f32[]", "sub c 1e+22:f32[]"]
    assert "mul 1.6699999570846558:f32[] a" in str(jax.make_jaxpr(lambda x: 1.67 * x)(jax.numpy.ones(3)))


def test_a_tracer_prints_its_type() -> None:
    seen = []
    jax.make_jaxpr(lambda x, y: seen.extend([repr(x), repr(y)]))(1, np.ones((2, 3), np.float16))
    assert seen == ["JitTracer(~int32[])", "JitTracer(float16[2,3])"]


def test_printing_is_linear_in_shared_calls() -> None:
    def doubled(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return jax.jit(lambda x: fun(x) + fun(x))

    fun: Callable[[Any], Any] = lax.sin
    for _ in range(30):
        fun = doubled(fun)
    assert len(jax.make_jaxpr(fun)(1.0).pretty_print(ids=True)) < 20_000
