"""The stages of an inspection that are jaxprs and StableHLO, and the table of their equations."""
from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from benchmarks import transformer
from tests.support.higher_order import SIZE, WRAPS, base
from tests.support.paths import ROOT
from xlamini import lax
from xlamini.core.program import jaxpr
from xlamini.core.program.jaxpr import jaxprs_in
from xlamini.inspection import equations as column
from xlamini.inspection.build import Inspection, ReportOptions
from xlamini.inspection.memory import memory_of
from xlamini.inspection.recording import Recorder, recording
from xlamini.inspection.stablehlo import text_of
from xlamini.inspection.stages import Stages


@xlamini.jit
def block(x: Any, w: Any) -> Any:
    with xlamini.named_scope("block"):
        return jnp.tanh(x @ w)


def loops(x: Any, ws: Any) -> Any:
    def body(x: Any, w: Any) -> tuple[Any, Any]:
        return block(x, w), x.sum()

    y, sums = lax.scan(body, x, ws)
    y = lax.cond(sums[0] > 0, lambda y: y * 2, lambda y: jnp.sin(y), y)
    return (block(y, ws[0]) ** 2).sum()


X, WS = np.ones((4, 8), np.float32), np.ones((3, 8, 8), np.float32)
MODEL = transformer.init_params(12), transformer.make_batch()


def names_and_program(lowered: Any) -> tuple[str, list[str]]:
    """The module, and the names of equations in it; the lines of an inner jit are those of its first call."""
    return lowered.as_text(), re.findall(r'loc\("([^"]*#e[^"]*)"', lowered.as_text(debug_info=True))


class Staged(NamedTuple):
    """A traced function, its stages, the number of the one that is lowered, and its module."""

    traced: Any
    stages: Stages
    final: int
    program: tuple[str, list[str]]

    @property
    def rows(self) -> list[Any]:
        return [row for row in self.stages.table.rows if row.stage == self.final]


def staged(fun: Callable[..., Any], *args: Any) -> Staged:
    recorder = Recorder()
    with recording(recorder):
        jitted = xlamini.jit(fun)
        traced = jitted.trace(*args)
        inspection = Inspection(traced, xlamini.debug.compilations(), ReportOptions())
        lowered = traced.lower()
        final = inspection._add_programs(recorder, lowered._program)
        inspection.stages.add_stablehlo(text_of(lowered), "cpu", final, target=0, seconds=0.0)
    return Staged(traced, inspection.stages, final, names_and_program(lowered))


def test_the_stages_of_a_gradient_are_its_rewrites() -> None:
    found = staged(xlamini.grad(loops), X, WS)
    assert [stage["title"] for stage in found.stages.found] == [
        "loops: traced",
        "loops: linearize, primal",
        "loops: linearize, tangent",
        "loops: transpose",
        "loops: traced, with what rewrites gave",
        "loops: unused equations dropped",
        "loops: in the forms of cpu",
        "StableHLO for cpu",
    ]


def _of_batch(x: Any, ws: Any) -> Any:
    return xlamini.vmap(xlamini.grad(loops), (None, 0))(x, ws)


def test_vmap_is_a_stage_and_its_program_the_one_that_nobody_records() -> None:
    found = staged(_of_batch, X, np.stack([WS, WS]))
    titles = [stage["title"] for stage in found.stages.found]
    taken = titles.index("loops: traced, with what rewrites gave")
    assert titles[taken + 1] == "loops: vmap"
    assert found.stages.found[taken + 1]["of"] == taken
    alone = names_and_program(xlamini.jit(_of_batch).lower(X, np.stack([WS, WS])))
    assert found.program == alone


@pytest.mark.parametrize("fun", [loops, xlamini.grad(loops), _of_batch], ids=["plain", "grad", "vmap of grad"])
def test_flops_and_bytes_are_those_of_the_cost_report(fun: Any) -> None:
    found = staged(fun, X, np.stack([WS, WS]) if fun is _of_batch else WS)
    cost = found.traced.cost()
    assert (sum(row.flops for row in found.rows), sum(row.bytes for row in found.rows)) == (cost.flops, cost.bytes)


def test_a_body_runs_as_often_as_its_loop() -> None:
    runs = {row.label: row.runs for row in staged(xlamini.grad(loops), X, WS).rows}
    assert runs["reduce_sum#e0.1"] == 3
    assert runs["tanh#e0.0.1"] == 4  # in the loop, and behind it
    assert runs["sin#e5.branch_0.0"] + runs["mul#e5.branch_1.0"] == 1  # the most expensive branch counts


def test_each_equation_leads_back_to_one_that_the_user_wrote() -> None:
    found = staged(xlamini.grad(loops), X, WS)
    table, made = found.stages.table, []
    for row in found.rows:
        while row.parent is not None:
            row = table.rows[row.parent]
        assert row.line is not None
        if row.stage not in (0, 4):
            made.append(row.primitive)
    assert made == ["broadcast_in_dim"]  # the zeros that a branch returns for a residual of the other


def test_the_rule_that_wrote_an_equation_is_named_with_its_place() -> None:
    rows = {row.label: row for row in staged(xlamini.grad(loops), X, WS).rows}
    rule = rows["sech_squared#e0.0.2"].rule
    assert rule.name == "tanh.jvp"
    assert "derivative" in linecache.getline(str(ROOT / rule.file), rule.line)
    assert rows["mul#e14.0"].rewrite == "transpose"
    assert rows["mul#e14.0"].direction == "backward"


