"""Meshes of `make_mesh` have Explicit axes; programs for Auto axes run on them, with a warning for each line."""
from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import table
from xlamini import NamedSharding, P, grad, jit, lax, numpy as jnp, shard_map
from xlamini.core.flags.config import strict_sharding
from xlamini.errors import ShardingError, ShardingTypeError
from xlamini.sharding import AbstractDevice, AbstractMesh, AxisType, Mesh, get_abstract_mesh, use_abstract_mesh

MESH = xlamini.make_mesh((2, 4), ("x", "y"))
X, W = table(8, 16) / 64 - 1, np.cos(table(16, 16))


def split(value: Any, *partitions: Any) -> Any:
    return xlamini.device_put(value, NamedSharding(MESH, P(*partitions)))


def test_make_mesh_has_explicit_axes() -> None:
    assert MESH.axis_types == (AxisType.Explicit,) * 2
    assert xlamini.make_mesh((8,), "batch").axis_names == ("batch",)
    assert Mesh(MESH.devices, ("x", "y")).axis_types == (AxisType.Auto,) * 2  # as in JAX
    assert AbstractMesh((2, 4), ("x", "y")).axis_types == (AxisType.Explicit,) * 2
    with xlamini.set_mesh(MESH):
        assert str(xlamini.typeof(xlamini.device_put(jnp.arange(8.0), P("y")))) == "float32[8@y]"


