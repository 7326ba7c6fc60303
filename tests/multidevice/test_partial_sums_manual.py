"""Unreduced and reduced values within shard_map: types and casts as in JAX, values, derivatives and errors."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, jit, lax, make_mesh, nn, numpy as jnp, reshard, set_mesh, shard_map, vmap
from xlamini.sharding import AxisType

MESH = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
TABLE = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
U, R, X, UY = P(unreduced={"x"}), P(reduced={"x"}), P("x"), P("y", unreduced={"x"})

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def on_mesh() -> Iterator[None]:
    with set_mesh(MESH):
        yield


def whole(x: Any) -> np.ndarray:
    return np.asarray(reshard(x, P()) if "U:" in str(x.aval) else x)


def given(spec: P) -> Any:
    return reshard(TABLE, spec)


def folded(t: np.ndarray) -> np.ndarray:
    return t[:2] + t[2:]


# The function of each device, the specs, its input and output types inside, as JAX gives them, and the value.
ROWS: list[tuple[Function, P, P, str, Function]] = [
    (lambda q: lax.psum(q, "x"), U, P(), "f32[4,4]{U:x} f32[4,4]", lambda t: t),
    (lambda q: q + q, U, U, "f32[4,4]{U:x} f32[4,4]{U:x}", lambda t: 2 * t),
    (lambda q: lax.psum_scatter(q, "x", tiled=True), U, X, "f32[4,4]{U:x} f32[2,4]{V:x}", lambda t: t),
    (lambda q: lax.pcast(q, "x", to="unreduced"), X, U, "f32[2,4]{V:x} f32[2,4]{U:x}", folded),
    (lambda q: lax.psum(lax.pcast(q, "x", to="unreduced"), "x"), X, P(), "f32[2,4]{V:x} f32[2,4]", folded),
    (lambda q: lax.pcast(q, "x", to="reduced"), P(), R, "f32[4,4] f32[4,4]{R:x}", lambda t: t),
    (lambda q: lax.pcast(q, "x", to="varying"), R, X, "f32[4,4]{R:x} f32[4,4]{V:x}", lambda t: np.tile(t, (2, 1))),
    (lambda q: q * q, R, R, "f32[4,4]{R:x} f32[4,4]{R:x}", lambda t: t * t),
    (lambda q: lax.all_gather(q, "x", tiled=True, to="reduced"), X, R, "f32[2,4]{V:x} f32[4,4]{R:x}", lambda t: t),
    (lambda q: q, UY, UY, "f32[1,4]{V:y, U:x} f32[1,4]{V:y, U:x}", lambda t: t),
    (lambda q: lax.pad(q, 1.0, ((1, 1, 0), (0, 0, 0))), U, U, "f32[4,4]{U:x} f32[6,4]{U:x}", lambda t: padded(t)),
    (lambda q: lax.scan(lambda c, w: (c + w, w * 2), q[0], q)[1], U, U, "f32[4,4]{U:x} f32[4,4]{U:x}", lambda t: 2 * t),
    (lambda q: lax.cond(True, lambda w: w * 2, lambda w: w, q), U, U, "f32[4,4]{U:x} f32[4,4]{U:x}", lambda t: 2 * t),
]


def padded(t: np.ndarray) -> np.ndarray:
    return np.pad(t, ((1, 1), (0, 0)), constant_values=1)


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_types_and_values(number: int) -> None:
    fun, before, after, types, expected = ROWS[number]
    seen = []

    def noted(q: Any) -> Any:
        out = fun(q)
        seen[:] = [f"{xlamini.typeof(q).str_short()} {xlamini.typeof(out).str_short()}"]
        return out

    mapped = shard_map(noted, in_specs=before, out_specs=after)
    found = jit(mapped)(given(before))
    assert seen == [types]
    np.testing.assert_allclose(whole(found), expected(TABLE), rtol=1e-5)
    np.testing.assert_allclose(whole(mapped(given(before))), expected(TABLE), rtol=1e-5)


def test_specs_are_inferred_and_batched() -> None:
    z = given(U)
    found = jit(shard_map(lambda q: q + q, out_specs=U))(z)
    np.testing.assert_allclose(whole(found), 2 * TABLE, rtol=1e-5)
    summed = vmap(shard_map(lambda q: lax.psum(q, "x"), in_specs=U, out_specs=P()))
    np.testing.assert_allclose(jit(summed)(jnp.stack([z, 2 * z]))[1], 2 * TABLE, rtol=1e-5)
    kinds = []
    shard_map(lambda q: kinds.append(xlamini.typeof(q).manual_axis_type) or q, in_specs=U, out_specs=U)(z)
    assert (kinds[0].varying, kinds[0].unreduced, kinds[0].reduced) == (frozenset(), {"x"}, frozenset())


# A loss of a value with the spec, the cotangent's type, and the gradient.
LOSSES: dict[str, tuple[Function, P, str, Function]] = {
    "psum": (lambda q: (mapped(lambda w: lax.psum(2 * w, "x"), U, P())(q) * TABLE).sum(), U, "{R:x}", lambda t: 2 * t),
    "psum_scatter": (
        lambda q: (mapped(lambda w: lax.psum_scatter(w, "x", tiled=True), U, X)(q) * given(X)).sum(),
        U,
        "{R:x}",
        lambda t: t,
    ),
    "all_gather": (
        lambda q: (mapped(lambda w: lax.all_gather(w, "x", tiled=True, to="reduced"), X, R)(q) * given(R)).sum(),
        X,
        "[4@x,4]",
        lambda t: t,
    ),
    "pcast to unreduced": (
        lambda q: (mapped(lambda w: lax.pcast(w, "x", to="unreduced"), X, U)(q) * given(R)[:2]).sum(),
        X,
        "[4@x,4]",
        lambda t: np.tile(t[:2], (2, 1)),
    ),
    "pcast to reduced": (
        lambda q: (mapped(lambda w: lax.pcast(w, "x", to="reduced"), P(), R)(q) * given(R)).sum(),
        P(),
        "[4,4]",
        lambda t: t,
    ),
    "product": (
        lambda w: shard_map(lambda q, w: q @ w, in_specs=(X, R), out_specs=X)(given(X), w).sum(),
        R,
        "{U:x}",
        lambda t: np.tile(t.sum(0)[:, None], (1, 4)),
    ),
}


def mapped(fun: Function, before: P, after: P) -> Function:
    return shard_map(fun, in_specs=before, out_specs=after)


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_around(name: str) -> None:
    loss, spec, suffix, expected = LOSSES[name]

    def total(q: Any) -> Any:
        out = loss(q)
        return reshard(out, P()) if "{" in str(xlamini.typeof(out)) else out

    gradient = jit(xlamini.grad(total))(given(spec))
    assert str(gradient.aval).endswith(suffix)
    np.testing.assert_allclose(whole(gradient), expected(TABLE), rtol=1e-4, atol=1e-5)


INSIDE: dict[str, tuple[Function, Function]] = {
    "square": (lambda w: (w * w).sum(), lambda t: 2 * t),
    "sine": (lambda w: jnp.sin(w).mean(), lambda t: np.cos(t) / 16),
    "relu": (lambda w: nn.relu(w).sum(), lambda t: t > 0),
    "cumulative": (lambda w: jnp.cumsum(w * w, 0).sum(), lambda t: 2 * t * np.array([4, 3, 2, 1])[:, None]),
}


@pytest.mark.parametrize("name", INSIDE)
def test_derivatives_inside(name: str) -> None:
    fun, expected = INSIDE[name]
    found = jit(shard_map(xlamini.grad(fun), in_specs=R, out_specs=U))(given(R))
    np.testing.assert_allclose(whole(found), expected(TABLE), rtol=1e-4, atol=1e-5)


def test_a_gradient_of_each_device_is_summed_where_the_program_says() -> None:
    def gradient(rows: Any, w: Any) -> Any:
        return lax.psum(xlamini.grad(lambda w: jnp.tanh(rows @ w).sum())(w), "x")

    found = jit(shard_map(gradient, in_specs=(X, R), out_specs=P()))(given(X), given(R))
    expected = xlamini.grad(lambda w: jnp.tanh(TABLE @ w).sum())(TABLE)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def _two(fun: Function, first: P, second: P, out: P) -> Any:
    return shard_map(fun, in_specs=(first, second), out_specs=out)(given(first), given(second))


ERRORS: dict[str, tuple[Function, type[Exception], str]] = {
    "invarying to unreduced": (
        lambda: mapped(lambda q: lax.pcast(q, "x", to="unreduced"), P(), U)(TABLE),
        ValueError,
        "pcast: float32[4,4] is invarying along 'x', which cannot be cast to 'unreduced'; varying becomes unreduced",
    ),
    "unreduced to varying": (
        lambda: mapped(lambda q: lax.pcast(q, "x", to="varying"), U, X)(given(U)),
        ValueError,
        "is unreduced along 'x', which cannot be cast to 'varying'",
    ),
    "varying to reduced": (
        lambda: mapped(lambda q: lax.pcast(q, "x", to="reduced"), X, R)(given(X)),
        ValueError,
        "is varying along 'x', which cannot be cast to 'reduced'",
    ),
    "vmap": (
        lambda: vmap(lambda q: lax.pcast(q, "i", to="reduced"), axis_name="i")(TABLE),
        ValueError,
        "pcast: to='reduced' is for axes along which types say how values vary, but 'i' is an axis of vmap",
    ),
    "nonlinear": (
        lambda: mapped(jnp.sin, U, U)(given(U)),
        TypeError,
        "is not linear in an operand that is unreduced along 'x', a sum still to be taken; take it first, with psum or",
    ),
    "pmax": (
        lambda: mapped(lambda q: lax.pmax(q, "x"), U, P())(given(U)),
        TypeError,
        "pmax of f32[4,4]{U:x}: an operand that is unreduced, a sum still to be taken, cannot vary too",
    ),
    "varying": (lambda: _two(lambda q, w: q + w[:2], X, U, X), TypeError, "cannot vary too; take the sum first"),
    "invarying": (lambda: _two(lambda q, w: q + w, U, P(), U), TypeError, "needs all operands unreduced along 'x' or"),
    "out_specs": (
        lambda: mapped(lambda q: q, U, P())(given(U)),
        TypeError,
        "out_specs has P() for output 0 of <lambda>, of type f32[4,4]{U:x}: a spec names the axes along which",
    ),
    "closure": (
        lambda: (lambda z: mapped(lambda q: q + lax.psum(z, "x"), P(), P())(TABLE))(given(U)),
        TypeError,
        "closes over a value of type f32[4,4]{U:x}; pass it as an argument",
    ),
    "some axes": (
        lambda: shard_map(lambda q: q, in_specs=U, out_specs=U, axis_names={"x"})(given(U)),
        NotImplementedError,
        "values are unreduced or reduced only where all axes of the mesh are manual at once; leave out axis_names",
    ),
    "unchecked": (
        lambda: shard_map(lambda q: q, in_specs=U, out_specs=U, check_vma=False)(given(U)),
        ValueError,
        "only where types say how they vary; leave out check_vma=False",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    run, error, text = ERRORS[name]
    with pytest.raises(error, match=re.escape(text)):
        run()
