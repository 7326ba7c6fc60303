"""Collectives that move: all_gather, psum_scatter, all_to_all, ppermute…, beside NumPy on the stack of all operands.

A row is a collective of one operand, and what it does to the operands of all positions, stacked along dimension 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.checks import assert_close
from xlamini import lax

N = 4
GROUPS = [[2, 0], [1, 3]]
SHIFT = [(0, 1), (1, 2), (2, 3), (3, 0)]


class Row(NamedTuple):
    """A collective over the axis `i` of size 4, its plain form on the stack, and the shape of one operand."""

    traced: Callable[[Any], Any]
    plain: Callable[[Any], Any]
    shape: tuple[int, ...]


def same_for_all(x: Any) -> Any:
    return np.broadcast_to(x, (N, *x.shape))


def blocks(x: Any, axis: int, count: int) -> Any:
    """The stack of the `count` blocks along an axis."""
    return np.stack(np.split(x, count, axis))


def exchanged(x: Any, split: int, concat: int) -> Any:
    """Position q gets, of each p in turn, the q-th block of p's operand."""
    n = len(x)
    parts = [np.split(row, n, split) for row in x]
    return np.stack([np.concatenate([parts[p][q] for p in range(n)], concat) for q in range(n)])


def by_groups(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def grouped(x: Any) -> Any:
        found: list[Any] = [None] * N
        for group in GROUPS:
            for position, result in zip(group, plain(x[group]), strict=True):
                found[position] = result
        return np.stack(found)

    return grouped


def spread(x: Any) -> Any:
    return np.broadcast_to(x, (2, *x.shape))


def moved(x: Any, pairs: Any) -> Any:
    found = np.zeros_like(x)
    for source, destination in pairs:
        found[destination] = x[source]
    return found


ROWS = {
    "all_gather": Row(lambda x: lax.all_gather(x, "i"), same_for_all, (3,)),
    "all_gather at 1": Row(
        lambda x: lax.all_gather(x, "i", axis=1), lambda x: same_for_all(np.moveaxis(x, 0, 1)), (3, 2)
    ),
    "all_gather at the end": Row(
        lambda x: lax.all_gather(x, "i", axis=-1), lambda x: same_for_all(np.moveaxis(x, 0, -1)), (3, 2)
    ),
    "all_gather tiled": Row(
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True), lambda x: same_for_all(np.concatenate(x, 1)), (3, 2)
    ),
    "all_gather of scalars": Row(lambda x: lax.all_gather(x, "i"), same_for_all, ()),
    "all_gather in groups": Row(lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS), by_groups(spread), (3,)),
    "psum_scatter": Row(lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0), (N, 3)),
    "psum_scatter at 1": Row(
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), lambda x: x.sum(0).swapaxes(0, 1), (3, N)
    ),
    "psum_scatter from the end": Row(
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=-1), lambda x: x.sum(0).swapaxes(0, 1), (3, N)
    ),
    "psum_scatter tiled": Row(
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda x: blocks(x.sum(0), 1, N),
        (3, 2 * N),
    ),
    "psum_scatter in groups": Row(
        lambda x: lax.psum_scatter(x, "i", axis_index_groups=GROUPS, tiled=True),
        by_groups(lambda x: blocks(x.sum(0), 0, 2)),
        (6,),
    ),
    "all_to_all": Row(lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: x.swapaxes(0, 1), (N, 3)),
    "all_to_all 0 to 1": Row(
        lambda x: lax.all_to_all(x, "i", 0, 1), lambda x: np.einsum("sdx->dxs", x), (N, 3)
    ),
    "all_to_all 1 to 0": Row(
        lambda x: lax.all_to_all(x, "i", 1, 0), lambda x: np.einsum("sxd->dsx", x), (3, N)
    ),
    "all_to_all 0 to 2": Row(
        lambda x: lax.all_to_all(x, "i", 0, 2), lambda x: np.einsum("sdxy->dxys", x), (N, 3, 2)
    ),
    "all_to_all from the end": Row(
        lambda x: lax.all_to_all(x, "i", -2, -1), lambda x: np.einsum("sdx->dxs", x), (N, 3)
    ),
    "all_to_all tiled": Row(
        lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True), lambda x: exchanged(x, 0, 1), (2 * N, 3)
    ),
    "all_to_all tiled back": Row(
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), lambda x: exchanged(x, 1, 0), (3, N)
    ),
    "all_to_all in groups": Row(
        lambda x: lax.all_to_all(x, "i", 0, 0, axis_index_groups=GROUPS),
        by_groups(lambda x: x.swapaxes(0, 1)),
        (2, 3),
    ),
    "pswapaxes": Row(lambda x: lax.pswapaxes(x, "i", 1), lambda x: x.swapaxes(0, 2), (3, N)),
    "ppermute": Row(lambda x: lax.ppermute(x, "i", SHIFT), lambda x: np.roll(x, 1, 0), (3,)),
    "ppermute of some": Row(
        lambda x: lax.ppermute(x, "i", [(0, 3), (3, 1)]), lambda x: moved(x, [(0, 3), (3, 1)]), (3,)
    ),
    "ppermute of none": Row(lambda x: lax.ppermute(x, "i", []), np.zeros_like, ()),
    "pshuffle": Row(lambda x: lax.pshuffle(x, "i", [3, 1, 0, 2]), lambda x: x[[3, 1, 0, 2]], (3,)),
    "pbroadcast": Row(lambda x: lax.pbroadcast(x, "i", 2), lambda x: same_for_all(x[2]), (3,)),
    "psum in groups": Row(
        lambda x: lax.psum(x, "i", axis_index_groups=GROUPS), by_groups(lambda x: spread(x.sum(0))), (3,)
    ),
    "psum in uneven groups": Row(
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 3], [2]]),
        lambda x: np.stack([x[[0, 1, 3]].sum(0)] * 2 + [x[2]] + [x[[0, 1, 3]].sum(0)]),
        (3,),
    ),
    "pmean in uneven groups": Row(
        lambda x: lax.pmean(x, "i", axis_index_groups=[[0, 1, 3], [2]]),
        lambda x: np.stack([x[[0, 1, 3]].mean(0)] * 2 + [x[2]] + [x[[0, 1, 3]].mean(0)]),
        (3,),
    ),
    "pmax in groups": Row(
        lambda x: lax.pmax(x, "i", axis_index_groups=GROUPS), by_groups(lambda x: spread(x.max(0))), (3,)
    ),
}
EVERY = pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in ROWS.items()])


