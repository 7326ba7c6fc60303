"""`xlamini.inspect`: its options, what it refuses, and the parts of a report that no screen's test looks at."""
from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.inspection.schema import problems
from xlamini.sharding import NamedSharding, PartitionSpec as P


def loss(w: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ w)
    return (hidden @ w).sum()


W, X = np.ones((8, 8), np.float32), np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


@functools.cache
def report() -> Any:
    return xlamini.inspect(xlamini.grad(loss))(W, X)


def test_arguments_may_be_types() -> None:
    types = [xlamini.ShapeDtypeStruct(a.shape, a.dtype) for a in (W, X)]
    assert xlamini.inspect(xlamini.grad(loss))(*types).json()["totals"] == report().json()["totals"]


def test_a_jitted_function_keeps_its_options() -> None:
    @functools.partial(xlamini.jit, static_argnames="power", donate_argnums=0)
    def f(x: Any, power: int) -> Any:
        return x**power

    found = xlamini.inspect(f)(jnp.ones(3), power=3).json()
    assert [(a["name"], a["donated"]) for a in found["arguments"]] == [("x", True)]
    assert "integer_pow" in found["equations"]["primitive"]
    assert not f.compilations()


def test_the_compilations_are_those_before() -> None:
    f = xlamini.jit(lambda x: x + 1)
    f(jnp.ones(2)), f(jnp.ones(3))
    found = xlamini.inspect(f)(jnp.ones(4)).json()["compilations"]
    assert [entry["cause"]["kind"] for entry in found] == ["first call", "shape"]


def test_source_is_left_out_on_demand() -> None:
    found = xlamini.inspect(loss, source=False)(W, X).json()
    assert all(source["lines"] is None for source in found["sources"])
    assert "hidden = jnp.tanh" not in json.dumps(found["sources"])


def test_captured_values_are_no_part_of_it() -> None:
    secret = np.full(300, 1234.5678, np.float32)
    found = xlamini.inspect(lambda x: x + secret)(np.ones(300, np.float32)).json()
    assert "1234.56" not in json.dumps({k: v for k, v in found.items() if k != "sources"})


def test_values_say_where_a_number_is_bad() -> None:
    def f(x: Any) -> Any:
        y = jnp.log(x)
        return y * 2

    found = xlamini.inspect(f, values=True)(np.array([1.0, -1.0, 0.0], np.float32)).json()
    names = [found["equations"]["primitive"][value["row"]] for value in found["values"]]
    facts = dict(zip(names, found["values"], strict=True))
    assert (facts["log"]["nan"], facts["log"]["inf"], facts["log"]["max"]) == (1, 1, 0.0)
    assert facts["mul"]["zeros"] == pytest.approx(1 / 3)


def test_values_know_the_distance_to_float64() -> None:
    def variance(x: Any) -> Any:
        return (x * x).mean() - x.mean() ** 2

    found = xlamini.inspect(variance, values=True)(np.linspace(100, 101, 8, dtype=np.float32)).json()
    distances = {found["equations"]["primitive"][v["row"]]: v["ulps"] for v in found["values"]}
    assert distances["sub"] > 1000 > distances["mul"]


@pytest.mark.full
def test_a_mesh_is_drawn_with_its_shards() -> None:
    mesh = xlamini.make_mesh((4, 2), ("x", "y"))
    a = xlamini.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("x", "y")))
    found = xlamini.inspect(lambda a: (a @ a).sum())(a).json()
    assert not problems(found)
    assert [(axis["name"], axis["size"]) for axis in found["mesh"]["axes"]] == [("x", 4), ("y", 2)]
    value = found["mesh"]["values"][0]
    assert value["spec"] == ["x", "y"]
    assert sorted(shard["device"] for shard in value["shards"]) == list(range(8))
    assert value["shards"][0]["index"] == [[0, 2], [0, 4]]
    assert found["targets"][0]["collectives"]


@pytest.mark.full
def test_a_program_on_a_mesh_that_is_here_has_a_column_for_a_target_elsewhere() -> None:
    pytest.importorskip("libtpu")
    mesh = xlamini.make_mesh((8,), ("x",))
    a = xlamini.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("x")))
    here, there = xlamini.inspect(lambda a: a * 2, targets=["here", "tpu:v5e:2x2"])(a).json()["targets"]
    assert here["error"] is None
    assert "make the mesh of target.devices" in there["error"]


