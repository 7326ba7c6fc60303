"""Calls of deep programs run in segments: how programs are cut, that the numbers stay, donation, callbacks, caches."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.interpreters.test_outlining import WIDTH, X, assert_close, layer, model, params
from xlamini.core import Equation, Jaxpr
from xlamini.core.errors import DeletedArrayError
from xlamini.interpreters.outline.segments import chunk
from xlamini.runtime.execution.segmented_program import SegmentedExecutable
from xlamini.staging.call.call import jit_p
from xlamini.staging.compile.segments import calls

DEPTH = 12


@pytest.fixture(autouse=True)
def short_programs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlamini.staging.compile.outlining.MIN_EQUATIONS", 100)
    monkeypatch.setattr("xlamini.staging.compile.outlining.MIN_SAVED", 6)
    monkeypatch.setattr("xlamini.staging.compile.outlining.SEGMENT_FLOPS", 1)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[SegmentedExecutable]:
    """The programs that run in segments, once for each call."""
    called: list[Any] = []
    call = SegmentedExecutable.call

    def noted(self: Any, *args: Any) -> Any:
        called.append(self)
        return call(self, *args)

    monkeypatch.setattr(SegmentedExecutable, "call", noted)
    return called


def update(ws: Any, x: Any) -> Any:
    value, grads = xlamini.value_and_grad(model)(ws, x)
    return xlamini.tree.map(lambda w, g: w - 0.01 * g, ws, grads), value


@xlamini.jit
def _doubled(x: Any) -> Any:
    return x * 2


class Segment(NamedTuple):
    """A segment, with the numbers of its operands, and of the values that are dead after it."""

    jaxpr: Jaxpr
    operands: list[int]
    dead: list[int]


class Cut(NamedTuple):
    in_order: list[Segment]
    outputs: list[int]


def call(jaxpr: Jaxpr, operands: Any, results: Any, first: Equation) -> Equation:
    return Equation(jit_p, operands, results, {"jaxpr": jaxpr}, jaxpr.effects, first.provenance, first.id)


def cut(program: Any, *args: Any) -> Cut:
    """The segments of a program in which two calls of `_doubled` are one."""
    jaxpr = xlamini.make_jaxpr(program)(*args).jaxpr
    bodies = {eqn.params["jaxpr"]: 2 for eqn in jaxpr.eqns if eqn.primitive is jit_p}
    found = chunk(jaxpr, bodies, call)
    values = [*found.invars, *(v for eqn in found.eqns for v in eqn.outvars)]
    segments = [
        Segment(eqn.params["jaxpr"], list(map(values.index, eqn.invars)), list(map(values.index, dead)))
        for eqn, dead in calls(found)
    ]
    return Cut(segments, list(map(values.index, found.outvars)))


def test_a_program_is_cut_between_rows_of_calls() -> None:
    def program(x: Any, y: Any) -> Any:
        z = jnp.sin(x) + y
        a = _doubled(_doubled(z))
        b = _doubled(_doubled(a))
        return b + z, a

    found = cut(program, 1.0, 2.0)
    assert [(s.operands, s.dead) for s in found.in_order] == [([0, 1], [0, 1]), ([2], []), ([3], []), ([4, 2], [4, 2])]
    assert found.outputs == [5, 3]
    assert found.in_order[1].jaxpr is found.in_order[2].jaxpr


def test_short_rows_are_between_segments() -> None:
    """Of five calls two and two are segments; the last, and one by itself, are compiled with what is around them."""
    def program(x: Any) -> Any:
        for _ in range(5):
            x = _doubled(x)
        return jnp.sin(_doubled(jnp.cos(x)))

    found = cut(program, 1.0)
    assert [len(s.jaxpr.eqns) for s in found.in_order] == [2, 2, 4]


def test_rows_are_cut_into_equal_segments() -> None:
    def program(x: Any) -> Any:
        for _ in range(9):
            x = _doubled(x)
        return x

    assert [len(s.jaxpr.eqns) for s in cut(program, 1.0).in_order] == [3, 3, 3]


def test_equal_segments_have_the_results_that_any_of_them_needs() -> None:
    def program(x: Any) -> Any:
        a = _doubled(x)
        b = _doubled(a)
        c = _doubled(b)
        return a, _doubled(c)

    first, second = cut(program, 1.0).in_order
    assert first.jaxpr is second.jaxpr and len(first.jaxpr.outvars) == 2
    assert (first.dead, second.operands, second.dead) == ([0], [2], [2, 3]), "c is dropped at once"


def test_calls_with_other_operands_are_other_functions() -> None:
    def program(x: Any, y: Any) -> Any:
        a, b = _doubled(_doubled(x)), _doubled(x)
        return a, b, _doubled(y)

    first, second = cut(program, 1.0, 2.0).in_order
    assert first.jaxpr is not second.jaxpr


@pytest.mark.full
def test_segments_compute_what_the_whole_program_computes(runs: list[Any]) -> None:
    args = params(DEPTH), X
    step = xlamini.jit(update)
    found = step(*args)
    assert_close(step.lower(*args).compile()(*args), found)
    (program,) = runs
    different = {id(s.executable) for s in program.steps}
    assert (len(program.steps), len(different)) == (7, 5), "eight blocks forward and eight backward are two of them"
    assert_close(found, step(*args))
    assert len(runs) == 2


@pytest.mark.full
def test_the_memory_that_segments_need_is_about_that_of_the_whole_program(runs: list[Any]) -> None:
    args = params(DEPTH), np.ones((500, WIDTH), np.float32)
    xlamini.jit(xlamini.grad(model))(*args)
    whole = xlamini.jit(xlamini.grad(model)).lower(*args).compile().memory_analysis()
    assert runs[0].memory_needed == pytest.approx(whole.output_size_in_bytes + whole.temp_size_in_bytes, rel=0.3)


@pytest.mark.parametrize(
    "options", [{"MIN_SAVED": 100}, {"SEGMENT_FLOPS": 1e9}, {"SEGMENT_BLOCKS": DEPTH}],
    ids=["few blocks", "little work", "no row is as long"],
)
def test_what_gains_nothing_stays_one_program(
    options: dict[str, float], runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in options.items():
        monkeypatch.setattr(f"xlamini.staging.compile.outlining.{name}", value)
    xlamini.jit(model)(params(DEPTH), X)
    assert not runs


def test_a_program_that_is_not_outlined_runs_as_one(runs: list[Any]) -> None:
    xlamini.jit(update, outline=False)(params(DEPTH), X)
    assert not runs


def test_an_array_that_is_donated_and_another_argument_too_is_an_error(runs: list[Any]) -> None:
    """The check comes before the first step, so that no array is lost."""
    def both(ws: Any, again: Any) -> Any:
        return update(ws, X), model(again, X)

    ws = xlamini.tree.map(jnp.asarray, params(DEPTH))
    with pytest.raises(DeletedArrayError, match=r"ws.* of both and .*again.* of both are the same array"):
        xlamini.jit(both, donate_argnums=0)(ws, ws)
    assert len(runs) == 1 and not any(x.is_deleted() for x in xlamini.tree.leaves(ws))


def test_a_deleted_argument_is_found_before_others_are_donated(runs: list[Any]) -> None:
    step = xlamini.jit(update, donate_argnums=0)
    ws, _ = step(xlamini.tree.map(jnp.asarray, params(DEPTH)), jnp.asarray(X))
    ws[7]["up"].delete()
    with pytest.raises(DeletedArrayError, match=r"ws\[7\]\['up'\].*was deleted or donated"):
        step(ws, jnp.asarray(X))
    assert sum(x.is_deleted() for x in xlamini.tree.leaves(ws)) == 1


def test_donated_arguments_are_deleted_and_others_are_not(runs: list[Any]) -> None:
    ws, x = xlamini.tree.map(jnp.asarray, (params(DEPTH), X))
    wanted = xlamini.jit(update, outline=False)(ws, x)
    found = xlamini.jit(update, donate_argnums=0)(ws, x)
    assert len(runs) == 1
    assert_close(wanted, found)
    assert all(leaf.is_deleted() for leaf in xlamini.tree.leaves(ws))
    assert not x.is_deleted()


def test_outputs_that_are_no_results_of_their_own(runs: list[Any]) -> None:
    """The argument, a number, and one value twice: each output is an array of its own."""
    def program(ws: Any, x: Any) -> Any:
        value = model(ws, x)
        return x, 1.0, value, value, ws[0]

    x = jnp.asarray(X)
    same, one, first, second, w = xlamini.jit(program)(params(DEPTH), x)
    assert len(runs) == 1 and one == 1 and first == second
    assert first.unsafe_buffer_pointer() != second.unsafe_buffer_pointer()
    assert same.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert_close((X, params(DEPTH)[0]), (same, w))


def test_python_functions_in_layers(runs: list[Any]) -> None:
    def half(y: Any) -> Any:
        return np.asarray(y) * np.float32(0.5)

    def program(ws: Any, x: Any) -> Any:
        for w in ws:
            x = xlamini.pure_callback(half, x, layer(x, w))
        return x

    args = params(DEPTH), X
    found = xlamini.jit(program)(*args)
    assert len(runs) == 1
    assert_close(xlamini.jit(program).lower(*args).compile()(*args), found)


def fails(y: Any) -> Any:
    raise ValueError("the layer's own")


def test_an_error_in_a_layer_is_raised() -> None:
    def program(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(x, w)
        return xlamini.pure_callback(fails, x, x)

    with pytest.raises(Exception, match="the layer's own"):
        xlamini.block_until_ready(xlamini.jit(program)(params(DEPTH), X))


@pytest.mark.parametrize("outline", [False, True])
def test_an_error_in_a_layer_is_raised_also_where_arguments_are_donated(outline: bool) -> None:
    def program(ws: Any, x: Any) -> Any:
        x = xlamini.pure_callback(fails, x, x)
        return update(ws, x)

    ws = xlamini.tree.map(jnp.asarray, params(DEPTH))
    step = xlamini.jit(program, donate_argnums=0, outline=outline)
    with pytest.raises(Exception, match="the layer's own"):
        xlamini.block_until_ready(step(ws, X))


def test_captured_arrays_keys_and_unused_arguments(runs: list[Any]) -> None:
    scale = jnp.linspace(0.5, 1, WIDTH)

    def program(ws: Any, unused: Any, key: Any, x: Any) -> Any:
        kept, used = xlamini.random.split(key)
        x = x + xlamini.random.normal(used, x.shape)
        for w in ws:
            x = layer(x, w) * scale
        return x, kept

    args = params(DEPTH), jnp.ones(3), xlamini.random.key(3), X
    out, key = xlamini.jit(program)(*args)
    assert len(runs) == 1
    wanted, wanted_key = xlamini.jit(program).lower(*args).compile()(*args)
    assert_close(wanted, out)
    np.testing.assert_array_equal(xlamini.random.key_data(key), xlamini.random.key_data(wanted_key))


def test_weights_in_the_hosts_memory(runs: list[Any]) -> None:
    def program(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(x, xlamini.device_put(w, xlamini.memory.Space.Device))
        return x

    ws = xlamini.tree.map(jnp.asarray, params(DEPTH))
    host = xlamini.device_put(ws, xlamini.memory.Space.Host)
    found = xlamini.jit(program)(host, X)
    assert len(runs) == 1 and found.sharding.memory_kind == "device"
    assert_close(xlamini.jit(program, outline=False)(host, X), found)


def test_arguments_on_another_device(runs: list[Any]) -> None:
    device = xlamini.devices()[1]
    found = xlamini.jit(model)(*xlamini.device_put((params(DEPTH), X), device))
    assert len(runs) == 1 and found.devices() == {device} and found.committed
    assert_close(xlamini.jit(model)(params(DEPTH), X), found)


def test_debug_nans_finds_the_layer() -> None:
    ws = params(DEPTH)
    ws[3]["up"][0, 0] = np.nan
    with xlamini.debug_nans(True), pytest.raises(FloatingPointError, match="encountered in dot_general"):
        xlamini.jit(model)(ws, X)


@pytest.mark.full
@pytest.mark.usefixtures("no_cache")  # programs from a cache are known by their kernels alone
def test_a_profile_counts_calls_and_not_segments(runs: list[Any], tmp_path: Path) -> None:
    def step(*args: Any) -> Any:
        return update(*args)

    jitted, args = xlamini.jit(step), (params(DEPTH), X)
    xlamini.block_until_ready(jitted(*args))
    with xlamini.profiler.trace() as session:
        for _ in range(3):
            xlamini.block_until_ready(jitted(*args))
    (row,) = (row for row in session.table(by="program").rows if row.name == "jit_step")
    session.save(tmp_path / "page.json")
    programs = json.loads((tmp_path / "page.json").read_text("utf-8"))["programs"]
    assert row.calls == 3 and [it["calls"] for it in programs if it["name"] == row.name] == [3]
    assert session.table(by="line").rows[0].calls == 3 and len(runs[0].steps) > 3
