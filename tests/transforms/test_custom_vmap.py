"""custom_vmap and sequential_vmap: what rules are given, all nestings, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.custom_batching import custom_vmap, sequential_vmap
from xlamini.test_util import check_grads

grad, jit, jvp, vmap = xlamini.grad, xlamini.jit, xlamini.jvp, xlamini.vmap

Calls = list[Any]


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5, atol=1e-6)


def with_rule(fun: Callable[..., Any], rule: Callable[..., Any]) -> Any:
    found = custom_vmap(fun)
    found.def_vmap(rule)
    return found


def noted(fun: Callable[..., Any] = lambda x, y: x * y) -> tuple[Any, Calls]:
    """A function of two arrays whose rule notes how it was called, and adds 100 to what a map would give."""
    calls: Calls = []

    def rule(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
        calls.append((axis_size, in_batched, x.shape, y.shape))
        axes = [0 if b else None for b in in_batched]
        return vmap(fun, in_axes=axes, axis_size=axis_size)(x, y) + 100, True

    return with_rule(fun, rule), calls


def test_the_rule_gets_batched_axes_first() -> None:
    f, calls = noted()
    close(vmap(f, (1, None), 1)(jnp.ones((2, 3)), 2 * jnp.ones(2)), np.full((2, 3), 102.0))
    assert calls == [(3, [True, False], (3, 2), (2,))]


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["", "jit"])
def test_it_is_used_in_every_nesting(wrap: Any) -> None:
    f, _ = noted()
    x, y = jnp.arange(3.0), jnp.arange(2.0)
    close(wrap(vmap(wrap(f), (0, None)))(x, 2.0), np.arange(3) * 2 + 100)
    close(wrap(vmap(vmap(wrap(f), (0, None)), (None, 0)))(x, y), np.outer(y, x) + 100)
    close(vmap(wrap(lambda x: lax.scan(lambda c, _: (f(c, 2.0), None), x, None, length=2)[0]))(x), x * 4 + 300)
    close(vmap(lambda x: lax.cond(True, lambda: f(x, 2.0), lambda: x))(x), x * 2 + 100)
    close(vmap(lambda x: lax.fori_loop(0, 2, lambda i, c: f(c, 2.0), x))(x), x * 4 + 300)
    close(vmap(xlamini.checkpoint(lambda x: f(x, 2.0)))(x), x * 2 + 100)


def test_a_rule_that_calls_the_function_is_called_for_each_axis() -> None:
    sizes = []

    def rule(axis_size: int, in_batched: Any, x: Any) -> Any:
        sizes.append((axis_size, x.shape))
        return f(x), True

    f = with_rule(lambda x: x.sum(axis=-1, keepdims=True) * x, rule)
    vmap(vmap(f))(jnp.ones((2, 3, 4)))
    assert sizes == [(3, (3, 4)), (2, (2, 3, 4))]


def test_outputs_that_are_not_batched_and_pytrees() -> None:
    def rule(axis_size: int, in_batched: Any, tree: Any, n: Any) -> Any:
        assert in_batched == [{"a": True, "b": [False]}, False]
        return {"s": tree["a"] * n, "t": tree["b"][0]}, {"s": True, "t": False}

    f = with_rule(lambda tree, n: {"s": tree["a"] * n, "t": tree["b"][0]}, rule)
    axes = ({"a": 0, "b": [None]}, None)
    out = vmap(f, axes, out_axes={"s": 0, "t": None})({"a": jnp.arange(3.0), "b": [7.0]}, 2)
    close(out["s"], [0, 2, 4])
    assert float(out["t"]) == 7.0


def test_keywords_and_eager_calls() -> None:
    f, calls = noted()
    assert f(2.0, y=3.0) == 6.0 and calls == []
    close(vmap(lambda x: f(y=x, x=2.0))(jnp.arange(3.0)), np.arange(3) * 2 + 100)


# --- derivatives


def test_forward_mode_keeps_the_rule() -> None:
    cube = lambda x, y: x**3 * y
    f, calls = noted(cube)
    x, t = jnp.arange(3.0), jnp.array([1.0, 2.0, 3.0])
    slope = 3 * np.arange(3.0) ** 2 * 2.0 * np.asarray(t)
    out, found = vmap(lambda x, t: jvp(lambda x: f(x, 2.0), (x,), (t,)))(x, t)
    close(out, np.arange(3.0) ** 3 * 2 + 100)
    close(found, slope)
    assert calls == [(3, [True, False], (3,), ())]
    out, found = vmap(lambda t: jvp(lambda x: f(x, 2.0), (2.0,), (t,)))(t)
    close(out, [116.0] * 3)
    close(found, 24 * np.asarray(t))
    second = lambda x, t: jvp(lambda x: jvp(lambda x: f(x, 2.0), (x,), (1.0,))[1], (x,), (t,))[1]
    close(vmap(second)(x, t), 12 * np.arange(3.0) * np.asarray(t))
    close(jvp(lambda x: vmap(f, (0, None))(x, 2.0), (x,), (t,))[1], slope)


@pytest.mark.full
def test_reverse_mode_is_that_of_the_function_or_of_the_rule() -> None:
    f, _ = noted(lambda x, y: jnp.sin(x) * y)
    x = jnp.arange(3.0)
    close(vmap(grad(f), (0, None))(x, 2.0), 2 * np.cos(np.arange(3.0)))
    close(grad(lambda x: vmap(f, (0, None))(x, 2.0).sum())(x), 2 * np.cos(np.arange(3.0)))
    close(vmap(xlamini.hessian(f), (0, None))(x, 2.0), -2 * np.sin(np.arange(3.0)))
    with xlamini.enable_x64(True):
        check_grads(f, (0.4, 2.0), order=3)
        check_grads(lambda x: vmap(jit(f), (0, None))(x, 2.0).sum(), (jnp.arange(3.0),), order=2)
    twice = with_rule(lambda x: 2 * x, lambda n, b, x: (2 * x, True))
    close(xlamini.linear_transpose(lambda x: twice(x) + x, 1.0)(1.0)[0], 3.0)


def test_integers_and_derivatives() -> None:
    f = with_rule(lambda x, n: (x * n, n + 1), lambda size, b, x, n: ((x * n, n + 1), (True, b[1])))
    push = lambda x, n: jvp(lambda x: f(x, n), (x,), (1.0,))
    out, slopes = vmap(push, (0, None), ((0, None), 0))(jnp.arange(3.0), 4)
    close(out[0], [0, 4, 8])
    assert int(out[1]) == 5
    close(slopes[0], [4.0] * 3)


# --- closures


@pytest.mark.full
def test_what_is_closed_over_may_be_traced_but_not_mapped() -> None:
    table = jnp.array([1.0, 2.0, 3.0])

    def program(a: Any, x: Any) -> Any:
        f = with_rule(lambda x: (x * a * table).sum(), lambda n, b, x: ((x[:, None] * a * table).sum(1) + 100, True))
        return f(x)

    x = jnp.arange(3.0)
    for wrap in (lambda g: g, jit):
        close(wrap(vmap(wrap(program), (None, 0)))(2.0, x), np.arange(3) * 12 + 100)
        close(wrap(lambda a: vmap(lambda x: program(a, x))(x))(2.0), np.arange(3) * 12 + 100)
    close(grad(lambda a: vmap(program, (None, 0))(a, x).sum())(2.0), 18.0)
    close(vmap(lambda x: jvp(lambda x: program(2.0, x), (x,), (1.0,))[1])(x), [12.0] * 3)
    close(vmap(lambda x: jvp(program, (2.0, x), (1.0, 0.0))[1])(x), 6 * np.arange(3.0))


def test_values_captured_by_a_derivative() -> None:
    table = jnp.array([1.0, 2.0])
    scaled = xlamini.custom_jvp(lambda x: x * 1.0)
    scaled.defjvp(lambda p, t: (p[0] * 1.0, (t[0] * table).sum()))
    f = with_rule(lambda x: scaled(x), lambda n, b, x: (vmap(scaled)(x) + 100, True))
    out, slopes = vmap(lambda x: jvp(f, (x,), (x,)))(jnp.arange(3.0))
    close(out, np.arange(3) + 100)
    close(slopes, 3 * np.arange(3.0))


# --- sequential_vmap


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["", "jit"])
def test_sequential(wrap: Any) -> None:
    def fun(tree: Any, y: Any) -> Any:
        return {"out": jnp.sin(tree["x"]) * y}

    f = sequential_vmap(fun)
    xs, ys = jnp.arange(6.0).reshape(2, 3), jnp.arange(2.0)
    for axes in ((0, 0), (0, None), (None, 0)):
        args = {"x": xs}, (ys if axes[1] == 0 else 2.0)
        close(wrap(vmap(f, axes))(*args)["out"], vmap(fun, axes)(*args)["out"])
    nested = lambda g: vmap(vmap(g, (0, None)), (0, 0))
    close(wrap(nested(f))({"x": xs}, ys)["out"], nested(fun)({"x": xs}, ys)["out"])
    total = lambda g: lambda xs: vmap(g, (0, None))({"x": xs}, 2.0)["out"].sum()
    close(wrap(grad(total(f)))(xs), grad(total(fun))(xs))
    close(wrap(vmap(grad(lambda x: f({"x": x}, 2.0)["out"])))(ys), 2 * np.cos(np.arange(2.0)))


def test_sequential_is_a_loop() -> None:
    jaxpr = xlamini.make_jaxpr(vmap(sequential_vmap(lambda x, y: x + y), (0, None)))(jnp.ones(3), 1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["scan"]
    assert "custom_vmap_call" in str(jaxpr)


def test_programs_print_like_jax_but_for_the_rule(snapshot: Any) -> None:
    f, _ = noted()
    snapshot("jaxpr_custom_vmap", str(xlamini.make_jaxpr(f)(1.0, 2.0)))
