"""Values of users' types that are split over devices: in shard_map, by specs of the user's, and as arguments of jit.

The values and gradients to compare with are those of the same function on one device, or closed forms.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.hi_types import Boxed, BoxedP, Leading, Scaled, ScaledP, ScaledTy, box, pack, unbox, unpack
from xlamini import P, grad, jit, lax, numpy as jnp, shard_map
from xlamini.errors import ShardingError
from xlamini.experimental.hijax import HiPspec, HiType, VJPHiPrimitive
from xlamini.sharding import AxisType, NamedSharding

X = np.arange(24, dtype=np.float32).reshape(8, 3) - 7
W = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
ROWS = ScaledP(P("i"))


@pytest.fixture(params=[AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def mesh(request: Any) -> Any:
    return xlamini.make_mesh((8,), ("i",), axis_types=(request.param,))


def split(x: Any, mesh: Any) -> Any:
    return xlamini.device_put(x, NamedSharding(mesh, P("i")))


WRAPS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": jit}


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_shard_is_a_value_of_the_shards_type(mesh: Any, wrap: str) -> None:
    types = []

    def packed(x: Any) -> Any:
        q = pack(x)
        types.append(xlamini.typeof(q).shape)
        return q

    def unpacked(q: Any) -> Any:
        types.append(xlamini.typeof(q).shape)
        return unpack(q)

    there = WRAPS[wrap](shard_map(packed, mesh=mesh, in_specs=P("i"), out_specs=ROWS))
    back = WRAPS[wrap](shard_map(unpacked, mesh=mesh, in_specs=ROWS, out_specs=P("i")))
    q = there(X)
    assert type(q) is Scaled and xlamini.typeof(q).shape == (8, 3) and set(types) == {(1, 3)}
    assert len(q.rows.addressable_shards) == 8 and q.scale.sharding.spec == P("i")
    np.testing.assert_allclose(q.scale, 1 + abs(X).max(1), rtol=1e-6)
    np.testing.assert_allclose(back(q), X, rtol=1e-5, atol=1e-5)
    assert set(types) == {(1, 3)}


def energy(q: Any, w: Any) -> Any:
    return jnp.sum(jnp.sin(unpack(q)) * w)


def shared(q: Any, w: Any) -> Any:
    return lax.psum(energy(q, w), "i")


GRADIENT = np.cos(X) * W

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "of a shard": lambda f, x: grad(f)(pack(x), W),
    "through the type": lambda f, x: grad(lambda x: f(pack(x), W))(x),
    "jit": lambda f, x: jit(grad(f))(pack(x), W),
    "checkpoint": lambda f, x: grad(xlamini.checkpoint(f))(pack(x), W),
    "cond": lambda f, x: grad(lambda q: lax.cond(True, f, lambda q, w: 0.0 * f(q, w), q, W))(pack(x)),
    "scan": lambda f, x: grad(lambda q: lax.scan(lambda c, _: (c + f(q, W) / 3, None), 0.0, None, 3)[0])(pack(x)),
    "vjp": lambda f, x: xlamini.vjp(lambda q: f(q, W), pack(x))[1](np.float32(1.0))[0],
}


@pytest.mark.full
@pytest.mark.parametrize("use", LOSSES)
def test_gradients_are_those_on_one_device(mesh: Any, use: str) -> None:
    f = shard_map(shared, mesh=mesh, in_specs=(ROWS, P("i")), out_specs=P())
    np.testing.assert_allclose(LOSSES[use](f, X), GRADIENT, rtol=1e-4, atol=1e-5)


def test_forward_mode_has_the_specs_of_tangents(mesh: Any) -> None:
    f = shard_map(shared, mesh=mesh, in_specs=(ROWS, P("i")), out_specs=P())
    out, tangent = xlamini.jvp(lambda q: f(q, W), (pack(X),), (X,))
    np.testing.assert_allclose(out, (np.sin(X) * W).sum(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tangent, (GRADIENT * X).sum(), rtol=1e-4)


def test_a_value_kept_for_the_derivative(mesh: Any) -> None:
    """It is made on each device, and kept by the spec that `nospec` gives."""

    def inner(x: Any) -> Any:
        return unpack(jit(pack)(x)) ** 2 * unpack(pack(jnp.sin(x)))

    f = shard_map(inner, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    loss = lambda f: grad(lambda x: (f(x) * W).sum())
    np.testing.assert_allclose(loss(f)(X), loss(inner)(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("check", [True, False])
def test_a_value_that_all_devices_share(mesh: Any, check: bool) -> None:
    """Its gradient is a sum over devices, also where a value of the type is cast to one that varies."""
    small = X[:2]

    def f(q: Any, w: Any) -> Any:
        return jnp.sum(unpack(q)) * w

    def total(f: Any) -> Any:
        return grad(lambda q: jnp.sum(f(q, W)))(pack(small))

    over = shard_map(f, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"), check_vma=check)
    np.testing.assert_allclose(total(over), np.full((2, 3), W.sum()), rtol=1e-4, atol=1e-5)


def test_what_varies_is_known_of_values_of_a_type(mesh: Any) -> None:
    """A value packed from what varies varies, so that psum sums it, and its gradient is right."""

    def total(x: Any) -> Any:
        return lax.psum(unpack(pack(x)).sum(), "i")

    f = shard_map(total, mesh=mesh, in_specs=P("i"), out_specs=P())
    np.testing.assert_allclose(f(X), X.sum(), rtol=1e-5)
    np.testing.assert_allclose(grad(f)(X), np.ones_like(X))
    with pytest.raises(ValueError, match=r"says that devices along 'i' have the same, but its type .*V:i"):
        shard_map(pack, mesh=mesh, in_specs=P("i"), out_specs=P())(X)


def test_vmap_inside(mesh: Any) -> None:
    def f(q: Any, ws: Any) -> Any:
        return xlamini.vmap(lambda w: jnp.sum(unpack(q) * w))(ws)

    over = shard_map(lambda q, ws: lax.psum(f(q, ws), "i"), mesh=mesh, in_specs=(ROWS, P(None, "i")), out_specs=P())
    np.testing.assert_allclose(over(pack(X), np.stack([W, 2 * W])), [(X * W).sum(), 2 * (X * W).sum()], rtol=1e-4)


def test_a_batch_beside_a_sharded_value(mesh: Any) -> None:
    f = shard_map(shared, mesh=mesh, in_specs=(ROWS, P("i")), out_specs=P())
    found = xlamini.vmap(lambda w: f(pack(X), w))(np.stack([W, 2 * W]))
    np.testing.assert_allclose(found, np.array([1, 2]) * (np.sin(X) * W).sum(), rtol=1e-4, atol=1e-5)


# --- a whole value that a loop or a branch makes vary


def added(q: Any, x: Any) -> Any:
    return pack(unpack(q) + x)


def branched(q: Any, x: Any) -> Any:
    return lax.cond(lax.axis_index("i") % 2 == 0, lambda q, x: q, lambda q, x: pack(x), q, x)


def looped(q: Any, x: Any) -> Any:
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (added(c[0], x), c[1] + 1), (q, 0))[0]


def scanned(q: Any, x: Any) -> Any:
    return lax.scan(lambda q, x: (added(q, x[None]), None), q, x)[0]


@xlamini.custom_vjp
def fivefold(q: Any) -> Any:
    return unpack(q)


fivefold.defvjp(lambda q: (unpack(q), q), lambda q, ct: (5 * ct,))
ONE, EVEN = X[:1], np.arange(8)[:, None] % 2 == 0


@pytest.mark.parametrize(
    ("fun", "value"),
    [(branched, np.where(EVEN, ONE, X)), (looped, ONE + 3 * X), (scanned, ONE + X)],
    ids=["cond", "while_loop", "scan"],
)
def test_a_shared_value_that_comes_to_vary(mesh: Any, fun: Any, value: Any) -> None:
    out = jit(shard_map(fun, mesh=mesh, in_specs=(P(), P("i")), out_specs=ROWS))(pack(ONE), X)
    np.testing.assert_allclose(unpack(out), value, rtol=1e-4, atol=1e-4)


@pytest.mark.full
@pytest.mark.parametrize(
    ("fun", "of_q", "of_x"),
    [(branched, W[::2].sum(0), np.where(EVEN, 0, W)), (scanned, W.sum(0), W)],
    ids=["cond", "scan"],
)
def test_gradients_for_a_value_that_comes_to_vary(mesh: Any, fun: Any, of_q: Any, of_x: Any) -> None:
    f = shard_map(lambda q, x: unpack(fun(q, x)), mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))
    for wrapped in (f, jit(f), xlamini.checkpoint(f)):
        loss = functools.partial(lambda f, q, x: (f(q, x) * W).sum(), wrapped)
        found = grad(loss, (0, 1))(pack(ONE), X)
        np.testing.assert_allclose(found[0][0], of_q, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[1], of_x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spec", [ROWS, P()], ids=["split", "whole"])
def test_custom_vjp_takes_values_of_a_type(mesh: Any, spec: Any) -> None:
    rows = P("i") if spec is ROWS else P()
    f = shard_map(fivefold, mesh=mesh, in_specs=spec, out_specs=rows)
    for gradient in (grad(lambda q: (f(q) * W).sum()), jit(grad(lambda q: (fivefold(q) * W).sum()))):
        np.testing.assert_allclose(gradient(pack(X)), 5 * W, rtol=1e-6)


# --- a type whose cotangents are of its own kind


def product(x: Any, y: Any) -> Any:
    return box(unbox(x) * unbox(y))


def test_cotangents_of_a_users_type(mesh: Any) -> None:
    split_box = BoxedP(P("i"))
    f = jit(shard_map(product, mesh=mesh, in_specs=(split_box, split_box), out_specs=split_box))
    x, y, ct = Boxed(jnp.asarray(X)), Boxed(jnp.asarray(W)), Boxed(jnp.ones((8, 3)))
    out, pullback = xlamini.vjp(f, x, y)
    dx, dy = pullback(ct)
    assert type(dx) is Boxed and type(out) is Boxed
    for found, due in ((out.value, X * W), (dx.value, W), (dy.value, X)):
        np.testing.assert_allclose(found, due, rtol=1e-6)


def test_a_shared_value_whose_cotangents_are_of_a_users_type(mesh: Any) -> None:
    f = shard_map(lambda x, w: unbox(x) * w, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))
    one = Boxed(jnp.ones(3))
    np.testing.assert_allclose(f(one, W), W)
    np.testing.assert_allclose(grad(lambda x: f(x, W).sum())(one).value, W.sum(0), rtol=1e-5, atol=1e-6)


# --- as arguments of jit


@pytest.mark.parametrize("inside", [True, False], ids=["set_mesh", "no mesh"])
def test_sharded_arguments_of_jit(mesh: Any, inside: bool) -> None:
    if inside:
        with xlamini.set_mesh(mesh):
            _check_arguments(mesh)
    else:
        _check_arguments(mesh)


def _check_arguments(mesh: Any) -> None:
    x = split(X, mesh)
    q = jit(pack)(x)
    assert q.rows.sharding.is_equivalent_to(x.sharding, 2) and q.scale.sharding.spec[0] == "i"
    for f in (jit(unpack), unpack, jit(unpack).lower(q).compile()):
        assert f(q).sharding.is_equivalent_to(x.sharding, 2)
        np.testing.assert_allclose(f(q), X, rtol=1e-5, atol=1e-5)
    gradient = jit(grad(lambda q: jnp.sum(unpack(q) ** 2)))(q)
    assert gradient.sharding.is_equivalent_to(x.sharding, 2)
    np.testing.assert_allclose(gradient, 2 * X, rtol=1e-5, atol=1e-5)


def test_tangents_are_split_as_types_say() -> None:
    mesh = xlamini.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,))
    x = split(X, mesh)
    types = []
    for f in (lambda x: unpack(pack(x)), ByLinearMap.of):
        out, tangent = jit(lambda x, f=f: xlamini.jvp(f, (x,), (x,)))(x)
        types += [str(xlamini.typeof(y)) for y in (out, tangent, jit(grad(lambda x, f=f: f(x).sum()))(x))]
    assert set(types) == {"float32[8@i,3]"}


class ByLinearMap(VJPHiPrimitive):
    """The identity, whose derivative is written as a linear map."""

    def __init__(self, aval: Any):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    @classmethod
    def of(cls, x: Any) -> Any:
        return cls(xlamini.typeof(x))(x)

    def expand(self, x: Any) -> Any:
        return x

    def lin(self, nzs_in: Any, x: Any) -> Any:  # type: ignore[override]
        return self(x), None

    def linearized(self, residuals: Any, t: Any) -> Any:  # type: ignore[override]
        return 1 * t


def test_types_tell_shardings() -> None:
    mesh = xlamini.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,))
    with xlamini.set_mesh(mesh):
        program = xlamini.make_jaxpr(lambda x: unpack(pack(x)))(split(X, mesh))
        assert "scaled[8@i,3] = Pack" in str(program) and "f32[8@i,3] = Unpack" in str(program)
        assert xlamini.typeof(pack(split(X, mesh))) == ScaledTy((8, 3), program.out_avals[0].sharding)


# --- errors


class Whole(HiPspec):
    pass


class OnePart(ScaledP):
    def to_lo(self) -> tuple[Any, ...]:
        return (self.rows,)


class Odd(ScaledP):
    def to_lo(self) -> tuple[Any, ...]:
        return P(), P()


@pytest.mark.parametrize(
    ("specs", "error", "problem"),
    [
        ((P("i"), P("i")), TypeError, r"'q' is of the type scaled\[8,3\], whose arrays .* does not tell apart"),
        ((ROWS, ROWS), TypeError, "the argument 'w' of type .* is an array, but has the spec"),
        ((Whole(), P("i")), NotImplementedError, r"for shard_map, write `def to_lo\(self\)` in the class Whole"),
        ((OnePart(P("i")), P("i")), ShardingError, "has 1 specs, but a value of type .* is made of 2 arrays"),
        ((Odd(P("i")), P("i")), ShardingError, "shard of the type .* returns .* its arrays become f32"),
        ((ScaledP(P("j")), P("i")), ShardingError, "'j' is none of the axes 'i'"),
    ],
)
def test_specs_that_do_not_fit(mesh: Any, specs: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        shard_map(shared, mesh=mesh, in_specs=specs, out_specs=P())(pack(X), W)


def test_what_is_missing_is_an_error_that_names_it(mesh: Any) -> None:
    f = shard_map(unpack, mesh=mesh, in_specs=ROWS, out_specs=P("i"))
    with pytest.raises(NotImplementedError, match=r"that shards a mapped value of a user's type, by .*vmap inside"):
        xlamini.vmap(f, in_axes=Leading(), axis_size=1)(pack(X[None]))
    with pytest.raises(TypeError, match="it is its arrays that have shardings; place these, and write None"):
        jit(unpack, in_shardings=NamedSharding(mesh, P("i")))(pack(X))
    with pytest.raises(NotImplementedError, match=r"for sharded values in shard_map, write `def shard\("):
        HiType().shard(mesh, frozenset(), True, ROWS)
    with pytest.raises(NotImplementedError, match=r"write `def nospec\("):
        HiType().nospec(mesh, True, ("i",))
