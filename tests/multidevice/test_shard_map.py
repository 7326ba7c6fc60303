"""shard_map over 4 by 2 devices, beside NumPy and the same computation on one device."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES
from xlamini import (
    P,
    checkpoint,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jit,
    jvp,
    lax,
    numpy as jnp,
    random,
    shard_map,
    vmap,
)
from xlamini.experimental.shard_map import shard_map as older_shard_map
from xlamini.sharding import Mesh, NamedSharding

MESH = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
ROWS = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
W = np.linspace(-1, 1, 8).astype(np.float32)
PARTS = ROWS.reshape(4, 2, 8)
RING = [(i, (i + 1) % 4) for i in range(4)]


def test_results_have_the_spec_that_is_written() -> None:
    a = jnp.ones((8, 8, 4))
    for entries in ((), (None,), (None, None), ("x",), ("x", None), ("x", None, None), (None, "x"), (("x", "y"), None)):
        spec = P(*entries)
        assert mapped(lambda a: a, spec, spec)(a).sharding.spec == spec
    assert mapped(random.clone, P("x", None), P("x", None))(random.split(random.key(0), (4, 2))).shape == (4, 2)


def mapped(f: Callable[..., Any], ins: Any, outs: Any, **options: Any) -> Any:
    return shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, **options)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected), rtol=2e-5, atol=1e-5)


COLLECTIVES = {
    "psum": (lambda a: lax.psum(a, "x"), P("x"), P(), PARTS.sum(0)),
    "psum of all": (lambda a: lax.psum(a.sum(), ("x", "y")), P("x", "y"), P(), ROWS.sum()),
    "pmean": (lambda a: lax.pmean(a, "x"), P("x"), P(), PARTS.mean(0)),
    "pmax": (lambda a: lax.pmax(a, "x"), P("x"), P(), PARTS.max(0)),
    "pmin": (lambda a: lax.pmin(a, "x"), P("x"), P(), PARTS.min(0)),
    "gather": (lambda a: lax.all_gather(a, "x"), P("x"), P("x"), np.tile(PARTS, (4, 1, 1))),
    "gather tiled": (lambda a: lax.all_gather(a, "x", tiled=True), P("x"), P("x"), np.tile(ROWS, (4, 1))),
    "gather of both": (lambda a: lax.all_gather(a, ("x", "y"), tiled=True), P(("x", "y")), P("x"), None),
    "psum_scatter": (lambda a: lax.psum_scatter(a, "x", tiled=True), P(), P("x"), 4 * ROWS),
    "all_to_all": (lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True), P("x"), P(None, "x"), ROWS),
    "ppermute": (lambda a: lax.ppermute(a, "x", RING), P("x"), P("x"), np.roll(ROWS, 2, 0)),
    "ppermute, some": (
        lambda a: lax.ppermute(a, "x", [(0, 1)]), P("x"), P("x"), np.concatenate([0 * ROWS[:2], ROWS[:2], 0 * ROWS[:4]])
    ),
    "pshuffle": (lambda a: lax.pshuffle(a, "x", [2, 0, 3, 1]), P("x"), P("x"), PARTS[[2, 0, 3, 1]].reshape(8, 8)),
    "pbroadcast": (lambda a: lax.pbroadcast(a, "x", 2), P("x"), P("x"), np.tile(PARTS[2], (4, 1))),
    "index": (
        lambda a: a * 0 + 10 * lax.axis_index("x") + lax.axis_index("y"), P("x", "y"), P("x", "y"),
        np.kron(10 * np.arange(4)[:, None] + np.arange(2), np.ones((2, 4))),
    ),
    "index of both": (
        lambda a: a * 0 + lax.axis_index(("y", "x")), P("x", "y"), P("x", "y"),
        np.kron(np.arange(4)[:, None] + 4 * np.arange(2), np.ones((2, 4))),
    ),
    "size": (lambda a: a * lax.axis_size(("x", "y")), P("x"), P("x"), 8 * ROWS),
    "number": (lambda a: a * lax.psum(1, "x"), P("x"), P("x"), 4 * ROWS),
}


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if name != "gather of both"])
@pytest.mark.parametrize("transform", [lambda f: f, jit], ids=["eager", "jit"])
def test_collectives(name: str, transform: Any) -> None:
    f, ins, outs, expected = COLLECTIVES[name]
    near(transform(mapped(f, ins, outs))(ROWS), expected)
    near(mapped(transform(f), ins, outs)(ROWS), expected)


def test_gather_of_both_axes() -> None:
    found = mapped(lambda a: lax.all_gather(a, ("x", "y"), tiled=True), P(("x", "y")), P(("x", "y")))(ROWS)
    near(found, np.tile(ROWS, (8, 1)))


def test_groups() -> None:
    found = mapped(
        lambda a: lax.psum(a, "x", axis_index_groups=[[0, 1], [2, 3]]), P("x"), P("x"), check_vma=False
    )(ROWS)
    near(found, np.concatenate([PARTS[:2].sum(0)] * 2 + [PARTS[2:].sum(0)] * 2))


def total(w: Any, check_vma: bool = True) -> Any:
    f = mapped(lambda a, w: lax.psum(jnp.sum(jnp.tanh(a @ w) ** 2), "x"), (P("x"), P()), P(), check_vma=check_vma)
    return f(ROWS, w)


def alone(w: Any) -> Any:
    return jnp.sum(jnp.tanh(ROWS @ w) ** 2)


@pytest.mark.full
@pytest.mark.parametrize("checked", [True, False])
def test_derivatives_outside(checked: bool) -> None:
    def f(w: Any) -> Any:
        return total(w, checked)

    near(grad(f)(W), grad(alone)(W))
    near(jit(grad(f))(W), grad(alone)(W))
    near(hessian(f)(W), hessian(alone)(W))
    near(jvp(f, (W,), (W,))[1], jvp(alone, (W,), (W,))[1])
    near(vmap(grad(f))(ROWS), vmap(grad(alone))(ROWS))
    near(grad(lambda ws: vmap(f)(ws).sum())(ROWS), grad(lambda ws: vmap(alone)(ws).sum())(ROWS))


def test_third_derivative() -> None:
    f = mapped(lambda a, s: lax.psum(jnp.sum(jnp.tanh(a * s)), "x"), (P("x"), P()), P())
    near(grad(grad(grad(lambda s: f(ROWS, s))))(0.3), grad(grad(grad(lambda s: jnp.sum(jnp.tanh(ROWS * s)))))(0.3))


@pytest.mark.full
def test_derivatives_inside_sum_over_what_devices_share() -> None:
    def local(a: Any, w: Any) -> Any:
        return jnp.sum(jnp.tanh(a @ w) ** 2)

    shared = mapped(lambda a, w: grad(lambda w: local(a, w))(w), (P("x"), P()), P())
    near(shared(ROWS, W), grad(alone)(W))
    summed = mapped(lambda a, w: grad(lambda w: lax.psum(local(a, w), "x"))(w), (P("x"), P()), P())
    near(summed(ROWS, W), grad(alone)(W))
    own = mapped(
        lambda a, w: grad(lambda w: local(a, w))(lax.pcast(w, "x", to="varying"))[None], (P("x"), P()), P("x")
    )
    near(own(ROWS, W), vmap(lambda a: grad(lambda w: local(a, w))(W))(PARTS))


def test_derivative_inside_where_nothing_is_checked() -> None:
    """Recorded from JAX 0.10.2: the cotangents of psum are summed, so each device's gradient is 4 times that of all."""
    f = mapped(
        lambda a, w: grad(lambda a: lax.psum(jnp.sum(jnp.tanh(a @ w) ** 2), "x"))(a), (P("x"), P()), P("x"),
        check_vma=False,
    )
    near(f(ROWS, W), 4 * grad(lambda a: jnp.sum(jnp.tanh(a @ W) ** 2))(ROWS))