def _of_functions_with_equations(stage: Any) -> list[Any]:
    """The lines that compute; but for functions of forms, which several equations share: their calls have those."""
    functions: list[list[Any]] = [[]]
    for line, rows in zip(stage["lines"], stage["rows"], strict=True):
        if "func.func" in line:
            functions.append([])
        if " = stablehlo." in line and "constant" not in line:
            functions[-1].append((line, rows))
    return [pair for lines in functions if any(rows for _, rows in lines) for pair in lines]


def test_every_line_of_stablehlo_that_computes_has_an_equation() -> None:
    found = staged(xlamini.grad(loops), X, WS)
    stage = found.stages.found[-1]
    computing = [
        (line, rows)
        for line, rows in zip(stage["lines"], stage["rows"], strict=True)
        if " = stablehlo." in line and "constant" not in line
    ]
    lacking = [line for line, rows in _of_functions_with_equations(stage) if not rows]
    assert len(lacking) < 0.05 * len(computing), lacking
    primitives = [found.stages.table.rows[rows[0]].primitive for line, rows in computing if "stablehlo.tanh" in line]
    assert primitives
    assert set(primitives) == {"tanh"}


@pytest.mark.parametrize("fun, args", [(xlamini.grad(loops), (X, WS)), (transformer.make_step(xlamini), MODEL)])
def test_ids_and_program_are_the_same_without_inspection(fun: Any, args: Any) -> None:
    found = staged(fun, *args)
    assert found.program == names_and_program(xlamini.jit(fun).lower(*args))


@pytest.mark.sample(4)
@pytest.mark.parametrize("outer", WRAPS)
@pytest.mark.parametrize("inner", WRAPS)
def test_nests_have_the_cost_and_the_program_that_they_have_elsewhere(outer: str, inner: str) -> None:
    fun = WRAPS[outer].traced(WRAPS[inner].traced(base))
    x = np.linspace(0.3, 0.7, SIZE, dtype=np.float32)
    found = staged(fun, x)
    assert sum(row.flops for row in found.rows) == found.traced.cost().flops
    assert found.program == names_and_program(xlamini.jit(fun).lower(x))


def test_what_is_inspected_is_no_compilation_and_leaves_no_trace() -> None:
    @xlamini.jit
    def inner(x: Any) -> Any:
        return x + 1

    def outer(x: Any) -> Any:
        return inner(x) * 2

    staged(outer, X)
    assert not inner.compilations()
    inner(X)
    assert [entry.cause.kind for entry in inner.compilations()] == ["first call"]


@pytest.mark.full
def test_each_jaxpr_of_nested_calls_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return xlamini.jit(lambda x: f(x) + f(x))

    fun: Callable[[Any], Any] = jnp.sin
    for _ in range(12):  # 2 ** 12 paths, 13 jaxprs
        fun = doubled(fun)
    recorder = Recorder()
    with recording(recorder):
        program = xlamini.jit(xlamini.grad(fun)).trace(0.5).jaxpr.jaxpr
    looked = Counter[int]()
    monkeypatch.setattr(jaxpr, "jaxprs_in", lambda params: [looked.update([id(params)]), jaxprs_in(params)][1])
    assert recorder.of_programs([program])
    assert max(looked.values()) < 100  # equations of one kind share their params


def _kept(x: Any, w: Any) -> Any:
    with xlamini.named_scope("kept"):
        y = jnp.tanh(x @ w)
    return (y @ w).sum()


def test_what_a_group_adds_depends_on_its_own_program_alone() -> None:
    found = staged(xlamini.grad(_kept), X, WS[0])
    stages = found.stages
    program = next(program for program, number in stages._numbers.items() if number == found.final)

    def groups() -> Any:
        return memory_of(found.traced.memory_plan(), program, stages.rows_of(program), stages.table)["groups"]

    before = groups()
    assert before[0]["scope"] == "kept"
    assert before[0]["adds"] > 2 * 4 * 8 * 8
    stages.add(xlamini.make_jaxpr(jnp.sin)(X).jaxpr, "another")
    assert groups() == before


def test_the_text_of_an_equation_is_all_of_it_on_one_line() -> None:
    rows = staged(loops, X, WS).rows
    text = {row.primitive: row.text for row in rows}
    assert text["scan"].startswith("g:f32[4,8] h:f32[3] = scan[jaxpr={…} length=3 num_carry=1")
    assert text["scan"].endswith("unroll=1] e f")
    assert "branches=({…} {…})" in text["cond"]
    assert text["mul"] == "u:f32[4,8] = mul t 2.0:f32[]"  # its line has the whole branch
    assert column.type_of(text["dot_general"]) == "f32[4,8]"


def test_long_params_of_an_equation_are_cut() -> None:
    texts = [row.text for row in staged(lambda x: x[jnp.array([0, 1])], X).rows]
    gather = next(text for text in texts if " = gather[" in text)
    assert "dimension_numbers=GatherDimensionNumbers(" in gather
    assert "…" in gather
    assert len(gather) < 300
