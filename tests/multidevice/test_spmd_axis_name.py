"""`vmap(spmd_axis_name=)` divides the mapped axis in the specs of a shard_map inside."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.multidevice.meshes import HALF
from xlamini import checkpoint, custom_jvp, grad, jit, lax, make_jaxpr, shard_map, vmap
from xlamini.core.program.jaxpr import jaxprs_in
from xlamini.sharding import PartitionSpec as P

X = jnp.arange(32.0).reshape(4, 8)
sines = shard_map(lambda x: jnp.sin(x) * 2, mesh=HALF, in_specs=P("x"), out_specs=P("x"))
total = shard_map(lambda x: lax.psum(x.sum(), "x"), mesh=HALF, in_specs=P("x"), out_specs=P())
BODIES: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: lax.scan(lambda c, a: (c + a, c * a), x[0] * 0, x)[1],
    "carry": lambda x: lax.fori_loop(0, 3, lambda i, c: c + x.sum(), lax.pcast(jnp.zeros(1), "x", to="varying")) + x,
    "cond": lambda x: lax.cond(x[0] > 3, jnp.sin, jnp.cos, x),
    "while": lambda x: lax.while_loop(lambda c: (c < 5).any(), lambda c: c + 1, x),
}


def specs(f: Callable[..., Any], *args: Any) -> list[tuple[Any, Any]]:
    """The specs of the shard_maps in a program, without those of values that are whole on each device."""
    return [
        tuple(tuple(s for s in params[name] if s != P()) for name in ("in_specs", "out_specs"))
        for params in _found(make_jaxpr(f)(*args).jaxpr)
    ]


def _found(jaxpr: Any) -> Iterator[dict[str, Any]]:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "shard_map":
            yield eqn.params
        for inner in jaxprs_in(eqn.params):
            yield from _found(inner)


def check(f: Callable[..., Any], wanted: list[tuple[Any, Any]], *, in_axes: Any = 0, x: Any = X) -> None:
    """The specs of `f`, mapped; its values are those without the name."""
    divided = vmap(f, in_axes, spmd_axis_name="y")
    assert specs(divided, x) == wanted
    np.testing.assert_allclose(jit(divided)(x), jit(vmap(f, in_axes))(x), rtol=1e-6)


def test_the_specs_get_the_name() -> None:
    check(sines, [((P("y", "x"),), (P("y", "x"),))])
    check(total, [((P("y", "x"),), (P("y"),))])
    check(sines, [((P("x", "y"),), (P("x", "y"),))], in_axes=1, x=X.T)


@pytest.mark.full
@pytest.mark.parametrize("name", BODIES)
def test_loops_and_branches_inside(name: str) -> None:
    f = shard_map(BODIES[name], mesh=HALF, in_specs=P("x"), out_specs=P("x"))
    ((ins, (out,)),) = specs(vmap(f, spmd_axis_name="y"), X)
    assert ins == (P("y", "x"),)
    assert set(out) == {"x", "y"}
    for g in (f, grad(lambda x: f(x).sum()))[: 1 if name in ("while", "carry") else 2]:
        np.testing.assert_allclose(jit(vmap(g, spmd_axis_name="y"))(X), jit(vmap(g))(X), rtol=1e-5)


@pytest.mark.full
def test_around_the_shard_map() -> None:
    divided = [((P("y", "x"),), (P("y", "x"),))]
    through = custom_jvp(sines)
    through.defjvp(lambda primals, tangents: (through(*primals), 3 * tangents[0]))
    for f in (jit(sines), checkpoint(sines), through, lambda x: lax.fori_loop(0, 2, lambda i, c: sines(c), x)):
        check(f, divided)


@pytest.mark.full
def test_gradients_in_both_orders() -> None:
    inside = vmap(grad(lambda x: sines(x).sum()), spmd_axis_name="y")
    outside = grad(lambda x: vmap(sines, spmd_axis_name="y")(x).sum())
    for f in (inside, outside):
        forward, backward = specs(f, X)
        assert forward[0] == (P("y", "x"),)
        assert backward[1] == (P("y", "x"),)
        np.testing.assert_allclose(jit(f)(X), 2 * np.cos(X), rtol=1e-5)


def test_each_vmap_has_its_name() -> None:
    whole = shard_map(jnp.sin, mesh=HALF, in_specs=P(), out_specs=P())
    both = vmap(vmap(whole, spmd_axis_name="y"), spmd_axis_name="x")
    assert specs(both, X.reshape(4, 2, 4)) == [((P("x", "y"),), (P("x", "y"),))]
    assert specs(vmap(whole, spmd_axis_name=("x", "y")), X) == [((P(("x", "y")),), (P(("x", "y")),))]


def test_an_axis_that_is_used_by_its_name_is_whole() -> None:
    centred = shard_map(lambda x: x - lax.psum(x, "b"), mesh=HALF, in_specs=P("x"), out_specs=P("x"))
    mapped = vmap(centred, axis_name="b", spmd_axis_name="y")
    assert specs(mapped, X) == [((P(None, "x"),), (P(None, "x"),))]
    np.testing.assert_allclose(jit(mapped)(X), X - np.sum(X, 0), rtol=1e-6)


def test_axes_that_are_not_manual_divide_constraints_inside() -> None:
    def constrained(x: Any) -> Any:
        return lax.with_sharding_constraint(x * 2, xlamini.NamedSharding(xlamini.sharding.get_abstract_mesh(), P()))

    f = shard_map(constrained, mesh=HALF, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    mapped = vmap(f, spmd_axis_name="y")
    assert specs(mapped, X) == [((P(None, "x"),), (P(None, "x"),))]
    assert "P('y'" in str(make_jaxpr(mapped)(X))


def test_errors() -> None:
    with pytest.raises(ValueError, match="vmap spmd_axis_name cannot appear in shard_map in_specs"):
        vmap(sines, spmd_axis_name="x")(X)
    with pytest.raises(ValueError, match=r"shards 3 examples along \('y',\), over 2 devices"):
        vmap(sines, spmd_axis_name="y")(X[:3])
