"""Custom rules read Python's state at the call, where the program is differentiated, as in JAX; what they are given."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, lax, numpy as jnp, vmap

STATE: dict[str, Any] = {}


def with_vjp(x: Any) -> Any:
    """k x, where k is read from Python's state."""
    scaled = xlamini.custom_vjp(lambda x: x * STATE["k"])
    scaled.defvjp(lambda x: (x * STATE["k"], STATE["k"]), lambda k, ct: (ct * k,))
    return scaled(x)


def with_jvp(x: Any) -> Any:
    """The same with a rule for forward mode."""
    scaled = xlamini.custom_jvp(lambda x: x * STATE["k"])
    scaled.defjvp(lambda primals, tangents: (primals[0] * STATE["k"], tangents[0] * STATE["k"]))
    return scaled(x)


BOTH = pytest.mark.parametrize("scaled", [with_vjp, with_jvp])


def twice(scaled: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        STATE["k"] = 2.0
        y = scaled(x)
        STATE["k"] = 10.0
        return y + scaled(x)

    return program


@BOTH
def test_state_that_changes_after_the_call(scaled: Callable[[Any], Any]) -> None:
    program = twice(scaled)
    for gradient in (grad(program), jit(grad(program)), lambda x: xlamini.vjp(program, x)[1](1.0)[0]):
        assert float(gradient(1.0)) == 12.0  # as JAX gives
    assert vmap(grad(program))(jnp.ones(2)).tolist() == [12.0, 12.0]
    assert float(grad(lambda x: grad(lambda x: program(x) ** 2)(x))(1.0)) == 288.0


@BOTH
def test_state_that_is_the_result_of_the_call(scaled: Callable[[Any], Any]) -> None:
    def program(x: Any) -> Any:
        STATE["k"] = 3.0
        STATE["k"] = scaled(x)
        return STATE["k"] * 2

    assert float(grad(program)(1.0)) == float(jit(grad(program))(1.0)) == 6.0


@BOTH
def test_an_early_rule_closes_over_values_of_the_program(scaled: Callable[[Any], Any]) -> None:
    def program(x: Any, w: Any) -> Any:
        STATE["k"] = lax.stop_gradient(jnp.sin(x)) * w
        return scaled(x) + scaled(3.0)

    for wrap in (lambda f: f, jit):
        np.testing.assert_allclose(wrap(grad(program))(0.5, 2.0), 2 * np.sin(0.5), rtol=1e-6)


def test_no_rule_is_traced_where_nothing_is_differentiated() -> None:
    traced = []

    def fwd(x: Any) -> Any:
        traced.append(x)
        return x, None

    f = xlamini.custom_vjp(lambda x: x)
    f.defvjp(fwd, lambda _, ct: (ct,))
    assert float(grad(lambda x: x * f(2.0) * f(jnp.arange(3)).sum())(1.0)) == 6.0 and traced == []
    assert float(grad(lambda x: f(x) * f(2.0))(1.0)) == 2.0 and len(traced) == 1


# --- what rules are given


def test_a_strongly_typed_cotangent_of_a_weakly_typed_call() -> None:
    made = xlamini.custom_vjp(jnp.sin)
    made.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    with xlamini.enable_checks(True):
        gradient = grad(lambda x: made(x) * np.float32(2))(0.3)
    assert float(gradient) == pytest.approx(2 * np.cos(0.3))


def test_rules_that_hold_a_tracer_in_a_slot() -> None:
    class Held:
        __slots__ = ("empty", "s")

        def __init__(self, s: Any):
            self.s = s

    def made(held: Held, x: Any) -> Any:
        f = xlamini.custom_vjp(lambda x: x * held.s)
        f.defvjp(lambda x: (x * held.s, x), lambda x, ct: (ct * held.s * x,))
        return f(x)

    mapped = lambda x: vmap(lambda s, x: made(Held(s), x))(jnp.arange(3.0), jnp.ones(3) * x).sum()
    assert float(grad(mapped)(2.0)) == float(grad(jit(mapped))(2.0)) == 6.0


def test_a_rule_is_not_run_where_no_tangent_reaches_it() -> None:
    @xlamini.custom_jvp
    def f(x: Any) -> Any:
        return x

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        raise RuntimeError("it has no derivative")

    x = jnp.linspace(0.5, 1.0, 3)
    gradient = grad(lambda x: (x * jnp.sin(f(lax.stop_gradient(x)))).sum())
    np.testing.assert_allclose(gradient(x), jnp.sin(x), rtol=1e-6)
    np.testing.assert_allclose(jit(gradient)(x), jnp.sin(x), rtol=1e-6)
    with pytest.raises(RuntimeError, match="it has no derivative"):
        grad(lambda x: f(x).sum())(x)


@pytest.mark.parametrize("kind", [xlamini.custom_jvp, xlamini.custom_vjp])
def test_a_keyword_only_argument_may_have_its_default(kind: Any) -> None:
    @kind
    def scaled(x: Any, *, scale: float = 3.0) -> Any:
        return x * scale

    if kind is xlamini.custom_jvp:
        scaled.defjvp(lambda primals, tangents: (scaled(*primals), 5 * tangents[0]))
    else:
        scaled.defvjp(lambda x: (scaled(x), None), lambda _, ct: (5 * ct,))
    assert (float(scaled(2.0)), float(xlamini.grad(scaled)(2.0)), float(xlamini.jit(scaled)(2.0))) == (6, 5, 6)
    with pytest.raises(TypeError, match="keyword-only argument 'scale'"):
        scaled(2.0, scale=1.0)