def test_a_target_without_compiler_is_a_column_of_its_own() -> None:
    found = xlamini.inspect(loss, targets=["gpu:nothing", "here"])(W, X).json()
    assert not problems(found)
    first, here = found["targets"]
    assert "gpu:nothing" in first["error"]
    assert here["error"] is None
    assert here["kernels"]


def test_a_program_that_does_not_compile_has_the_stages_before() -> None:
    def f(x: Any) -> Any:
        return xlamini.ffi.ffi_call("there_is_none", xlamini.ShapeDtypeStruct((), "float32"))(x)

    found = xlamini.inspect(f)(1.0).json()
    assert not problems(found)
    assert "there_is_none" in found["targets"][0]["error"]
    assert [stage["kind"] for stage in found["stages"]] == ["jaxpr", "stablehlo"]


def test_what_cannot_be_traced_raises_what_jit_raises() -> None:
    def f(x: Any) -> Any:
        return 1 if x > 0 else 0

    with pytest.raises(xlamini.errors.TracerBoolConversionError) as of_jit:
        xlamini.jit(f)(1.0)
    with pytest.raises(xlamini.errors.TracerBoolConversionError) as of_inspect:
        xlamini.inspect(f)(1.0)
    assert str(of_inspect.value) == str(of_jit.value)


@pytest.mark.parametrize("targets", ["here", [], ()])
def test_targets_are_a_list(targets: Any) -> None:
    with pytest.raises(TypeError, match="targets must be a list of names"):
        xlamini.inspect(loss, targets=targets)


def test_a_report_is_saved_as_a_page_or_as_json(tmp_path: Path) -> None:
    report().save(tmp_path / "step.json")
    assert json.loads((tmp_path / "step.json").read_text()) == report().json()
    report().save(tmp_path / "step.html")
    page = (tmp_path / "step.html").read_text()
    assert page.startswith("<!doctype html>")
    with pytest.raises(ValueError, match=r"must end in \.html or \.json, got 'step\.txt'"):
        report().save("step.txt")


def test_check_and_diff_take_a_report_its_json_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    report().save(path)
    for before in (report(), report().json(), path):
        assert report().check(flops="+0%", against=before)
        assert not report().check(flops="-1%", against=before)
        assert not report().diff(before)["lines"]


def test_a_notebook_shows_it_in_a_frame() -> None:
    html = report()._repr_html_()
    assert html.startswith("<iframe")
    assert "<script" not in html  # it is inside of an attribute


def test_without_any_target_there_is_the_traced_program() -> None:
    found = xlamini.inspect(loss, targets=["gpu:nothing"])(W, X).json()
    assert not problems(found)
    assert found["stages"][found["final"]]["title"] == "loss: traced"


def test_values_of_equations_of_one_origin_are_those_of_their_own_rows() -> None:
    layer = xlamini.checkpoint(lambda x: jnp.sin(x))

    def f(x: Any) -> Any:
        return layer(layer(x)) + jnp.eye(3)

    found = xlamini.inspect(f, values=True)(np.ones((3, 3), np.float32)).json()
    labels = [found["equations"]["label"][value["row"]] for value in found["values"]]
    iotas = [label for label in labels if label.startswith("iota")]
    assert len(iotas) == 2
    assert len(set(iotas)) == 2


def test_a_call_that_nobody_counts_has_no_time() -> None:
    found = xlamini.inspect(jnp.linalg.cholesky)(np.eye(4, dtype=np.float32)).json()["targets"][0]
    calls = [kernel for kernel in found["kernels"] if kernel["opcode"] == "custom-call"]
    assert calls
    assert all((kernel["seconds"], kernel["time"]) == (None, None) for kernel in calls)
    assert "count no operations" in found["unavailable"]["costs"]


def test_a_program_that_no_rewrite_gave_is_called_traced() -> None:
    found = xlamini.inspect(jnp.sin)(np.float32(1)).json()
    assert [stage["title"] for stage in found["stages"] if stage["kind"] == "jaxpr"] == ["sin: traced"]
