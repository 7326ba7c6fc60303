"""custom_root beside closed forms and finite differences, in every nesting, to the third derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.checks import assert_close
from xlamini import lax


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def bisection(f: Callable[[Any], Any], guess: Any) -> Any:
    """The root of an increasing function between 0 and 10; no derivative passes through it."""
    def halved(_: Any, ends: Any) -> Any:
        low, high = ends
        middle = (low + high) / 2
        above = f(middle) > 0
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    low, high = lax.fori_loop(0, 60, halved, (jnp.zeros_like(guess), jnp.full_like(guess, 10.0)))
    return (low + high) / 2


def scalar(g: Callable[[Any], Any], y: Any) -> Any:
    return y / g(jnp.ones_like(y))


def cube_root(a: Any) -> Any:
    return lax.custom_root(lambda x: x**3 - a, 1.0 + 0 * a, bisection, scalar)


def plain_root(a: Any, order: int = 0) -> Any:
    """The cube root of a number, and its derivatives."""
    factors = [1.0, 1 / 3, -2 / 9, 10 / 27]
    return factors[order] * a ** (1 / 3 - order)


def derivative(fun: Callable[[Any], Any], order: int) -> Callable[[Any], Any]:
    for _ in range(order):
        fun = xlamini.grad(fun)
    return fun


@pytest.mark.parametrize("order", range(4))
def test_scalar(order: int) -> None:
    fun = derivative(cube_root, order)
    assert_close(fun(5.0), plain_root(5.0, order), 1e-10)
    assert_close(xlamini.jit(fun)(5.0), plain_root(5.0, order), 1e-10)
    many = np.array([1.0, 2.0, 30.0])
    assert_close(xlamini.jit(xlamini.vmap(fun))(many), plain_root(many, order), 1e-10)
    assert_close(derivative(lambda a: xlamini.vmap(cube_root)(a * many).sum(), order)(1.0),
                 (plain_root(many, order) * many**order).sum(), 1e-9)  # fmt: skip


@pytest.mark.full
def test_forward_mode() -> None:
    def tangent(a: Any) -> Any:
        return xlamini.jvp(cube_root, (a,), (1.0,))[1]

    assert_close(tangent(5.0), plain_root(5.0, 1), 1e-11)
    assert_close(xlamini.jvp(tangent, (5.0,), (1.0,))[1], plain_root(5.0, 2), 1e-11)
    assert_close(xlamini.grad(tangent)(5.0), plain_root(5.0, 2), 1e-11)
    assert_close(xlamini.jvp(xlamini.grad(cube_root), (5.0,), (1.0,))[1], plain_root(5.0, 2), 1e-11)
    assert_close(xlamini.linearize(cube_root, 5.0)[1](2.0), 2 * plain_root(5.0, 1), 1e-11)


A = np.array([[3.0, 0.5], [-0.4, 2.0]])
P = np.array([1.0, -0.5])
STEPS = 60


def system(a: Any, p: Any, x: Any) -> Any:
    sin = jnp.sin if not isinstance(x, np.ndarray) else np.sin
    return a @ x + 0.3 * sin(x) - p


def newton(f: Callable[[Any], Any], x: Any) -> Any:
    """Simplified Newton steps, by the function alone."""
    return lax.fori_loop(0, STEPS, lambda _, x: x - 0.3 * f(x), x)


def dense(g: Callable[[Any], Any], y: Any) -> Any:
    """The linear system as a matrix, solved by a method that has a transpose."""
    def by_steps(matvec: Any, b: Any) -> Any:
        return lax.fori_loop(0, 2 * STEPS, lambda _, x: x + 0.3 * (b - matvec(x)), jnp.zeros_like(b))

    return lax.custom_linear_solve(g, y, by_steps, by_steps)


def root(a: Any, p: Any) -> Any:
    return lax.custom_root(lambda x: system(a, p, x), jnp.zeros(2), newton, dense)


def plain(a: Any, p: Any) -> Any:
    x = np.zeros(2)
    for _ in range(300):
        x = x - 0.3 * system(a, p, x)
    return x


def slope(fun: Callable[[Any], Any], x: Any, t: Any, step: float = 1e-5) -> Any:
    return (np.asarray(fun(x + step * t)) - np.asarray(fun(x - step * t))) / (2 * step)


DIRECTION = np.array([[0.5, -1.0], [0.7, 0.2]])


@pytest.mark.full
def test_system() -> None:
    assert_close(root(A, P), plain(A, P), 1e-9)
    _, tangent = xlamini.jit(lambda a: xlamini.jvp(lambda a: root(a, P), (a,), (DIRECTION,)))(A)
    assert_close(tangent, slope(lambda a: plain(a, P), A, DIRECTION), 1e-7)
    by_a, by_p = xlamini.grad(lambda a, p: (root(a, p) ** 2).sum(), (0, 1))(A, P)
    assert_close((by_a * DIRECTION).sum(), slope(lambda a: (plain(a, P) ** 2).sum(), A, DIRECTION), 1e-7)
    assert_close(by_p @ P, slope(lambda p: (plain(A, p) ** 2).sum(), P, P), 1e-7)


@pytest.mark.full
def test_higher_derivatives_of_the_system() -> None:
    def along(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda a: (xlamini.grad(fun)(a) * DIRECTION).sum()

    def loss(a: Any) -> Any:
        return (root(a, P) ** 3).sum()

    second = along(along(loss))
    assert_close(xlamini.jit(second)(A), slope(along(loss), A, DIRECTION), 1e-6)
    assert_close(along(second)(A), slope(second, A, DIRECTION), 1e-5)
    assert_close(xlamini.jvp(along(loss), (A,), (DIRECTION,))[1], second(A), 1e-8)


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)], ids=["a", "p", "both"])
def test_batched(in_axes: Any) -> None:
    args = (A + 0.1 * np.arange(3.0)[:, None, None], P + np.arange(3.0)[:, None])
    args = tuple(x if d == 0 else x[0] for x, d in zip(args, in_axes, strict=True))
    pick = lambda i: tuple(x if d is None else x[i] for x, d in zip(args, in_axes, strict=True))
    assert_close(xlamini.vmap(root, in_axes)(*args), np.stack([plain(*pick(i)) for i in range(3)]), 1e-8)
    gradient = xlamini.grad(lambda a, p: (root(a, p) ** 2).sum(), (0, 1))
    mapped = xlamini.jit(xlamini.vmap(gradient, in_axes))(*args)
    for found, rows in zip(mapped, zip(*[gradient(*pick(i)) for i in range(3)], strict=True), strict=True):
        assert_close(found, np.stack(rows), 1e-9)


def test_the_guess_may_be_batched_alone() -> None:
    found = xlamini.vmap(lambda x: lax.custom_root(lambda x: system(A, P, x), x, newton, dense))(np.zeros((3, 2)))
    assert_close(found, np.stack([plain(A, P)] * 3), 1e-9)


def test_the_guess_has_no_derivative() -> None:
    guessed = lambda x: lax.custom_root(lambda x: x**3 - 2.0, x, bisection, scalar)
    assert xlamini.grad(guessed)(1.0) == 0.0


def test_trees_and_what_comes_with_the_root() -> None:
    def found(a: Any) -> Any:
        def f(x: Any) -> Any:
            return {"u": x["u"] ** 2 - a["u"], "v": [x["v"][0] - a["v"] * x["u"]]}

        def direct(f: Any, guess: Any) -> Any:
            u = jnp.sqrt(a["u"])
            return {"u": u, "v": [a["v"] * u]}, {"steps": 3, "guess": guess["u"]}

        def tangent(g: Any, y: Any) -> Any:
            diagonal = g({"u": jnp.ones(()), "v": [jnp.zeros(())]})
            u = y["u"] / diagonal["u"]
            return {"u": u, "v": [y["v"][0] - diagonal["v"][0] * u]}

        return lax.custom_root(f, {"u": 1.0, "v": [1.0]}, direct, tangent, has_aux=True)

    a = {"u": np.asarray(4.0), "v": np.asarray(3.0)}
    x, aux = found(a)
    assert (x["u"], x["v"][0], aux["steps"], aux["guess"]) == (2.0, 6.0, 3, 1.0)
    gradient = xlamini.grad(lambda a: found(a)[0]["v"][0])(a)
    assert_close(gradient["u"], 3 / (2 * 2.0), 1e-12)
    assert_close(gradient["v"], 2.0, 1e-12)
    assert xlamini.grad(lambda a: found(a)[1]["guess"] * 1.0)(a)["u"] == 0.0


@pytest.mark.full
def test_in_control_flow() -> None:
    def step(carry: Any, a: Any) -> Any:
        new = cube_root(carry * a)
        return new, new

    def total(x: Any) -> Any:
        return lax.scan(step, x, np.array([2.0, 3.0, 5.0]))[1].sum()

    def plain_total(x: float) -> float:
        found = 0.0
        for a in (2.0, 3.0, 5.0):
            x = (x * a) ** (1 / 3)
            found += x
        return found

    assert_close(total(1.5), plain_total(1.5), 1e-10)
    assert_close(xlamini.grad(total)(1.5), slope(plain_total, 1.5, 1.0), 1e-8)
    chosen = xlamini.vmap(xlamini.grad(lambda a, p: lax.cond(p, cube_root, jnp.sin, a)))
    found = chosen(np.array([2.0, 2.0]), np.array([True, False]))
    assert_close(found, np.array([plain_root(2.0, 1), np.cos(2.0)]), 1e-10)
    saved = xlamini.grad(xlamini.checkpoint(lambda a: cube_root(a) ** 2))(2.0)
    assert_close(saved, 2 / 3 * 2.0 ** (-1 / 3), 1e-10)


@pytest.mark.full
def test_a_root_in_a_root() -> None:
    def outer(a: Any) -> Any:
        return lax.custom_root(lambda x: cube_root(x) - a, 1.0 + 0 * a, bisection, scalar)

    assert_close(outer(1.7), 1.7**3, 1e-9)
    assert_close(xlamini.grad(outer)(1.7), 3 * 1.7**2, 1e-8)
    assert_close(xlamini.grad(xlamini.grad(outer))(1.7), 6 * 1.7, 1e-7)


def test_python_s_own_loops_on_values() -> None:
    def by_hand(f: Any, x: Any) -> Any:
        while abs(float(f(x))) > 1e-12:
            x = x - f(x) / 12.0
        return x

    def found(a: Any) -> Any:
        return lax.custom_root(lambda x: x**3 - a, jnp.asarray(2.0), by_hand, scalar)

    assert_close(found(5.0), 5.0 ** (1 / 3), 1e-11)
    assert_close(xlamini.grad(found)(5.0), plain_root(5.0, 1), 1e-10)


def test_printed() -> None:
    text = str(xlamini.make_jaxpr(cube_root)(2.0))
    assert "const_lengths=RootTuple(f=1, solve=1, tangent_solve=" in text and "custom_root[" in text