def operands(row: Row, *before: int) -> Any:
    shape = (*before, N, *row.shape)
    return np.cos(np.arange(float(np.prod(shape))) * 1.7).reshape(shape).astype(np.float32)


def over_i(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return xlamini.vmap(fun, axis_name="i", **options)


@EVERY
def test_values(row: Row) -> None:
    x = operands(row)
    assert_close(over_i(row.traced)(x), row.plain(x), 1e-6)
    assert_close(xlamini.jit(over_i(xlamini.jit(row.traced)))(x), row.plain(x), 1e-6)


@pytest.mark.sample(29)
@EVERY
def test_with_other_axes_around_and_inside(row: Row) -> None:
    x = operands(row, 2)
    expected = np.stack([row.plain(v) for v in x])
    assert_close(xlamini.vmap(over_i(row.traced))(x), expected, 1e-6)
    assert_close(over_i(xlamini.vmap(row.traced), in_axes=1, out_axes=1)(x), expected, 1e-6)
    last = np.moveaxis(x, 0, -1)
    assert_close(over_i(xlamini.vmap(row.traced, in_axes=-1))(last).swapaxes(0, 1), expected, 1e-6)
    named = xlamini.vmap(over_i(row.traced), axis_name="j")
    assert_close(named(x), expected, 1e-6)


@EVERY
def test_what_does_not_vary(row: Row) -> None:
    x = operands(row)[0]
    found = over_i(lambda _: row.traced(jnp.asarray(x)))(np.zeros(N))
    assert_close(found, row.plain(np.broadcast_to(x, (N, *x.shape))), 1e-6)


@pytest.mark.full
@EVERY
def test_derivatives_outside_the_map(row: Row) -> None:
    with xlamini.enable_x64(True):
        x, t = (operands(row).astype(np.float64) + shift for shift in (0.0, 0.1))
        t = np.sin(5 * t)

        def curved(x: Any) -> Any:
            return over_i(lambda v: row.traced(v * v) * row.traced(v))(x)

        def plain(x: Any) -> Any:
            return row.plain(x * x) * row.plain(x)

        _, tangent = xlamini.jvp(curved, (x,), (t,))
        assert_close(tangent, (plain(x + 1e-6 * t) - plain(x - 1e-6 * t)) / 2e-6, 1e-7)
        out, pull = xlamini.vjp(curved, x)
        weights = np.cos(np.arange(out.size)).reshape(out.shape)
        assert_close((pull(weights)[0] * t).sum(), (weights * tangent).sum(), 1e-9)

        def gradient(x: Any) -> Any:
            return xlamini.grad(lambda x: (curved(x) * weights).sum())(x)

        second = xlamini.jit(xlamini.jvp, static_argnums=0)(gradient, (x,), (t,))[1]
        assert_close(second, (gradient(x + 1e-5 * t) - gradient(x - 1e-5 * t)) / 2e-5, 1e-6)


# What JAX 0.10.2 gives for a gradient inside the map: that of the sum over all positions.
INSIDE = {
    "all_gather": (lambda r: lax.all_gather(r, "i"), lambda y: 8 * y),
    "psum_scatter": (lambda r: lax.psum_scatter(r, "i"), lambda y: same_for_all(2 * y.sum(0))),
    "all_to_all": (lambda r: lax.all_to_all(r, "i", 0, 0), lambda y: 2 * y),
}


@pytest.mark.parametrize("traced, plain", list(INSIDE.values()), ids=list(INSIDE))
def test_a_gradient_inside_the_map(traced: Any, plain: Any) -> None:
    y = np.arange(16.0, dtype=np.float32).reshape(N, N)
    for wrap in (lambda f: f, xlamini.jit):
        found = over_i(xlamini.grad(wrap(lambda r: (traced(r) ** 2).sum())))(y)
        assert_close(found, plain(y), 1e-6)


def test_gradients_of_what_is_sent() -> None:
    y = np.arange(1.0, 5.0, dtype=np.float32)
    sent = over_i(xlamini.grad(lambda r: lax.ppermute(r, "i", [(0, 1), (1, 3)]) ** 2))(y)
    assert sent.tolist() == [2.0, 4.0, 0.0, 0.0]
    spread = over_i(xlamini.grad(lambda r: lax.pbroadcast(r, "i", 1) ** 2))(y)
    assert spread.tolist() == [0.0, 16.0, 0.0, 0.0]


def test_trees() -> None:
    x = operands(ROWS["all_gather"])
    found = over_i(lambda v: lax.all_gather({"a": v, "b": (2.0, v * 2)}, "i"), out_axes=None)(x)
    assert_close(found["a"], x, 1e-6)
    assert found["b"][0].tolist() == [2.0] * N
    sent = over_i(lambda v: lax.ppermute([v, v > 0], "i", SHIFT))(x)
    assert_close(sent[1], np.roll(x > 0, 1, 0), 0)


# Two axes of sizes 2 and 3 beside one of size 6: position (i, j) is 3 i + j.
TWO = {
    "all_gather": (lambda x, n: lax.all_gather(x, n), (5,)),
    "all_gather at 1": (lambda x, n: lax.all_gather(x, n, axis=1), (5,)),
    "all_gather tiled": (lambda x, n: lax.all_gather(x, n, tiled=True), (5,)),
    "psum_scatter": (lambda x, n: lax.psum_scatter(x, n, scatter_dimension=1), (5, 6)),
    "psum_scatter tiled": (lambda x, n: lax.psum_scatter(x, n, tiled=True), (12,)),
    "all_to_all": (lambda x, n: lax.all_to_all(x, n, 0, 0), (6, 2)),
    "all_to_all 0 to 1": (lambda x, n: lax.all_to_all(x, n, 0, 1), (6, 2)),
    "all_to_all 2 to 0": (lambda x, n: lax.all_to_all(x, n, 2, 0), (2, 3, 6)),
    "all_to_all tiled": (lambda x, n: lax.all_to_all(x, n, 0, 1, tiled=True), (12, 2)),
    "all_to_all tiled back": (lambda x, n: lax.all_to_all(x, n, 1, 0, tiled=True), (2, 12)),
    "pswapaxes": (lambda x, n: lax.pswapaxes(x, n, 0), (6,)),
    "ppermute": (lambda x, n: lax.ppermute(x, n, [(0, 1), (1, 2), (5, 0)]), (2,)),
    "pshuffle": (lambda x, n: lax.pshuffle(x, n, [1, 2, 3, 4, 5, 0]), ()),
    "pbroadcast": (lambda x, n: lax.pbroadcast(x, n, 4), (2,)),
    "axis_index": (lambda x, n: x + lax.axis_index(n), ()),
    "pmean": (lambda x, n: lax.pmean(x, n), (2,)),
}


@pytest.mark.sample(16)
@pytest.mark.parametrize("traced, shape", list(TWO.values()), ids=list(TWO))
def test_two_axes_are_one(traced: Any, shape: tuple[int, ...]) -> None:
    x = np.sin(np.arange(6.0 * np.prod(shape)) * 2).reshape(6, *shape).astype(np.float32)

    def along_two(x: Any) -> Any:
        inner = xlamini.vmap(lambda v: traced(v, ("i", "j")), axis_name="j")
        out = over_i(inner)(x.reshape(2, 3, *shape))
        return out.reshape(6, *out.shape[2:])

    def along_one(x: Any) -> Any:
        return over_i(lambda v: traced(v, "i"))(x)

    assert_close(along_two(x), along_one(x), 1e-6)
    weights = np.cos(np.arange(along_one(x).size)).reshape(along_one(x).shape)
    gradient = lambda f: xlamini.grad(lambda x: (f(x) ** 2 * weights).sum())(x)
    assert_close(gradient(along_two), gradient(along_one), 1e-5)


def test_one_of_two_axes() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)

    def program(v: Any) -> Any:
        return lax.all_gather(v, "i"), lax.ppermute(v, "j", [(0, 1), (1, 2), (2, 0)]), lax.pbroadcast(v, "i", 1)

    gathered, sent, spread = over_i(xlamini.vmap(program, axis_name="j"))(x)
    assert_close(gathered, np.broadcast_to(x.T, (2, 3, 2)), 0)
    assert_close(sent, np.roll(x, 1, 1), 0)
    assert_close(spread, np.broadcast_to(x[1], (2, 3)), 0)


