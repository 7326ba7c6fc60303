"""jit over a mesh: where arguments and outputs lie, and every transformation with sharded arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import MESH, SPECS, clipped, over, soft, split, table
from xlamini import NamedSharding, P, checkpoint, grad, jit, jvp, lax, numpy as jnp, random, vmap
from xlamini.sharding import AxisType

X, W = table(4, 8) / 8 - 1, np.cos(table(8, 8))


@jit
def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def loss(x: Any, w: Any) -> Any:
    return (layer(x, w) ** 2).sum()


def scanned(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, i: (layer(c, w) + i, c.sum()), x, jnp.arange(3.0))


def chosen(x: Any, w: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda: layer(x, w), lambda: x - 1)


def looped(x: Any, w: Any) -> Any:
    return lax.while_loop(lambda s: jnp.abs(s).max() > 0.1, lambda s: s / 2, layer(x, w))


def test_arguments_that_lie_otherwise_are_resharded_in_each_call() -> None:
    whole, add = table(8, 8), jit(lambda x: x + 1, in_shardings=over("y", "x"))
    for spec in (P("x", "y"), P("y", "x"), P("x"), P()):
        x = xlamini.device_put(whole, NamedSharding(MESH, spec))
        for _ in range(3):  # from the second on by C++, which takes parts of the same size as they are
            np.testing.assert_array_equal(add(x), whole + 1)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "layer": layer,
    "sum": lambda x, w: x.sum(0),
    "sort": lambda x, w: jnp.sort(x @ w, axis=1),
    "gather": lambda x, w: x[jnp.array([3, 0]), ::2],
    "concatenate": lambda x, w: jnp.concatenate([x, w]),
    "reshape": lambda x, w: x.reshape(2, 16).T,
    "grad": grad(loss, argnums=(0, 1)),
    "grad of grad": grad(lambda x, w: (grad(loss)(x, w) ** 2).sum(), argnums=1),
    "jvp": lambda x, w: jvp(loss, (x, w), (w[:4], x[:1] + w)),
    "vmap": vmap(lambda row, w: jnp.sort(row @ w), in_axes=(0, None)),
    "grad of vmap": grad(lambda x, w: vmap(lambda row: jnp.sin(row @ w).sum())(x).sum()),
    "vmap of grad": vmap(grad(lambda row, w: jnp.sin(row @ w).sum()), in_axes=(0, None)),
    "scan": scanned,
    "grad of scan": grad(lambda x, w: scanned(x, w)[0].sum(), argnums=1),
    "vmap of scan": vmap(scanned, in_axes=(0, None)),
    "cond": chosen,
    "grad of cond": grad(lambda x, w: chosen(x, w).sum(), argnums=(0, 1)),
    "while_loop": looped,
    "custom_vjp": grad(lambda x, w: clipped(x @ w).sum()),
    "custom_jvp": grad(lambda x, w: soft(x @ w).sum(), argnums=(0, 1)),
    "checkpoint": grad(lambda x, w: checkpoint(layer)(checkpoint(layer)(x, w), w).sum(), argnums=1),
    "constraint": lambda x, w: lax.with_sharding_constraint(x @ w, over("y", "x")) + 1,
    "grad of constraint": grad(lambda x, w: (lax.with_sharding_constraint(x @ w, over("y")) ** 2).sum()),
    "vmap of constraint": vmap(lambda row: lax.with_sharding_constraint(row * 2, over("y")), in_axes=(0,)),
    "reshard": lambda x, w: xlamini.reshard((x, w), (over("y"), over())),
    "device_put": lambda x, w: xlamini.device_put(x * 2, over("y")),
    "keys": lambda x, w: random.normal(random.key(3), (8,)) + x,
}


def operands(name: str) -> list[np.ndarray]:
    return [X] if name == "vmap of constraint" else [X, W]


def equal(found: Any, expected: Any) -> None:
    xlamini.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), found, expected)


@pytest.mark.sample(27)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_one_device(name: str) -> None:
    program, whole = PROGRAMS[name], operands(name)
    placed = "constraint" in name or name in ("reshard", "device_put")
    expected = program(*whole) if not placed else jit(program)(*map(split, whole))
    jitted = jit(program)
    for specs in ((P("x", "y"), P("y")), (P("x"), P()), (P(None, "y"), P("x", "y"))):
        there = [xlamini.device_put(a, NamedSharding(MESH, spec)) for a, spec in zip(whole, specs, strict=False)]
        equal(jitted(*there), expected)
    equal(program(*there), expected)


def test_constraints_do_not_change_values() -> None:
    equal(PROGRAMS["constraint"](*map(split, (X, W))), X @ W + 1)
    equal(jit(PROGRAMS["grad of constraint"])(*map(split, (X, W))), 2 * X @ W @ W.T)
    found = jit(PROGRAMS["vmap of constraint"])(split(X, "x"))
    assert found.sharding == over("x", "y")
    equal(found, X * 2)
    assert jit(PROGRAMS["device_put"])(split(X), split(W)).sharding == over("y")


@pytest.mark.full
def test_where_outputs_lie_as_recorded_from_jax_0_10() -> None:
    product, total, flat = jit(lambda x: x @ x.T), jit(lambda x: x.sum(0)), jit(lambda x: x.reshape(32))
    found = {
        spec: [f(split(X, *spec)).sharding.spec for f in (product, total, flat)]
        for spec in (P("x"), P(None, "y"), P("x", "y"), P("y", "x"))
    }
    assert found == {
        P("x"): [P("x"), P(), P("x")],
        P(None, "y"): [P(), P("y"), P()],
        P("x", "y"): [P("x"), P("y"), P("x")],
        P("y", "x"): [P("y"), P("x"), P(("y", "x"))],
    }


def test_in_and_out_shardings() -> None:
    places = {"in_shardings": (over("x"), over(None, "y")), "out_shardings": over()}
    moved = jit(lambda x, w: {"p": x @ w, "s": x.sum()}, **places)
    found = moved(X, W)
    assert (found["p"].sharding, found["s"].sharding) == (over(), over())
    equal(found["p"], X @ W)
    tree = jit(lambda t: t, in_shardings=({"a": over("x"), "b": None},), out_shardings={"a": over("y"), "b": over()})
    out = tree({"a": X, "b": 1.0})
    assert out["a"].sharding == over("y")
    compiled = jit(lambda x: x + 1, in_shardings=over("y")).lower(X).compile()
    assert compiled.input_shardings == ((over("y"),), {})
    assert compiled.output_shardings == over("y")
    equal(compiled(xlamini.device_put(X, over("y"))), X + 1)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_each_out_sharding(spec: P) -> None:
    found = jit(lambda x: x * 2, out_shardings=NamedSharding(MESH, spec))(split(X, "x", "y"))
    assert found.sharding == NamedSharding(MESH, spec)
    equal(found, X * 2)


def test_static_arguments_have_no_sharding() -> None:
    scaled = jit(lambda n, x: x * n, in_shardings=over("y"), static_argnums=0)
    assert scaled(3, X).sharding == over("y")
    equal(scaled(4, X), X * 4)
    named = jit(lambda x, mode: x if mode == "a" else -x, in_shardings=(over("y"),), static_argnames="mode")
    equal(named(X, mode="b"), -X)


def test_donation() -> None:
    x = split(X, "x", "y")
    y = jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted()
    equal(y, X * 2)
    state = {"w": split(W, "x", "y"), "n": split(0.0)}
    step = jit(lambda s, g: {"w": s["w"] - g, "n": s["n"] + 1}, donate_argnums=0)
    for _ in range(3):
        before, state = state, step(state, split(W, "x", "y"))
        assert before["w"].is_deleted()
    equal(state, {"w": -2 * W, "n": 3.0})
    assert state["w"].sharding == over("x", "y")


@pytest.mark.full
def test_shardings_under_a_set_mesh() -> None:
    with xlamini.set_mesh(MESH):
        found = jit(lambda x, w: x @ w, in_shardings=(P("x"), P()), out_shardings=P("x", "y"))(X, W)
        assert found.sharding == over("x", "y")
        assert jit(lambda x: x + 1)(X).sharding == over()
        assert grad(lambda x: jnp.sin(x).sum())(X).sharding == over()
        constrained = jit(lambda x: lax.with_sharding_constraint(x, P("y")) * 2)
        assert constrained(X).sharding == over("y")
        assert jit(lambda x: xlamini.reshard(x, P("y")))(X).sharding == over("y")


@pytest.mark.sample(18)
@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("draw", [random.normal, random.uniform, random.bits], ids=lambda f: f.__name__)
def test_random_numbers_do_not_depend_on_the_sharding(spec: P, draw: Callable[..., Any]) -> None:
    where = NamedSharding(MESH, spec)
    drawn = jit(lambda key: draw(key, (8, 16)), out_shardings=where)(random.key(1))
    assert drawn.sharding == where
    np.testing.assert_array_equal(drawn, draw(random.key(1), (8, 16)))
    shuffled = jit(lambda key, x: random.permutation(key, x))(random.key(2), xlamini.device_put(table(8, 8), where))
    np.testing.assert_array_equal(shuffled, random.permutation(random.key(2), table(8, 8)))


def test_programs_without_outputs() -> None:
    assert jit(lambda x: None)(split(X, "x")) is None
    assert jit(lambda x: ())(split(X, "x")) == ()


def test_a_second_call_is_not_traced() -> None:
    traced = []
    f = jit(lambda x: (traced.append(1), x + 1)[1])
    for _ in range(3):
        f(split(X, "x", "y"))
    assert len(traced) == 1
    f(split(X, "y"))
    assert len(traced) == 1  # another program of the same trace
    equal(f(split(X, "y")), X + 1)


@pytest.mark.full
def test_many_programs_may_be_under_way() -> None:
    there, back = jit(lambda x: x, out_shardings=over("y", "x")), jit(lambda x: x, out_shardings=over("x", "y"))
    x = split(np.ones((256, 256), np.float32), "x", "y")
    for _ in range(60):
        x = back(there(x))
    assert float(x.sum()) == 256**2


@pytest.mark.parametrize(("along", "rows"), [("x", "x"), (("x",), "x"), (None, None)])
def test_where_vmap_puts_the_mapped_axis(along: Any, rows: Any) -> None:
    doubled = vmap(lambda a: lax.with_sharding_constraint(a * 2, over("y")), spmd_axis_name=along)
    found = jit(doubled)(xlamini.device_put(table(4, 8), over()))
    np.testing.assert_array_equal(found, table(4, 8) * 2)
    assert found.sharding.spec == P(rows, "y")


def test_vmap_along_an_axis_that_the_mesh_does_not_have() -> None:
    doubled = vmap(lambda a: lax.with_sharding_constraint(a * 2, over("y")), spmd_axis_name="z")
    with pytest.raises(ValueError, match=r"names the axis 'z', which the mesh does not have"):
        jit(doubled)(table(4, 8))


def test_a_mesh_as_a_context_manager() -> None:
    held = jit(lambda a: lax.with_sharding_constraint(a * 2, P("x", "y")))
    with pytest.warns(DeprecationWarning, match="set_mesh"), MESH:
        found = held(table(4, 8))
        assert xlamini.sharding.get_mesh() is MESH
    assert found.sharding.spec == P("x", "y")
    assert xlamini.sharding.get_mesh().empty
    with pytest.raises(RuntimeError, match="names no mesh"):
        held(table(4, 8))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_shardings_over_the_axes_of_the_current_mesh_get_its_devices(kind: AxisType) -> None:
    mesh = xlamini.make_mesh((4,), ("s",), axis_types=(kind,))
    x, split = np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("s"))
    with xlamini.set_mesh(mesh):
        asked = NamedSharding(xlamini.sharding.get_abstract_mesh(), P("s"))
        whole = NamedSharding(xlamini.sharding.get_abstract_mesh(), P())
        y = xlamini.jit(lambda x: x * 2, out_shardings=asked)(x)
        tree = xlamini.jit(lambda x: {"a": x * 2, "b": x}, out_shardings={"a": asked, "b": whole})(x)
        moved = xlamini.jit(lambda x: x + 1, in_shardings=asked, out_shardings=asked)(x)
    assert y.sharding == tree["a"].sharding == moved.sharding == split and y.tolist() == (x * 2).tolist()
    assert tree["b"].sharding == NamedSharding(mesh, P())
    argument = xlamini.device_put(x, split)
    assert xlamini.jit(lambda x: x * 2, out_shardings=asked)(argument).sharding == split
    with pytest.raises(ValueError, match=r"over an AbstractMesh, and nothing says on which devices; set a mesh"):
        xlamini.jit(lambda x: x * 2, out_shardings=asked)(x)
