"""Explicit mode: types that say how values are split, through every transformation, and what does not fit refused."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import clipped, soft, table
from xlamini import NamedSharding, P, checkpoint, grad, jit, jvp, lax, make_jaxpr, numpy as jnp, shard_map, smap, vmap
from xlamini.core.flags.config import strict_sharding
from xlamini.errors import ShardingTypeError
from xlamini.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    set_mesh,
)


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with strict_sharding(True):
        yield


MESH = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=AxisType.Explicit)
MIXED = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
AUTO = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=AxisType.Auto)
X, W = table(8, 16) / 64 - 1, np.cos(table(16, 16))


def split(value: Any, *partitions: Any, mesh: Any = MESH) -> Any:
    return xlamini.device_put(value, NamedSharding(mesh, P(*partitions)))


def text_of(x: Any) -> str:
    return xlamini.typeof(x).str_short()


def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def scanned(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, i: (layer(c, w) + i, None), layer(x, w), jnp.arange(3.0))[0]


def looped(x: Any, w: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, s: s / 2 + i, layer(x, w))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "layer": layer,
    "sum": lambda x, w: x.sum(0) + w.sum(1),
    "softmax": lambda x, w: xlamini.nn.softmax(x @ w),
    "centred": lambda x, w: x - x.mean(1, keepdims=True),
    "joined": lambda x, w: x.reshape(2, 4, 16).transpose(2, 0, 1),
    "scan": scanned,
    "zeros carry": lambda x, w: lax.scan(lambda c, i: (c + x * i, None), jnp.zeros((8, 16)), jnp.arange(3.0))[0],
    "fori_loop": looped,
    "cond": lambda x, w: lax.cond(x.sum() > 0, lambda: layer(x, w), lambda: jnp.zeros((8, 16))),
    "jit in jit": lambda x, w: jit(layer)(x, w) * 2,
    "checkpoint": checkpoint(layer),
    "custom_vjp": lambda x, w: clipped(x) * 2,
    "custom_jvp": lambda x, w: soft(x),
    "vmap": lambda x, w: vmap(lambda r: jnp.sin(r) * r.sum())(x),
    "vmap of columns": lambda x, w: vmap(lambda c: c * c.sum(), in_axes=1, out_axes=1)(x),
    "vmap of a product": lambda x, w: vmap(lambda r: r @ w)(x),
    "einsum": lambda x, w: jnp.einsum("ij,kj->ik", x, w),
    "where": lambda x, w: jnp.where(x > 0, x, 0.0),
}
SPECS = [((), ()), (("x",), ()), (("x",), (None, "y")), ((), (None, ("x", "y"))), ((("x", "y"),), ())]


@pytest.mark.sample(4)
@pytest.mark.parametrize("specs", SPECS, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_those_of_one_device(name: str, specs: Any) -> None:
    x, w = split(X, *specs[0]), split(W, *specs[1])
    program = PROGRAMS[name]
    expected = program(X, W)
    for found in (jit(program)(x, w), *([program(x, w)] if specs is SPECS[2] else [])):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
        assert xlamini.typeof(found) == make_jaxpr(program)(x, w).out_avals[0]


@pytest.mark.sample(34)
@pytest.mark.parametrize("specs", SPECS[2:4], ids=str)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "cond"])
def test_derivatives_are_split_as_the_arguments(name: str, specs: Any) -> None:
    x, w = split(X, *specs[0]), split(W, *specs[1])

    def loss(x: Any, w: Any) -> Any:
        return (PROGRAMS[name](x, w) ** 2).sum()

    found, expected = jit(grad(loss, (0, 1)))(x, w), grad(loss, (0, 1))(X, W)
    for ours, theirs, primal in zip(found, expected, (x, w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
        assert xlamini.typeof(ours) == xlamini.typeof(primal)
    if name == "custom_vjp":  # which has no rule for forward mode
        return
    pushed = jit(lambda x, w: jvp(loss, (x, w), (x, w)))(x, w)
    np.testing.assert_allclose(pushed, jvp(loss, (X, W), (X, W)), rtol=1e-4)


@pytest.mark.parametrize(
    "transformed",
    [lambda f: vmap(grad(f)), lambda f: grad(lambda x: vmap(f)(x).sum()), lambda f: vmap(xlamini.hessian(f)),
     lambda f: checkpoint(vmap(grad(f))), lambda f: vmap(jit(grad(f)))],
    ids=["vmap of grad", "grad of vmap", "vmap of hessian", "checkpoint of vmap of grad", "vmap of jit of grad"],
)
def test_transformations_in_both_orders(transformed: Callable[..., Any]) -> None:
    program = transformed(lambda row: (jnp.sin(row) ** 2).sum() * row[0])
    for specs in ((), ("x",)):
        x = split(X, *specs)
        np.testing.assert_allclose(jit(program)(x), program(X), rtol=1e-4, atol=1e-5)


def halved(row: Any) -> Any:
    return lax.while_loop(lambda r: jnp.abs(r).sum() > 1, lambda r: r / 2, row)


def scanned_row(row: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(()), row)[1]


def mapped_row(row: Any) -> Any:
    columns = {"in_specs": P("y"), "out_specs": P("y"), "axis_names": {"y"}}
    return shard_map(lambda a: a * 2 + lax.psum(a.sum(), "y"), mesh=MESH, **columns)(row)


@pytest.mark.parametrize(
    ("of_row", "text"),
    [
        (halved, "f32[8@x,16]"),
        (scanned_row, "f32[8@x,16]"),
        (mapped_row, "f32[8@x,16@y]"),
        (lambda r: lax.cond(r.sum() > 0, jnp.sin, jnp.cos, r), "f32[8@x,16]"),
        (lambda r: checkpoint(jnp.sin)(r), "f32[8@x,16]"),
        (soft, "f32[8@x,16]"),
        (lambda r: jit(jnp.cumsum)(r), "f32[8@x,16]"),
        (grad(lambda r: jit(lambda r: (r**3).sum())(r)), "f32[8@x,16]"),
    ],
)
def test_vmap_keeps_the_mapped_dimension_split(of_row: Callable[..., Any], text: str) -> None:
    for program in (vmap(of_row), jit(vmap(of_row))):
        found = program(split(X, "x"))
        assert text_of(found) == text
        np.testing.assert_allclose(found, np.stack([of_row(r) for r in X]), rtol=2e-5, atol=1e-5)


def test_types_are_shown() -> None:
    x, w = split(X, "x"), split(W, None, "y")
    assert text_of(x) == "f32[8@x,16]"
    assert repr(xlamini.typeof(split(X, ("x", "y")))) == "ShapedArray(float32[8@(x,y),16])"
    assert str(make_jaxpr(layer)(x, w)).splitlines()[0] == "{ lambda ; a:f32[8@x,16] b:f32[16,16@y]. let"
    assert "f32[8@x,16@y] = tanh" in str(make_jaxpr(layer)(x, w))
    found = xlamini.typeof(x).sharding
    assert (found.spec, found.mesh) == (P("x", None), MESH.abstract_mesh)
    assert xlamini.typeof(jnp.ones(3)).sharding.mesh.empty


def test_types_alone_are_traced() -> None:
    struct = xlamini.ShapeDtypeStruct((8, 16), "float32", sharding=NamedSharding(MESH, P("x")))
    assert make_jaxpr(lambda x: x.sum(1))(struct).out_avals[0].str_short() == "f32[8@x]"
    lowered = jit(lambda x: x * 2).lower(struct)
    assert '[{"x"}, {}]' in lowered.as_text()
    assert lowered.compile().output_shardings.spec == P("x", None)


def test_results_lie_as_their_types_say() -> None:
    x = split(X, "x")
    assert jit(lambda x: x.T)(x).sharding.spec == P(None, "x")
    assert jit(lambda x: jnp.zeros(4))(x).sharding.spec == P(None)
    assert (x + 1).sharding.spec == P("x", None)
    assert jit(lambda x: x * 2, out_shardings=NamedSharding(MESH, P("y")))(x).aval.str_short() == "f32[8@y,16]"
    seen = jit(lambda x: x * 2, in_shardings=NamedSharding(MESH, P("y")))
    assert make_jaxpr(seen)(split(X)).out_avals[0].str_short() == "f32[8@y,16]"


def test_one_program_for_equal_shardings() -> None:
    traced = []

    @jit
    def doubled(x: Any) -> Any:
        traced.append(x.aval)
        return x * 2

    for x in (split(X, "x"), split(X, "x", None), doubled(split(X, "x"))):
        doubled(x)
    assert len(traced) == 1


def test_reshard() -> None:
    x = split(X, "x")
    moved = NamedSharding(MESH, P("y", "x"))
    for found in (xlamini.reshard(x, moved), jit(lambda x: xlamini.reshard(x, moved))(x)):
        assert text_of(found) == "f32[8@y,16@x]"
        np.testing.assert_array_equal(found, X)
    with set_mesh(MESH):
        program = jit(lambda x: (xlamini.reshard(x, P(None, "y")) ** 2).sum())
        assert "reshard" in str(make_jaxpr(program)(x))
        slope = grad(program)(x)
    assert text_of(slope) == "f32[8@x,16]"
    np.testing.assert_allclose(slope, 2 * X, rtol=1e-6)
    there = NamedSharding(MESH, P("y"))
    assert "b:f32[8@y,16] = reshard a" in str(make_jaxpr(lambda x: xlamini.device_put(x, there))(x))


def test_reshard_under_vmap_leaves_the_mapped_axis() -> None:
    x = split(np.stack([X, X]), "x")
    with set_mesh(MESH):
        found = jit(vmap(lambda r: xlamini.reshard(r, P("y"))))(x)
    assert text_of(found) == "f32[2@x,8@y,16]"


def test_a_constraint_only_states_what_is() -> None:
    x = split(X, "x")
    with set_mesh(MESH):
        np.testing.assert_array_equal(jit(lambda x: lax.with_sharding_constraint(x, P("x")))(x), X)
        message = "P('y',) is not how a value of type f32[8@x,16] is split"
        with pytest.raises(ShardingTypeError, match=re.escape(message)):
            jit(lambda x: lax.with_sharding_constraint(x, P("y")))(x)
        with pytest.raises(ShardingTypeError, match=re.escape(message)):
            lax.with_sharding_constraint(x, P("y"))
        with pytest.raises(ShardingTypeError, match=re.escape("of type f32[8,16] is split")):
            lax.with_sharding_constraint(split(X), P("y"))
        assert text_of(lax.with_sharding_constraint(x, P("x"))) == "f32[8@x,16]"
        assert text_of(lax.with_sharding_constraint(X, P("x"))) == "f32[8@x,16]"


@pytest.mark.parametrize("size", [8, 32])
def test_rows_of_an_array_that_is_split_along_them(size: int) -> None:
    values = table(size, 16)
    rows = list(split(values, "x", "y"))
    assert [text_of(row) for row in rows] == ["f32[16@y]"] * size
    np.testing.assert_array_equal(rows, values)


def test_types_without_data_say_how_they_are_split() -> None:
    with set_mesh(MESH):
        x = xlamini.ShapeDtypeStruct((8, 16), "float32", sharding=P("x"))
        assert x.sharding == NamedSharding(MESH, P("x"))
        found = xlamini.eval_shape(lambda x: (x.T, x.sum()), x)
        assert found[0].sharding == NamedSharding(MESH.abstract_mesh, P(None, "x"))
        assert found[1].sharding is None
        compiled = jit(lambda xt, total: xt + total).lower(*found).compile()
        np.testing.assert_array_equal(compiled(split(X.T, None, "x"), jnp.float32(1)), X.T + 1)


def test_types_without_data_refuse_what_is_no_sharding() -> None:
    with pytest.raises(TypeError, match=re.escape("ShapeDtypeStruct: sharding is P('x',), which names no mesh")):
        xlamini.ShapeDtypeStruct((8,), "float32", sharding=P("x"))
    with pytest.raises(TypeError, match=re.escape("sharding must be a sharding, got 'x' of type str")):
        xlamini.ShapeDtypeStruct((8,), "float32", sharding="x")


def test_random_numbers_and_keys() -> None:
    keys = xlamini.random.split(xlamini.random.key(0), 8)
    placed = split(keys, "x")
    assert text_of(placed) == "key<fry>[8@x]"
    drawn = jit(vmap(lambda k: xlamini.random.normal(k, (3,))))(placed)
    np.testing.assert_array_equal(drawn, vmap(lambda k: xlamini.random.normal(k, (3,)))(keys))


def test_donated() -> None:
    x = split(X, "x")
    found = jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(found, X + 1)


@pytest.mark.full
def test_auto_axes() -> None:
    x = split(X, "x", "y")
    seen = []

    def halves(x: Any) -> Any:
        seen.append((x.aval.str_short(), get_abstract_mesh().axis_types))
        return x[1:5] + x[3:7]

    with set_mesh(MESH):
        for run in (auto_axes(halves, out_sharding=P("x")), jit(auto_axes(halves, out_sharding=P("x")))):
            assert text_of(run(x)) == "f32[4@x,16]"
            np.testing.assert_array_equal(run(x), X[1:5] + X[3:7])
        assert text_of(auto_axes(halves)(x, out_sharding=P(None, "y"))) == "f32[4,16@y]"
        assert seen[0] == ("f32[8,16]", (AxisType.Auto,) * 2)
        partly = auto_axes(halves, axes="x", out_sharding=P(None, "y"))
        assert text_of(partly(x)) == "f32[4,16@y]"
        assert seen[-1] == ("f32[8,16@y]", (AxisType.Auto, AxisType.Explicit))
        slope = jit(grad(lambda x: (auto_axes(halves, out_sharding=P("x"))(x) ** 2).sum()))(x)
    np.testing.assert_allclose(slope, grad(lambda x: (halves(x) ** 2).sum())(X), rtol=1e-6)
    assert text_of(slope) == "f32[8@x,16@y]"
    assert text_of(auto_axes(halves)(x, out_sharding=NamedSharding(MESH, P("y")))) == "f32[4@y,16]"


def test_auto_axes_with_a_tree_of_shardings() -> None:
    both = auto_axes(lambda x: {"a": x, "b": [x.T, x]}, out_sharding={"a": P("x"), "b": [P(None, "y"), P()]})
    with set_mesh(MESH):
        for found in (both(split(X, "y")), jit(both)(split(X, "y"))):
            texts = [text_of(found["a"]), *map(text_of, found["b"])]
            assert texts == ["f32[8@x,16]", "f32[16,8@y]", "f32[8,16]"]


def test_explicit_axes() -> None:
    seen = []

    @explicit_axes(in_sharding=P("x", "y"))
    def doubled(x: Any) -> Any:
        seen.append((x.aval.str_short(), get_abstract_mesh().axis_types))
        return x.T * 2

    with set_mesh(AUTO):
        for run in (doubled, jit(doubled)):
            np.testing.assert_array_equal(run(split(X, "x", mesh=AUTO)), X.T * 2)
            assert text_of(run(split(X, "x", mesh=AUTO))) == "f32[16,8]"
    assert seen[0] == ("f32[8@x,16@y]", (AxisType.Explicit,) * 2)
    with set_mesh(MESH):
        around = auto_axes(doubled, out_sharding=P(None, "y"))
        assert text_of(jit(around)(split(X, "x"))) == "f32[16,8@y]"


@pytest.mark.full
def test_shard_map_takes_specs_from_types() -> None:
    x = split(X, "x", "y")
    with set_mesh(MESH):
        scaled = shard_map(lambda a: a * lax.psum(a.sum(), ("x", "y")), out_specs=P("x", "y"))
        assert "c:f32[4,4]{V:x,y}" in str(make_jaxpr(scaled)(x))
        np.testing.assert_allclose(scaled(x), X * X.sum(), rtol=1e-5)
        slope = jit(grad(lambda x: (scaled(x) ** 2).sum()))(x)
        np.testing.assert_allclose(slope, grad(lambda x: ((x * x.sum()) ** 2).sum())(X), rtol=1e-5)
        assert text_of(slope) == "f32[8@x,16@y]"


def test_shard_map_moves_arguments() -> None:
    x = split(X, "x")
    doubled = shard_map(lambda a: a * 2, mesh=MESH, in_specs=P(None, "y"), out_specs=P(None, "y"))
    for found in (doubled(x), jit(doubled)(x)):
        assert text_of(found) == "f32[8,16@y]"
        np.testing.assert_array_equal(found, X * 2)


def test_partly_manual() -> None:
    x = split(X, "x", "y")
    seen = []

    def of_rows(a: Any) -> Any:
        seen.append((a.aval.str_short(), get_abstract_mesh().axis_types))
        return jnp.sin(a) * lax.axis_index("x")

    with set_mesh(MESH):
        found = jit(smap(of_rows, out_axes=0, axis_name="x"))(x)
        named = jit(shard_map(of_rows, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)
    expected = np.sin(X) * np.repeat([0, 1], 4)[:, None]
    assert seen[0] == ("f32[4,16@y]{V:x}", (AxisType.Manual, AxisType.Explicit))
    for result in (found, named):
        assert text_of(result) == "f32[8@x,16@y]"
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_a_mesh_with_axes_of_both_types() -> None:
    x = split(X, "x", "y", mesh=MIXED)
    assert text_of(x) == "f32[8@x,16]"
    found = jit(lambda x: jnp.tanh(x).T)(x)
    assert text_of(found) == "f32[16,8@x]"
    np.testing.assert_allclose(found, np.tanh(X).T, rtol=1e-5)
    assert found.sharding.spec[1] == "x"


def test_abstract_meshes() -> None:
    mesh = AbstractMesh((2, 4), ("x", "y"), axis_types=AxisType.Explicit)
    assert NamedSharding(mesh, P("x")).shard_shape((8, 3)) == (4, 3)
    changed = mesh.update_axis_types({"x": AxisType.Auto})
    assert (changed.auto_axes, changed.explicit_axes) == (("x",), ("y",))
    assert MESH.update_axis_types(dict.fromkeys("xy", AxisType.Auto)) == AUTO


def test_meshes_with_something_changed() -> None:
    mesh = AbstractMesh((2, 4), ("x", "y"))
    assert mesh.update() == mesh
    assert mesh.update(axis_sizes=(4, 2)) == AbstractMesh((4, 2), ("x", "y"))
    assert mesh.update(axis_names=("a", "b"), axis_types=AxisType.Explicit) == AbstractMesh(
        (2, 4), ("a", "b"), AxisType.Explicit
    )
    assert MESH.update(axis_types=AxisType.Auto) == AUTO
    assert MESH.update(MESH.devices.T, ("y", "x")).shape == {"y": 4, "x": 2}
    with pytest.raises(ValueError, match=re.escape("Mesh: 2 axes have the names ('a',); give 2 names")):
        MESH.update(axis_names=("a",))
    kind = AbstractDevice("TPU v5 lite", 1, "tpu")
    of_kind = AbstractMesh((2,), ("x",), abstract_device=kind)
    assert of_kind.update_axis_types({"x": AxisType.Explicit}).abstract_device == kind


def at(*partitions: Any, shape: tuple[int, ...] = (8, 16)) -> Any:
    return split(table(*shape), *partitions)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "operands split differently": (
        lambda: at("x") + at("y"),
        "add: operands are split differently, f32[8@x,16] and f32[8@y,16]: dimension 0 of one is split along 'y', what "
        "belongs to it along 'x'; move one with xlamini.reshard(x, P(...))",
    ),
    "under jit": (lambda: jit(lambda a, b: a * b)(at("x"), at(("x", "y"))), "mul: operands are split differently"),
    "a product that leaves it open": (
        lambda: at(None, "x") @ at("x", shape=(16, 8)),
        "dot_general: the operands f32[8,16@x] and f32[16@x,8] are split along 'x' in the dimension that is",
    ),
    "a product with other splits": (
        lambda: at(None, "x") @ at("y", shape=(16, 8)),
        "dot_general: operands are split differently, f32[8,16@x] and f32[16@y,8]",
    ),
    "an axis twice": (
        lambda: at("x") @ at(None, "x", shape=(16, 8)),
        "dot_general of f32[8@x,16] and f32[16,8@x] would be split along 'x' twice, in two dimensions",
    ),
    "a reshape": (
        lambda: at("y", shape=(8, 3)).reshape(2, 12),
        "reshape of f32[8@y,3] to shape (2, 12): no dimension of the result can be split along 'y'",
    ),
    "scan over a split dimension": (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, at("x")),
        "scan: dimension 0 of xs, float32[8@x,16], is scanned over and must not be sharded",
    ),
    "a carry that comes back otherwise": (
        lambda: lax.fori_loop(0, 3, lambda i, c: xlamini.reshard(c, NamedSharding(MESH, P("y"))), at("x")),
        "given as float32[8@x,16], returned as float32[8@y,16]",
    ),
    "branches": (
        lambda: lax.cond(True, lambda: at("x"), lambda: at("y")),
        "float32[8@x,16] from true_fun, float32[8@y,16] from false_fun",
    ),
    "two meshes": (
        lambda: jit(lambda a, b: a + b)(at("x"), split(X, "x", mesh=MIXED)),
        "operands are split over different meshes",
    ),
    "uneven": (
        lambda: xlamini.reshard(jnp.ones(3), NamedSharding(MESH, P("x"))),
        "dimension 0 of an array of shape (3,)",
    ),
    "no mesh for auto_axes": (lambda: auto_axes(jnp.sin)(jnp.ones(3)), "auto_axes: there is no mesh; set one"),
    "an unknown axis": (lambda: auto_axes(jnp.sin, axes="z")(at("x")), "'z' is none of the axes 'x', 'y'"),
    "no in_sharding": (lambda: explicit_axes(jnp.sin)(at("x")), "explicit_axes: in_sharding is missing"),
    "types that say nothing": (
        lambda: shard_map(jnp.sin, mesh=AUTO, out_specs=P("x"))(X),
        "shard_map: in_specs is left out, but types do not say how arguments are split along 'x'",
    ),
    "a constraint along a manual axis": (
        lambda: shard_map(
            lambda a: lax.with_sharding_constraint(a, P("x")), mesh=MESH, in_specs=P("x"), out_specs=P("x")
        )(X),
        "with_sharding_constraint: P('x',) names the axis 'x', along which each device has its own part here",
    ),
    "no axis type": (
        lambda: xlamini.make_mesh((2,), ("x",), axis_types="Explicit"),
        "axis_types must be of AxisType",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    provoke, message = REFUSED[name]
    with pytest.raises((ValueError, TypeError, KeyError), match=re.escape(message)):
        provoke()


def test_the_error_shows_the_users_line() -> None:
    with pytest.raises(ShardingTypeError) as caught:
        jit(lambda a, b: a + b)(at("x"), at("y"))
    assert caught.traceback[-1].path.name == "test_explicit.py"