def test_the_inner_one_of_two_axes_of_one_name() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    found = over_i(over_i(lambda v: lax.all_gather(v, "i")))(x)
    assert_close(found, np.broadcast_to(x[:, None], (2, 3, 3)), 0)


def ring(v: Any) -> Any:
    """A value after three turns of a ring, in a loop."""
    def turn(carry: Any, _: Any) -> tuple[Any, Any]:
        new = lax.ppermute(carry, "i", SHIFT) * 1.5 + lax.pmean(v, "i")
        return new, lax.psum(new, "i")

    return lax.scan(turn, v, None, length=3)


def plain_ring(x: Any) -> Any:
    carry, ys = x, []
    for _ in range(3):
        carry = np.roll(carry, 1, 0) * 1.5 + x.mean(0)
        ys.append(np.broadcast_to(carry.sum(0), carry.shape))
    return carry, np.stack(ys, 1)


@pytest.mark.full
def test_in_a_loop() -> None:
    x = operands(ROWS["ppermute"])
    for found, expected in zip(xlamini.jit(over_i(ring))(x), plain_ring(x), strict=True):
        assert_close(found, expected, 1e-5)
    t = np.ones_like(x)
    tangent = xlamini.jvp(over_i(ring), (x,), (t,))[1][0]
    assert_close(tangent, plain_ring(t)[0], 1e-5)
    gradient = xlamini.grad(lambda x: (over_i(ring)(x)[0] * x).sum())(x)
    basis = np.eye(x.size, dtype=np.float32).reshape(-1, *x.shape)
    expected = plain_ring(x)[0] + np.stack([(plain_ring(e)[0] * x).sum() for e in basis]).reshape(x.shape)
    assert_close(gradient, expected, 1e-4)


