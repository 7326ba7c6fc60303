"""custom_linear_solve beside numpy.linalg and finite differences, in every nesting, to the third derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.checks import assert_close
from xlamini import lax
from xlamini.core.program.jaxpr import subjaxprs

A = np.array([[4.0, 1.0, -0.5], [0.3, 3.0, 0.7], [-0.2, 0.4, 5.0]])
B = np.array([1.0, -2.0, 0.5])
DIRECTION = np.cos(np.arange(9.0)).reshape(3, 3)


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def jacobi(matvec: Callable[[Any], Any], b: Any) -> Any:
    """A solve that knows nothing but the map: fixed-point iteration, which no derivative may pass through."""
    def unfinished(state: Any) -> Any:
        return (state[1] > 1e-28) & (state[2] < 200)

    def step(state: Any) -> Any:
        x, _, count = state
        residual = b - matvec(x)
        return x + 0.2 * residual, (residual * residual).sum(), count + 1

    return lax.while_loop(unfinished, step, (jnp.zeros_like(b), jnp.asarray(1.0), 0))[0]


def solve(a: Any, b: Any, **options: Any) -> Any:
    return lax.custom_linear_solve(lambda x: a @ x, b, jacobi, jacobi, **options)


def solve_with_count(a: Any, b: Any) -> Any:
    """A solve with an integer beside its solution."""
    def counted(matvec: Any, b: Any) -> Any:
        return jacobi(matvec, b), {"steps": jnp.asarray(7), "squares": (b * b).sum()}

    return lax.custom_linear_solve(lambda x: a @ x, b, counted, counted, has_aux=True)


def difference(fun: Callable[..., Any], step: float = 1e-5) -> Any:
    return (np.asarray(fun(step)) - np.asarray(fun(-step))) / (2 * step)


@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit], ids=["eager", "jit"])
def test_values_and_first_derivatives(wrap: Any) -> None:
    assert_close(wrap(solve)(A, B), np.linalg.solve(A, B), 1e-12)
    _, tangent = wrap(lambda a, t: xlamini.jvp(solve, (a, B), (t, DIRECTION[0])))(A, DIRECTION)
    expected = difference(lambda h: np.linalg.solve(A + h * DIRECTION, B + h * DIRECTION[0]))
    assert_close(tangent, expected, 1e-8)
    weights = np.array([0.3, -1.0, 2.0])
    by_a, by_b = wrap(xlamini.grad(lambda a, b: solve(a, b) @ weights, (0, 1)))(A, B)
    adjoint = np.linalg.solve(A.T, weights)
    assert_close(by_b, adjoint, 1e-12)
    assert_close(by_a, -np.outer(adjoint, np.linalg.solve(A, B)), 1e-12)


def loss(a: Any, b: Any = B) -> Any:
    return (solve(a, b) ** 3).sum()


def plain_loss(a: Any, b: Any = B) -> Any:
    return (np.linalg.solve(a, b) ** 3).sum()


def along(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda a: (xlamini.grad(fun)(a) * DIRECTION).sum()


@pytest.mark.full
def test_second_and_third_derivatives() -> None:
    second = along(along(loss))
    expected = difference(lambda h: along(loss)(A + h * DIRECTION))
    assert_close(second(A), expected, 1e-7)
    assert_close(xlamini.jit(second)(A), expected, 1e-7)
    by_numpy = difference(lambda h: difference(lambda k: plain_loss(A + (h + k) * DIRECTION), 1e-4), 1e-4)
    assert_close(second(A), by_numpy, 1e-5)
    assert_close(along(second)(A), difference(lambda h: second(A + h * DIRECTION)), 1e-6)
    hvp_forward = xlamini.jvp(xlamini.grad(loss), (A,), (DIRECTION,))[1]
    hvp_reverse = xlamini.grad(lambda a: xlamini.jvp(loss, (a,), (DIRECTION,))[1])(A)
    assert_close(hvp_forward, hvp_reverse, 1e-9)
    twice = xlamini.jvp(lambda a: xlamini.jvp(loss, (a,), (DIRECTION,))[1], (A,), (DIRECTION,))[1]
    assert_close(twice, second(A), 1e-9)


@pytest.mark.full
@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)], ids=["a", "b", "both"])
def test_batched(in_axes: Any) -> None:
    many_a, many_b = A + 0.1 * np.arange(4.0)[:, None, None], B + np.arange(4.0)[:, None]
    args = (many_a if in_axes[0] == 0 else A, many_b if in_axes[1] == 0 else B)
    pick = lambda i: tuple(x if d is None else x[i] for x, d in zip(args, in_axes, strict=True))
    expected = np.stack([np.linalg.solve(*pick(i)) for i in range(4)])
    assert_close(xlamini.vmap(solve, in_axes)(*args), expected, 1e-11)
    gradient = xlamini.grad(loss, (0, 1))
    mapped = xlamini.jit(xlamini.vmap(gradient, in_axes))(*args)
    for found, rows in zip(mapped, zip(*[gradient(*pick(i)) for i in range(4)], strict=True), strict=True):
        assert_close(found, np.stack(rows), 1e-10)
    summed = xlamini.grad(lambda *args: xlamini.vmap(loss, in_axes)(*args).sum(), (0, 1))(*args)
    for found, each, d in zip(summed, mapped, in_axes, strict=True):
        assert_close(found, each if d == 0 else each.sum(0), 1e-10)


def test_a_matrix_of_right_hand_sides_is_a_map_over_them() -> None:
    sides = np.cos(np.arange(6.0)).reshape(3, 2)
    found = xlamini.vmap(lambda b: solve(A, b), in_axes=1, out_axes=1)(sides)
    assert_close(found, np.linalg.solve(A, sides), 1e-11)


def test_trees() -> None:
    def apply(x: Any) -> Any:
        return {"u": 2 * x["u"] + x["v"][0], "v": (x["u"].sum() + 5 * x["v"][0],)}

    def direct(matvec: Any, b: Any) -> Any:
        total = (b["u"].sum() - 3 * b["v"][0] / 5) / (2 - 3 / 5)
        v = (b["v"][0] - total) / 5
        return {"u": (b["u"] - v) / 2, "v": (v,)}

    b = {"u": np.array([1.0, 2.0, 3.0]), "v": (np.asarray(4.0),)}
    x = lax.custom_linear_solve(apply, b, direct, symmetric=True)
    for found, due in zip(xlamini.tree.leaves(apply(x)), xlamini.tree.leaves(b), strict=True):
        assert_close(found, due, 1e-12)
    gradient = xlamini.grad(lambda b: lax.custom_linear_solve(apply, b, direct, symmetric=True)["v"][0])(b)
    assert_close(gradient["v"][0], direct(None, {"u": np.zeros(3), "v": (1.0,)})["v"][0], 1e-12)


def test_symmetric() -> None:
    a = A + A.T
    found = xlamini.grad(lambda b: lax.custom_linear_solve(lambda x: a @ x / 2, b, jacobi, symmetric=True)[0])(B)
    assert_close(found, np.linalg.solve(a / 2, [1.0, 0.0, 0.0]), 1e-11)


@pytest.mark.full
def test_what_comes_with_the_solution() -> None:
    x, aux = solve_with_count(A, B)
    assert_close(x, np.linalg.solve(A, B), 1e-12)
    assert aux["steps"] == 7
    assert_close(aux["squares"], B @ B, 1e-12)
    gradient = xlamini.grad(lambda a, b: (solve_with_count(a, b)[0] ** 3).sum(), (0, 1))
    for found, expected in zip(gradient(A, B), xlamini.grad(loss, (0, 1))(A, B), strict=True):
        assert_close(found, expected, 1e-11)
    assert_close(xlamini.grad(lambda b: solve_with_count(A, b)[1]["squares"])(B), np.zeros(3), 0)
    mapped, aux = xlamini.vmap(solve_with_count, (None, 0))(A, np.stack([B, 2 * B]))
    assert_close(mapped[1], 2 * np.linalg.solve(A, B), 1e-11)
    assert_close(aux["squares"], np.array([B @ B, 4 * B @ B]), 1e-12)
    assert aux["steps"].tolist() == [7, 7]


def test_forward_mode_needs_no_transpose() -> None:
    one_way = lambda a: lax.custom_linear_solve(lambda x: a @ x, B, jacobi)
    along_a = lambda fun: xlamini.jvp(fun, (A,), (DIRECTION,))[1]
    assert_close(along_a(one_way), along_a(lambda a: solve(a, B)), 1e-12)
    with pytest.raises(TypeError, match="reverse mode needs a solve of the transposed system; pass transpose_solve="):
        xlamini.grad(lambda a: one_way(a).sum())(A)


def test_linear_transpose() -> None:
    (found,) = xlamini.linear_transpose(lambda b: solve(A, b), B)(B)
    assert_close(found, np.linalg.solve(A.T, B), 1e-11)


@pytest.mark.full
def test_in_control_flow() -> None:
    def step(carry: Any, b: Any) -> Any:
        x = solve(carry[1] * A, b + carry[0])
        return (x, carry[1] * 1.1), x.sum()

    def total(scale: Any) -> Any:
        return lax.scan(step, (jnp.zeros(3), scale), np.stack([B, -B, 2 * B]))[1].sum()

    def plain(scale: float) -> Any:
        x, found = np.zeros(3), 0.0
        for b in (B, -B, 2 * B):
            x, scale = np.linalg.solve(scale * A, b + x), scale * 1.1
            found += x.sum()
        return found

    assert_close(total(1.3), plain(1.3), 1e-11)
    assert_close(xlamini.grad(total)(1.3), difference(lambda h: plain(1.3 + h)), 1e-8)
    chosen = lambda p, a: lax.cond(p, lambda a: solve(a, B), lambda a: a[0], a)
    by_a = xlamini.grad(lambda a, p: (chosen(p, a) ** 3).sum())
    gradients = xlamini.vmap(by_a, (None, 0))(A, np.array([True, False]))
    assert_close(gradients[0], xlamini.grad(loss)(A), 1e-10)
    saved = xlamini.checkpoint(loss)
    assert_close(xlamini.jit(xlamini.grad(saved))(A), xlamini.grad(loss)(A), 1e-10)


def test_numbers_of_no_strong_type() -> None:
    two = jnp.asarray(np.float64(2))
    found = lax.custom_linear_solve(lambda x: two * x, 1.0, lambda f, b: b / two, symmetric=True)
    assert found == 0.5 and not found.weak_type
    assert lax.custom_linear_solve(lambda x: 2 * x, 4.0, lambda f, b: b / 2, symmetric=True).weak_type
    assert lax.custom_linear_solve(lambda x: 2.0 * x, jnp.arange(3), lambda f, b: b / 2).tolist() == [0.0, 0.5, 1.0]
    assert lax.custom_linear_solve(lambda x: x, jnp.arange(2), lambda f, b: b).tolist() == [0, 1]


@pytest.mark.full
def test_python_s_own_loops_on_values() -> None:
    def newton_like(matvec: Any, b: Any) -> Any:
        x = 0 * b
        while float(((b - matvec(x)) ** 2).sum()) > 1e-24:
            x = x + 0.2 * (b - matvec(x))
        return x

    assert_close(lax.custom_linear_solve(lambda x: A @ x, jnp.asarray(B), newton_like), np.linalg.solve(A, B), 1e-11)


def test_what_is_not_used_goes() -> None:
    jaxpr = xlamini.make_jaxpr(lambda b: solve_with_count(A, b)[0])(B)
    (solves,) = [e for e in jaxpr.eqns if e.primitive.name == "custom_linear_solve"]
    assert [len(inner.outvars) for inner in subjaxprs(solves)] == [1, 1, 3, 1]
    text = xlamini.jit(lambda b: solve_with_count(A, b)[0]).lower(B).as_text()
    assert text.count("stablehlo.while") == 1 and "dense<7>" not in text


def test_printed() -> None:
    text = str(xlamini.make_jaxpr(lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, lambda f, b: a.T @ b))(A, B))
    assert "const_lengths=LinearSolveTuple(matvec=1, vecmat=0, solve=1, transpose_solve=0)" in text
    assert "transpose_solve=None" in text and "vecmat=None" in text


def test_leaves_of_which_some_change() -> None:
    def apply(x: Any) -> Any:
        return {"n": x["n"], "u": 2 * x["u"] + x["v"], "v": 3 * x["v"]}

    def direct(_: Any, b: Any) -> Any:
        return {"n": b["n"], "u": (b["u"] - b["v"] / 3) / 2, "v": b["v"] / 3}

    def transposed(_: Any, b: Any) -> Any:
        return {"n": b["n"], "u": b["u"] / 2, "v": (b["v"] - b["u"] / 2) / 3}

    def first(u: Any, v: Any) -> Any:
        b = {"n": jnp.asarray(3), "u": u, "v": v}
        return lax.custom_linear_solve(apply, b, direct, transposed)["u"]

    assert_close(xlamini.grad(first)(1.0, 2.0), 1 / 2, 1e-12)
    assert_close(xlamini.grad(first, 1)(1.0, 2.0), -1 / 6, 1e-12)
    assert_close(xlamini.jvp(first, (1.0, 2.0), (1.0, 1.0))[1], 1 / 3, 1e-12)
    assert_close(xlamini.vmap(xlamini.grad(first, 1))(np.ones(2), np.ones(2)), np.full(2, -1 / 6), 1e-12)
