"""shard_map in shard_map, smap, and all_gather to what devices share, beside NumPy and the same on one device."""
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
    make_jaxpr,
    numpy as jnp,
    random,
    set_mesh,
    shard_map,
    smap,
    vmap,
)
from xlamini.sharding import AbstractMesh, AxisType, Mesh, get_abstract_mesh
from xlamini.staging.call.higher_order import cost_of

MESH = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
CUBE = Mesh(np.array(DEVICES).reshape(2, 2, 2), ("a", "b", "c"))
ROWS = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
PARTS = ROWS.reshape(4, 2, 8)
W = np.linspace(-1, 1, 8).astype(np.float32)
PLACE_OF_Y = np.repeat([0, 1], 4)


def over_x(f: Callable[..., Any], ins: Any = P("x"), outs: Any = P("x"), **options: Any) -> Any:
    return shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, axis_names={"x"}, **options)


def over_y(f: Callable[..., Any], ins: Any = P(None, "y"), outs: Any = P(None, "y"), **options: Any) -> Any:
    return shard_map(f, in_specs=ins, out_specs=outs, axis_names={"y"}, **options)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5, atol=1e-5)


def all_near(found: Any, expected: Any) -> None:
    xlamini.tree.map(near, found, expected)


@pytest.mark.parametrize("transform", [lambda f: f, jit], ids=["eager", "jit"])
def test_collectives(transform: Any) -> None:
    with_sum = over_x(over_y(lambda b: b + lax.psum(b.sum(1, keepdims=True), "y")))
    near(transform(with_sum)(ROWS), ROWS + ROWS.sum(1, keepdims=True))
    of_both = over_x(over_y(lambda b: lax.psum(b, ("x", "y")), outs=P()), outs=P())
    near(transform(of_both)(ROWS), ROWS.reshape(4, 2, 2, 4).sum((0, 2)))
    places = over_x(over_y(lambda b: b * 0 + 10 * lax.axis_index("x") + lax.axis_index("y")))
    near(transform(places)(ROWS), 10 * np.repeat(np.arange(4), 2)[:, None] + PLACE_OF_Y)
    sent = over_x(over_y(lambda b: lax.ppermute(b, "x", [(i, (i + 1) % 4) for i in range(4)])))
    near(transform(sent)(ROWS), np.roll(ROWS, 2, 0))


MESHES = {
    "left out": lambda: None,
    "the same": lambda: MESH,
    "of the context": get_abstract_mesh,
    "by its axes": lambda: AbstractMesh((4, 2), ("x", "y"), (AxisType.Manual, AxisType.Auto)),
}


@pytest.mark.parametrize("which", MESHES)
def test_meshes(which: str) -> None:
    near(over_x(lambda a: over_y(lambda b: b + lax.axis_index("y"), mesh=MESHES[which]())(a))(ROWS), ROWS + PLACE_OF_Y)


def test_what_is_seen_inside() -> None:
    seen: list[str] = []

    def see(x: Any) -> Any:
        seen.append(f"{get_abstract_mesh().axis_types} {xlamini.typeof(x)}")
        return x

    def outer(a: Any) -> Any:
        return see(over_y(lambda b: see(lax.psum(see(b), "x")))(see(a)))

    assert over_x(outer, outs=P())(ROWS).shape == (2, 8)
    assert seen == [
        "(Manual, Auto) float32[2,8]{V:x}",
        "(Manual, Manual) float32[2,4]{V:x,y}",
        "(Manual, Manual) float32[2,4]{V:y}",
        "(Manual, Auto) float32[2,8]",
    ]
    assert get_abstract_mesh().empty