def test_in_branches() -> None:
    def chosen(v: Any, up: Any) -> Any:
        return lax.cond(up, lambda v: lax.ppermute(v, "i", SHIFT), lambda v: lax.psum(v, "i"), v)

    x = operands(ROWS["ppermute"])
    for up, expected in ((True, np.roll(x, 1, 0)), (False, same_for_all(x.sum(0)))):
        assert_close(over_i(chosen, in_axes=(0, None))(x, up), expected, 1e-5)
    every = np.array([True, False, False, True])
    expected = np.where(every[:, None], np.roll(x, 1, 0), x.sum(0))
    assert_close(over_i(chosen)(x, every), expected, 1e-5)


def test_in_custom_rules_and_checkpoints() -> None:
    x = operands(ROWS["all_gather"])
    saved = xlamini.checkpoint(lambda v: (lax.all_gather(jnp.sin(v), "i") ** 2).sum())
    found = xlamini.grad(lambda x: over_i(saved)(x).sum())(x)
    assert_close(found, 2 * N * np.sin(x) * np.cos(x), 1e-5)


def test_printed() -> None:
    def texts(fun: Callable[[Any], Any], shape: tuple[int, ...]) -> str:
        jaxpr = xlamini.make_jaxpr(fun, axis_env=[("i", N)])(np.ones(shape, np.float32))
        return " ".join(str(jaxpr).split())

    assert (
        "b:f32[4,2] = all_gather[ all_gather_dimension=0 axis_index_groups=None axis_name=('i',) axis_size=4 "
        "tiled=False ] a"
    ) in texts(lambda x: lax.all_gather(x, "i"), (2,))
    assert (
        "c:f32[1,2,4] = all_to_all[ axis_index_groups=None axis_name=i concat_axis=2 split_axis=0 tiled=False ] b "
        "d:f32[2,4] = squeeze[dimensions=(0,)] c"
    ) in texts(lambda x: lax.all_to_all(x, "i", 0, 1), (4, 2))
    assert "ppermute[axis_name=('i',) perm=((0, 1),)] a" in texts(lambda x: lax.ppermute(x, "i", [(0, 1)]), ())
    assert "pbroadcast[axis_name=i source=1] a" in texts(lambda x: lax.pbroadcast(x, "i", 1), ())
    assert "psum[axes=('i',) axis_index_groups=None] a" in texts(lambda x: lax.psum(x, "i"), ())