PROGRAMS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "product": (lambda x, w: x.T @ x, "in the dimension that is summed over", "out_sharding=P(None, None)"),
    "part of the product is known": (
        lambda x, w: jnp.einsum("ij,kj->ik", split(X, "x", "y"), w), "split along 'y' in the dimension",
        "out_sharding=P('x', None)",
    ),
    "sorted": (lambda x, w: jnp.sort(x, 0), "dimension 0 of f32[8@x,16] must be whole here", "reshard the operand"),
    "cumulative sum": (lambda x, w: jnp.cumsum(x, 0), "must be whole here", "The compiler decides"),
    "rows by number": (lambda x, w: x[jnp.array([5, 1])], "x,16]", "strict_sharding"),
    "operands split differently": (lambda x, w: x + split(X, "y"), "operands are split differently", "xlamini.reshard"),
    "scan over what is split": (
        lambda x, w: lax.scan(lambda c, row: (c + row, row.sum()), jnp.zeros(16), x), "is scanned over",
        "begins with None",
    ),
    "constraint": (
        lambda x, w: lax.with_sharding_constraint(x * 2, NamedSharding(MESH, P("y"))), "is not how a value", "reshard"
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("around", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_leave_a_split_open_run_with_a_warning(name: str, around: Callable[..., Any]) -> None:
    program, problem, fix = PROGRAMS[name]
    x, w = split(X, "x"), split(W, None, "y")
    xlamini.clear_caches()
    with pytest.warns(UserWarning, match=re.escape(problem)) as given:
        found = around(program)(x, w)
    assert len(given) == 1 and fix in str(given[0].message) and given[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = around(program)(x, w)  # one warning for a line
    with strict_sharding(True), pytest.raises(ShardingTypeError, match=re.escape(problem)):
        around(program)(x, w)
    expected = [np.asarray(leaf) for leaf in xlamini.tree.leaves(_on_one_device(program))]
    for out in (found, again):
        for ours, theirs in zip(xlamini.tree.leaves(out), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def _on_one_device(program: Callable[..., Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program(split(X), split(W))


@pytest.mark.full
def test_a_training_step_written_for_auto_axes() -> None:
    """Data are split along x, weights along y; the loss of the whole batch, its gradient, and a constraint inside."""

    def loss(params: Any, x: Any) -> Any:
        hidden = jnp.tanh(x @ params["in"])
        hidden = lax.with_sharding_constraint(hidden, NamedSharding(MESH, P("x", "y")))
        return ((hidden @ params["out"]) ** 2).mean()

    def step(params: Any, x: Any) -> Any:
        return xlamini.tree.map(lambda p, g: p - 0.1 * g, params, grad(loss)(params, x))

    params = {"in": W / 4, "out": W[:, :4]}
    placed = {"in": split(W / 4, None, "y"), "out": split(W[:, :4], "y")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = jit(step)(jit(step)(placed, split(X, "x")), split(X, "x"))
    expected = jit(_plain_step)(_plain_step(params, X), X)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
        assert found[name].sharding.is_equivalent_to(placed[name].sharding, 2)


def _plain_step(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        return ((jnp.tanh(x @ params["in"]) @ params["out"]) ** 2).mean()

    return xlamini.tree.map(lambda p, g: p - 0.1 * g, params, grad(loss)(params))


def test_another_abstract_mesh_regroups_the_devices() -> None:
    lines = AbstractMesh((8,), ("a",), AxisType.Explicit)

    @jit
    def doubled(x: Any) -> Any:
        with use_abstract_mesh(lines):
            return xlamini.reshard(x, P("a")) * 2

    with xlamini.set_mesh(MESH):
        found = doubled(split(X, "y", "x"))
        slope = jit(grad(lambda x: (doubled(x) ** 2).sum()))(split(X, "y", "x"))
    assert str(xlamini.typeof(found)) == "float32[8@a,16]" and found.sharding.mesh.shape == {"a": 8}
    np.testing.assert_array_equal(found, 2 * X)
    np.testing.assert_allclose(slope, 8 * X, rtol=1e-6)
    assert str(xlamini.typeof(slope)) == "float32[8@y,16@x]"
    fewer = AbstractMesh((4,), ("a",))
    with xlamini.set_mesh(MESH), use_abstract_mesh(fewer), pytest.raises(ValueError, match="the sizes must be equal"):
        xlamini.reshard(jnp.ones(8), P("a"))


def test_local_data_of_a_bare_spec() -> None:
    with xlamini.set_mesh(MESH):
        for made in (
            xlamini.make_array_from_process_local_data(P("x"), X),
            xlamini.make_array_from_callback((8, 16), P("x"), lambda index: X[index]),
        ):
            assert made.sharding == NamedSharding(MESH, P("x"))
            np.testing.assert_array_equal(made, X)
    with pytest.raises(ValueError, match=r"local_data: sharding is P\('x',\), which names no mesh"):
        xlamini.make_array_from_process_local_data(P("x"), X)


def test_a_traced_value_says_where_its_sharding_is() -> None:
    with pytest.raises(AttributeError, match=r"float32\[8@x,16\]: the compiler chooses it later; .*typeof"):
        jit(lambda x: x.sharding)(split(X, "x"))


def test_shard_map_needs_no_in_specs() -> None:
    found = shard_map(lambda part: part * 2, mesh=MESH, out_specs=P("x", "y"))(split(X, "x", "y"))
    np.testing.assert_array_equal(found, 2 * X)
    assert str(xlamini.typeof(found)) == "float32[8@x,16@y]"


def test_specs_of_partial_sums() -> None:
    spec = P("x", None, unreduced={"y"})
    assert repr(spec) == "P('x', None, unreduced={'y'})" and repr(P("x")) == "P('x',)" and repr(P()) == "P()"
    assert (spec.unreduced, spec.reduced, P(reduced={"x"}).reduced) == ({"y"}, frozenset(), {"x"})
    assert spec != P("x", None) and spec == pickle.loads(pickle.dumps(spec)) and hash(spec) == hash(P("x", None))
    assert spec + ("z",) == P("x", None, "z", unreduced={"y"}) and ("z",) + P(reduced={"x"}) == P("z", reduced={"x"})
    for wrong, error, text in (
        (lambda: P("x", unreduced="y"), TypeError, "unreduced must be a set of axis names, got 'y'"),
        (lambda: P(unreduced={None}), ValueError, "cannot contain None"),
        (lambda: P("x", unreduced={"x"}), ValueError, "overlap with unreduced axes: both have 'x'"),
        (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "`unreduced` and `reduced` of a PartitionSpec overlap"),
        (lambda: NamedSharding(MESH, P(unreduced={"z"})), ShardingError, "names the axis 'z', which the mesh does not"),
    ):
        with pytest.raises(error, match=text):
            wrong()


def test_the_former_name_of_the_sizes_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="axis_shapes is now named axis_sizes"):
        assert xlamini.make_mesh(axis_shapes=(2,), axis_names=("x",)).axis_sizes == (2,)


def test_shard_map_over_an_abstract_mesh_in_context() -> None:
    """A program for devices that are not here is traced and exported over the mesh that says what they are."""
    mesh = AbstractMesh((16,), ("x",), abstract_device=AbstractDevice("gpu", 1, "cuda"))
    with use_abstract_mesh(mesh):
        assert get_abstract_mesh().abstract_device.platform == "cuda"
        x = xlamini.ShapeDtypeStruct((32,), "float32", sharding=NamedSharding(mesh, P("x")))
        f = xlamini.jit(xlamini.shard_map(lambda x: lax.psum(x, "x"), in_specs=P("x"), out_specs=P()))
        assert f.trace(x).jaxpr.out_avals[0].shape == (2,)
        exported = xlamini.export.export(f, platforms=("cuda",))(x)
    assert exported.nr_devices == 16 and exported.out_avals[0].shape == (2,)