def test_axes_that_are_left() -> None:
    """Without axis_names a shard_map is over those that none around has taken; they may be none."""
    rest = over_x(shard_map(lambda b: lax.psum(b, "y"), in_specs=P(None, "y"), out_specs=P()))
    near(rest(ROWS), ROWS.reshape(8, 2, 4).sum(1))
    none = shard_map(shard_map(jnp.sin, in_specs=P(), out_specs=P()), mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    near(none(ROWS), np.sin(ROWS))


def test_under_the_mesh_that_is_set() -> None:
    with set_mesh(MESH):
        f = shard_map(over_y(lambda b: b * 2), in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
        near(jit(f)(ROWS), 2 * ROWS)


def test_a_function_is_traced_for_each_mesh() -> None:
    """One jitted function, called on meshes of the same axes that number the devices differently."""
    inner = jit(over_y(lambda b: lax.ppermute(b, "y", [(0, 1), (1, 0)])))
    expected = np.roll(ROWS, 4, 1)
    for devices in (DEVICES, DEVICES[::-1]):
        mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
        near(shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(ROWS), expected)


def program(a: Any, w: Any, inner: bool = True, outer: bool = True) -> Any:
    """Sums over both axes, scalars that vary, values that the inner function captures; with or without check_vma."""

    def of_part(a: Any, w: Any) -> Any:
        def of_block(b: Any, w: Any) -> Any:
            return jnp.tanh(b * w) * jnp.sin(lax.psum(b.sum(), "y")) + a.sum() * w

        found = over_y(of_block, (P(None, "y"), P("y")), check_vma=inner)(jnp.cos(a), w)
        return lax.psum((found * found).sum(), "x")

    return over_x(of_part, (P("x"), P()), P(), check_vma=outer)(a, w)


def plain(a: Any, w: Any) -> Any:
    parts = jnp.cos(a).reshape(4, 2, 8)
    whole = parts.sum((1, 2), keepdims=True)
    found = jnp.tanh(parts * w) * jnp.sin(whole) + a.reshape(4, 2, 8).sum((1, 2), keepdims=True) * w
    return (found * found).sum()


DERIVATIVES = {
    "value": lambda f: f(ROWS, W),
    "gradient": lambda f: grad(f, argnums=(0, 1))(ROWS, W),
    "compiled gradient": lambda f: jit(grad(f, argnums=(0, 1)))(ROWS, W),
    "tangent": lambda f: jvp(f, (ROWS, W), (ROWS, W)),
    "second derivative": lambda f: hessian(lambda w: f(ROWS, w))(W),
    "vmap": lambda f: vmap(f, (None, 0))(ROWS, np.stack([W, 2 * W])),
    "vmap of gradient": lambda f: vmap(grad(f, 1), (0, None))(np.stack([ROWS, ROWS + 1]), W),
    "gradient of vmap": lambda f: grad(lambda a: vmap(f, (None, 0))(a, np.stack([W, 2 * W])).sum())(ROWS),
    "checkpoint": lambda f: grad(checkpoint(f))(ROWS, W),
    "scan": lambda f: grad(
        lambda w: lax.scan(lambda c, a: (jnp.tanh(c * f(a, w) / 1e4), None), 1.0, np.stack([ROWS, ROWS + 1]))[0]
    )(W),
}


@pytest.mark.sample(40)
@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str, inner: bool, outer: bool) -> None:
    all_near(DERIVATIVES[name](lambda a, w: program(a, w, inner, outer)), DERIVATIVES[name](plain))


@pytest.mark.full
def test_a_derivative_without_checks_does_not_decide_on_one_with_checks() -> None:
    xlamini.clear_caches()
    for inner in (False, True, False):
        found = grad(lambda a, w, inner=inner: program(a, w, inner=inner), (0, 1))(ROWS, W)
        all_near(found, grad(plain, (0, 1))(ROWS, W))


@pytest.mark.full
def test_derivatives_inside() -> None:
    def total(b: Any, w: Any) -> Any:
        return lax.psum(jnp.tanh(b * w).sum(), "y")

    both, specs = (0, 1), (P(None, "y"), P("y"))
    expected = grad(lambda a, w: jnp.tanh(a * w).sum(), both)(ROWS, W)
    between = over_x(grad(over_y(total, specs, P()), both), (P("x"), P()), (P("x"), P()))
    all_near(jit(between)(ROWS, W), expected)
    innermost = over_x(over_y(grad(total, both), specs, specs), (P("x"), P()), (P("x"), P()))
    all_near(jit(innermost)(ROWS, W), expected)
    batched = over_x(vmap(over_y(jnp.sin, P("y"), P("y"))))
    near(jit(batched)(ROWS), np.sin(ROWS))


def test_loops_inside_and_between() -> None:
    def of_block(b: Any) -> Any:
        return lax.scan(lambda c, r: (c + r + lax.psum(r, "y") + lax.axis_index("x"), None), jnp.zeros(4), b)[0]

    def of_part(a: Any) -> Any:
        return lax.scan(lambda c, x: (c + over_y(of_block, outs=P("y"))(a), None), jnp.zeros(8), np.arange(3))[0][None]

    blocks = ROWS.reshape(4, 2, 2, 4)
    once = (blocks + blocks.sum(2, keepdims=True)).sum(1).reshape(4, 8) + 2 * np.arange(4)[:, None]
    near(jit(over_x(of_part))(ROWS), 3 * once)


def with_vjp(f: Any) -> Any:
    ruled = custom_vjp(f)
    ruled.defvjp(lambda *args: (f(*args), args), lambda kept, ct: xlamini.vjp(f, *kept)[1](ct))
    return ruled


def with_jvp(f: Any) -> Any:
    ruled = custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: jvp(f, primals, tangents))
    return ruled