def looped(x: Any) -> Any:
    """A loop that goes on until all positions are done, whose state varies though it does not start so."""
    def unfinished(state: Any) -> Any:
        return lax.pmax(state[1], "i") < 3

    return lax.while_loop(unfinished, lambda s: (s[0] + lax.axis_index("i"), s[1] + lax.pmin(x, "i")), (0, 0.0))[0]


def test_in_a_loop_whose_end_is_agreed_on() -> None:
    assert over_i(looped)(np.arange(1.0, 5.0)).tolist() == [0, 3, 6, 9]
    assert xlamini.jit(over_i(looped))(np.arange(2.0, 6.0)).tolist() == [0, 2, 4, 6]


def test_in_custom_derivatives() -> None:
    @xlamini.custom_vjp
    def squares(x: Any) -> Any:
        return lax.psum(x * x, "i")

    squares.defvjp(lambda x: (squares(x), x), lambda x, ct: (2 * x * lax.psum(ct, "i"),))
    x = np.arange(1.0, 5.0, dtype=np.float32)
    assert_close(over_i(xlamini.grad(squares))(x), 8 * x, 1e-6)
    assert_close(xlamini.grad(lambda x: over_i(squares)(x).sum())(x), 8 * x, 1e-6)


def test_in_roots_and_solves() -> None:
    def root(a: Any) -> Any:
        total = lambda: lax.psum(a * a, "i")
        return lax.custom_root(lambda x: x - total(), 1.0, lambda f, x: total(), lambda g, y: y / g(1.0))

    x = np.arange(1.0, 5.0, dtype=np.float32)
    assert_close(over_i(root)(x), np.full(N, (x * x).sum()), 1e-6)
    assert_close(over_i(xlamini.grad(root))(x), 8 * x, 1e-6)


def test_random_keys_are_sent() -> None:
    keys = xlamini.random.split(xlamini.random.key(0), N)
    sent = over_i(lambda key: lax.ppermute(key, "i", SHIFT))(keys)
    words = np.asarray(xlamini.random.key_data(keys))
    assert_close(xlamini.random.key_data(sent), np.roll(words, 1, 0), 0)