LINEAR = {
    "gather": (lambda a: jnp.sin(lax.all_gather(a, "x", tiled=True)), P("x"), P("x"), lambda h: jnp.tile(h, (4, 1))),
    "psum_scatter": (lambda a: jnp.sin(lax.psum_scatter(a, "x", tiled=True)), P(), P("x"), lambda h: 4 * h),
    "all_to_all": (lambda a: jnp.sin(lax.all_to_all(a, "x", 1, 0, tiled=True)), P("x"), P(None, "x"), lambda h: h),
    "ppermute": (lambda a: jnp.sin(lax.ppermute(a, "x", RING)), P("x"), P("x"), lambda h: jnp.roll(h, 2, 0)),
    "psum": (lambda a: jnp.sin(lax.psum(a, "x")), P("x"), P(), lambda h: h.reshape(4, 2, 8).sum(0)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_derivatives_of_collectives(name: str) -> None:
    f, ins, outs, plain = LINEAR[name]
    weights = np.cos(np.arange(np.size(plain(ROWS)), dtype=np.float32)).reshape(plain(ROWS).shape)
    found = grad(lambda h: (mapped(f, ins, outs)(h) * weights).sum())(ROWS)
    near(found, grad(lambda h: (jnp.sin(plain(h)) * weights).sum())(ROWS))


def test_a_number_times_what_varies_is_not_taken_for_a_variable() -> None:
    """Once `3 * a` had been traced, the derivative in a variable that multiplies `a` was that of one device."""
    mapped(lambda a: np.float32(3) * a, P("x"), P("x"))(ROWS)
    f = mapped(lambda a, s: a * s, (P("x"), P()), P("x"))
    near(grad(lambda s: f(ROWS, s).sum())(np.float32(2)), ROWS.sum())


def test_custom_rules() -> None:
    tripled = custom_jvp(jnp.sin)
    tripled.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), 3 * tangents[0] * jnp.cos(primals[0])))
    near(grad(lambda h: mapped(tripled, P("x"), P("x"))(h).sum())(ROWS), 3 * np.cos(ROWS))
    doubled = custom_vjp(jnp.sin)
    doubled.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (2 * ct * jnp.cos(x),))
    near(grad(lambda h: mapped(doubled, P("x"), P("x"))(h).sum())(ROWS), 2 * np.cos(ROWS))
    near(mapped(grad(lambda a: doubled(a).sum()), P("x"), P("x"))(ROWS), 2 * np.cos(ROWS))