def in_branch(f: Any) -> Any:
    return lambda b, w: lax.cond(lax.axis_index("x") + lax.axis_index("y") >= 0, f, lambda b, w: 0 * b * w, b, w)


AROUND = {"jit": jit, "checkpoint": checkpoint, "custom_vjp": with_vjp, "custom_jvp": with_jvp}
INSIDE = {**AROUND, "cond": in_branch, "scan": lambda f: lambda b, w: lax.scan(lambda c, r: (c, f(r, w)), 0.0, b)[1]}


@pytest.mark.sample(12)
@pytest.mark.parametrize(("inside", "around"), [*[(n, "jit") for n in INSIDE], *[("checkpoint", n) for n in AROUND]])
def test_what_takes_functions(inside: str, around: str) -> None:
    def of_block(b: Any, w: Any) -> Any:
        return lax.psum((INSIDE[inside](lambda b, w: jnp.tanh(b * w))(b, w) ** 2).sum(), ("x", "y"))

    def total(a: Any, w: Any) -> Any:
        of_part = over_y(of_block, (P(None, "y"), P("y")), P())
        return over_x(AROUND[around](lambda a, w: of_part(a, w)), (P("x"), P()), P())(a, w)

    all_near(grad(total, (0, 1))(ROWS, W), grad(lambda a, w: (jnp.tanh(a * w) ** 2).sum(), (0, 1))(ROWS, W))


@pytest.mark.full
def test_random_numbers() -> None:
    fold, key = random.fold_in, random.key(3)

    def of_block(k: Any) -> Any:
        return random.normal(fold(k, lax.axis_index("y")), (1, 3))

    found = over_x(lambda k: over_y(of_block, P(), P("y"))(fold(k, lax.axis_index("x"))), P())(key)
    near(found, np.concatenate([random.normal(fold(fold(key, i), j), (1, 3)) for i in range(4) for j in range(2)]))