@pytest.mark.parametrize("summed", [True, False])
def test_a_backward_rule_for_what_devices_share(summed: bool) -> None:
    """A rule may sum over the devices itself; where it gives each its own cotangent, the sum is taken."""
    f = custom_vjp(lambda a, w: jnp.sum(jnp.sin(a @ w)))

    def backward(kept: Any, ct: Any) -> Any:
        a, w = kept
        slope = ct * jnp.cos(a @ w)
        of_w = slope @ a
        return slope[:, None] * w, lax.psum(of_w, "x") if summed else of_w

    f.defvjp(lambda a, w: (f(a, w), (a, w)), backward)
    found = grad(lambda w: mapped(lambda a, w: lax.psum(f(a, w), "x"), (P("x"), P()), P())(ROWS, w))(W)
    near(found, grad(lambda w: jnp.sum(jnp.sin(ROWS @ w)))(W))


@pytest.mark.full
def test_control_flow() -> None:
    near(mapped(lambda a: lax.scan(lambda c, x: (c + x, None), jnp.zeros(8), a)[0][None], P("x"), P("x"))(ROWS),
         PARTS.sum(1))
    near(mapped(lambda a: lax.fori_loop(0, 3, lambda i, c: lax.ppermute(c, "x", RING) + i, a), P("x"), P("x"))(ROWS),
         np.roll(ROWS, 6, 0) + 3)
    doubled = mapped(
        lambda a: lax.while_loop(lambda c: lax.psum(c.sum(), "x") < 500, lambda c: c * 2, a), P("x"), P("x")
    )
    near(doubled(ROWS), ROWS * 16)
    functions = [jnp.sin, jnp.cos, jnp.tanh, jnp.exp]
    switched = mapped(lambda a: lax.switch(lax.axis_index("x"), functions, a), P("x"), P("x"))
    near(switched(ROWS), np.concatenate([f(p) for f, p in zip(functions, PARTS, strict=True)]))
    near(grad(lambda h: switched(h).sum())(ROWS),
         np.concatenate([vmap(vmap(grad(f)))(p) for f, p in zip(functions, PARTS, strict=True)]))


@pytest.mark.full
def test_scan_around_and_checkpoint() -> None:
    def step(f: Any, c: Any, x: Any) -> Any:
        return jnp.tanh(c + f(x)), None

    f = mapped(lambda a, w: lax.psum(a @ w, "x"), (P("x"), P()), P())
    many, one = np.stack([ROWS, ROWS + 1]), lambda x, w: (x @ w).reshape(4, 2).sum(0)

    def slope(g: Any) -> Any:
        return grad(lambda w: lax.scan(lambda c, x: step(lambda x: g(x, w), c, x), jnp.zeros(2), many)[0].sum())(W)

    results = [slope(g) for g in (f, checkpoint(f), one)]
    near(results[0], results[2])
    near(results[1], results[2])


@pytest.mark.full
def test_random_numbers() -> None:
    key, sampled = random.key(3), random.gamma
    near(mapped(lambda k: random.normal(k, (3,)), P(), P())(key), random.normal(key, (3,)))
    keys = random.split(key, 4)
    near(mapped(lambda k: random.normal(k[0], (1, 3)), P("x"), P("x"))(keys),
         np.concatenate([random.normal(k, (1, 3)) for k in keys]))
    folded = mapped(lambda k: sampled(random.fold_in(k, lax.axis_index("x")), 2.0, (4,)), P(), P("x"))
    near(folded(key), np.concatenate([sampled(random.fold_in(key, i), 2.0, (4,)) for i in range(4)]))
    split = mapped(lambda k: random.split(k[0], 2), P("x"), P("x"))(keys)
    near(random.key_data(split), np.concatenate([random.key_data(random.split(k, 2)) for k in keys]))


def test_partly_manual() -> None:
    f = shard_map(lambda a: lax.psum(a, "x"), mesh=MESH, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    near(jit(f)(ROWS), PARTS.sum(0))
    where = shard_map(
        lambda a: a * 0 + lax.axis_index("y"), mesh=MESH, in_specs=P("y"), out_specs=P("y"), axis_names={"y"}
    )
    near(jit(where)(ROWS), np.repeat([0, 1], 4)[:, None] * np.ones(8))


def test_faces() -> None:
    twice = shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"))(lambda a: 2 * a)
    near(twice(ROWS), 2 * ROWS)
    near(older_shard_map(lambda a: 2 * a, MESH, P("x"), P("x"), check_rep=False)(ROWS), 2 * ROWS)
    with xlamini.set_mesh(MESH):
        near(shard_map(lambda a: lax.psum(a, "x"), in_specs=P("x"), out_specs=P())(ROWS), PARTS.sum(0))


def test_trees_closures_and_placements() -> None:
    def f(d: Any, e: Any) -> Any:
        return {"sum": lax.psum(d["a"], "x") + W, "same": (e, d["b"])}

    out = mapped(f, ({"a": P("x"), "b": P("y")}, P(None, "y")), {"sum": P(), "same": (P(None, "y"), P("y"))})(
        {"a": ROWS, "b": W}, ROWS
    )
    near(out["sum"], PARTS.sum(0) + W)
    near(out["same"][0], ROWS)
    assert out["same"][1].sharding.is_equivalent_to(NamedSharding(MESH, P("y")), 1)
    elsewhere = xlamini.device_put(ROWS, NamedSharding(MESH, P(None, "y")))
    near(mapped(lambda a: a + 1, P("x"), P("x"))(elsewhere), ROWS + 1)


def test_dtypes_and_sizes() -> None:
    halves = jnp.asarray(ROWS, "bfloat16")
    found = mapped(lambda a: lax.psum(a, "x"), P("x"), P())(halves)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(found, np.float32), PARTS.sum(0), rtol=2e-2)
    near(np.imag(mapped(lambda a: lax.psum(a * 1j, "x"), P("x"), P())(ROWS)), PARTS.sum(0))
    assert mapped(lambda a: a, P("x"), P("x"))(ROWS[:0]).shape == (0, 8)
    near(mapped(lambda a: lax.pbroadcast(a > 0.5, "x", 3), P("x"), P("x"))(ROWS), np.ones((8, 8)))


def test_donation() -> None:
    x = xlamini.device_put(ROWS, NamedSharding(MESH, P("x")))
    near(jit(mapped(lambda a: a + 1, P("x"), P("x")), donate_argnums=0)(x), ROWS + 1)
    assert x.is_deleted()