@pytest.mark.parametrize("transform", [lambda f: f, grad], ids=["value", "gradient"])
def test_three_deep(transform: Any) -> None:
    def over(name: str, f: Any, ins: Any, mesh: Any = None) -> Any:
        return shard_map(f, mesh=mesh, in_specs=ins, out_specs=P(), axis_names={name})

    total = over("c", lambda x: lax.psum(jnp.sin(x), ("a", "b", "c")), P(None, "c"))
    f = over("a", over("b", total, P(None, None, "b")), P("a"), CUBE)
    cube = np.arange(64, dtype=np.float32).reshape(4, 4, 4) / 64
    weights = np.cos(np.arange(8, dtype=np.float32)).reshape(2, 2, 2)
    found = transform(lambda x: (f(x) * weights).sum())(cube)
    near(found, transform(lambda x: (jnp.sin(x).reshape(2, 2, 2, 2, 2, 2).sum((0, 2, 4)) * weights).sum())(cube))


def test_the_compiler_decides_along_what_is_left() -> None:
    """The axis b is nobody's: positions are found without it, and a constraint may speak of it."""

    def of_block(x: Any) -> Any:
        return x * 0 + 10 * lax.axis_index("a") + lax.axis_index("c")

    def of_part(x: Any) -> Any:
        x = lax.with_sharding_constraint(x, P(None, None, "b"))
        return shard_map(of_block, in_specs=P(None, "c"), out_specs=P(None, "c"), axis_names={"c"})(x)

    f = shard_map(of_part, mesh=CUBE, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    place = np.repeat([0, 1], 2)
    near(jit(f)(np.ones((4, 4, 4), np.float32)), np.broadcast_to(10 * place[:, None, None] + place[:, None], (4, 4, 4)))


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_mapped_axis_of_the_same_name_is_another(name: str) -> None:
    f = over_x(over_y(lambda b: lax.psum(b, name)), outs=P("x") if name == "y" else P())
    two = np.stack([ROWS, 2 * ROWS])
    near(vmap(f, axis_name=name)(two), np.stack([f(ROWS), f(2 * ROWS)]))


def test_cost_counts_each_device_once() -> None:
    programs = jnp.tanh, over_x(jnp.tanh), over_x(over_y(jnp.tanh))
    flops = [cost_of(make_jaxpr(f)(ROWS).jaxpr).flops for f in programs]
    assert flops[0] == flops[1] == flops[2] > 0


@pytest.mark.full
def test_smap() -> None:
    with set_mesh(MESH):
        near(smap(lambda a: a + lax.axis_index("x"), in_axes=1, out_axes=1, axis_name="x")(ROWS),
             ROWS + np.repeat(np.arange(4), 2))
        near(smap(lambda a: a[:, :1], in_axes=-1, out_axes=-1, axis_name="y")(ROWS), ROWS[:, [0, 4]])
        near(smap(lambda a: lax.psum(a, "x"), in_axes=0, out_axes=None, axis_name="x")(ROWS), PARTS.sum(0))
        trees = smap(
            lambda d, w: ({"sum": lax.psum(d["a"], "x") * w["k"]}, d["b"]), in_axes=({"a": 0, "b": 1}, None),
            out_axes=({"sum": None}, 1), axis_name="x",
        )({"a": ROWS, "b": ROWS}, {"k": 2.0})
        all_near(trees, ({"sum": 2 * PARTS.sum(0)}, ROWS))
        decorated = smap(in_axes=0, out_axes=0, axis_name="x")(lambda a: jnp.sin(a) * a.shape[0])
        near(decorated(ROWS), 2 * np.sin(ROWS))
        near(jit(grad(lambda a: decorated(a).sum()))(ROWS), 2 * np.cos(ROWS))
        near(vmap(decorated)(np.stack([ROWS, ROWS + 1])), 2 * np.sin(np.stack([ROWS, ROWS + 1])))


def test_smap_in_smap_and_in_shard_map() -> None:
    inner = smap(lambda b: b + lax.psum(b, ("x", "y")), in_axes=1, out_axes=1, axis_name="y")
    expected = ROWS + np.tile(ROWS.reshape(4, 2, 2, 4).sum((0, 2)), (4, 2))
    with set_mesh(MESH):
        near(smap(inner, in_axes=0, out_axes=0, axis_name="x")(ROWS), expected)
    near(over_x(inner)(ROWS), expected)


GATHERED = {
    "tiled": (lambda a: lax.all_gather(a, "x", tiled=True, to="invarying"), P("x"), lambda h: h),
    "stacked": (lambda a: lax.all_gather(a, "x", axis=1, to="invarying"), P("x"),
                lambda h: jnp.moveaxis(h.reshape(4, 2, 8), 0, 1)),
    "at the end": (lambda a: lax.all_gather(a, "x", axis=-1, tiled=True, to="invarying"), P(None, "x"), lambda h: h),
    "of both": (lambda a: lax.all_gather(a, ("x", "y"), tiled=True, to="invarying"), P(("x", "y")), lambda h: h),
    "of what is shared": (lambda a: lax.all_gather(a, "x", tiled=True, to="invarying"), P(),
                          lambda h: jnp.tile(h, (4, 1))),
    "batched": (lambda a: vmap(lambda r: lax.all_gather(r, "x", tiled=True, to="invarying"), 1, 1)(a), P("x"),
                lambda h: h),
}


@pytest.mark.full
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("name", GATHERED)
def test_gathered_for_all(name: str, checked: bool) -> None:
    f, ins, expected = GATHERED[name]
    mapped = shard_map(lambda a: jnp.sin(f(a)), mesh=MESH, in_specs=ins, out_specs=P(), check_vma=checked)
    near(mapped(ROWS), np.sin(expected(ROWS)))
    weights = np.cos(np.arange(mapped(ROWS).size, dtype=np.float32)).reshape(mapped(ROWS).shape)

    def slope(f: Any) -> Any:
        return grad(lambda h: ((f(h) ** 2) * weights).sum())

    near(slope(mapped)(ROWS), slope(lambda h: jnp.sin(expected(h)))(ROWS))
    twice = [grad(lambda h, s=slope(g): s(h).sum())(ROWS) for g in (mapped, lambda h: jnp.sin(expected(h)))]
    near(*twice)


def test_gathered_for_all_is_differentiated_without_a_sum() -> None:
    def own(a: Any) -> Any:
        return grad(lambda a: jnp.sin(lax.all_gather(a, "x", tiled=True, to="invarying")).sum())(a)

    f = shard_map(own, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    near(f(ROWS), np.cos(ROWS))
    text = str(make_jaxpr(f)(ROWS))
    assert "all_gather_invariant" in text
    assert "psum" not in text and "reduce_scatter" not in text


LOOPS: dict[str, Callable[..., Any]] = {
    "sums": lambda b, w: lax.scan(lambda c, x: (c + jnp.tanh(b * x).sum(), c * x), jnp.float32(0), w)[1],
    "products": lambda b, w: lax.scan(lambda c, x: (c * w[0], (b * c * x).sum()), jnp.float32(1), w)[1],
    "map": lambda b, w: lax.map(lambda x: jnp.sin(x * b.sum()), w),
}


@pytest.mark.full
@pytest.mark.parametrize("loop", LOOPS)
def test_loops_that_close_over_values_without_checks(loop: str) -> None:
    """A loop's body sums the cotangent of what it closes over; the sum has that value's type, whatever is checked."""

    def total(check: bool) -> Any:
        def outer(a: Any, w: Any) -> Any:
            return over_y(lambda w: LOOPS[loop](a, w), P("y"), P("y"), check_vma=check)(w).sum() + a

        return lambda a, w: jnp.sin(over_x(outer, (P("x"), P()))(a, w)).sum()

    def second(f: Any) -> Any:
        return grad(lambda a, w: sum((g**2).sum() for g in grad(f, (0, 1))(a, w)), (0, 1))

    for derivative in (lambda f: grad(f, (0, 1)), second):
        all_near(jit(derivative(total(False)))(ROWS, W), jit(derivative(total(True)))(ROWS, W))
