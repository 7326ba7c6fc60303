"""Interpreters that users write over jaxprs, as in JAX's tutorial on them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import core, lax, numpy as jnp


def f(x: Any) -> Any:
    return jnp.exp(jnp.tanh(x))


def run(jaxpr: Any, consts: Any, *args: Any) -> list[Any]:
    """An interpreter that binds each primitive."""
    env: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if type(atom) is core.Literal else env[atom]

    for eqn in jaxpr.eqns:
        outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    return list(map(read, jaxpr.outvars))


def inverse(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The inverse of a chain of unary operations: the equations backwards."""
    inverses = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh}

    def inverted(y: Any) -> Any:
        jaxpr = xlamini.make_jaxpr(fun)(y).jaxpr
        env = dict(zip(jaxpr.outvars, [y], strict=True))
        for eqn in reversed(jaxpr.eqns):
            env[eqn.invars[0]] = inverses[eqn.primitive](env[eqn.outvars[0]])
        return env[jaxpr.invars[0]]

    return inverted


def test_an_interpreter_over_equations() -> None:
    x = jnp.arange(3.0)
    closed = xlamini.make_jaxpr(lambda x: f(x) @ jnp.ones(3) + jnp.asarray(np.arange(3.0, dtype=np.float32)))(x)
    expected = np.exp(np.tanh(np.arange(3.0))).sum() + np.arange(3)
    for evaluate in (run, core.eval_jaxpr):
        np.testing.assert_allclose(evaluate(closed.jaxpr, closed.literals, x)[0], expected, rtol=1e-6)
        jitted = xlamini.jit(evaluate, static_argnums=0)
        np.testing.assert_allclose(jitted(closed.jaxpr, closed.consts, x)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(core.jaxpr_as_fun(closed)(x)[0], expected, rtol=1e-6)


def test_an_interpreter_that_inverts_composes_with_transformations() -> None:
    """The numbers are JAX's."""
    np.testing.assert_allclose(inverse(f)(f(1.0)), 1.0, rtol=1e-5)
    assert [e.primitive.name for e in xlamini.make_jaxpr(inverse(f))(f(1.0)).eqns] == ["log", "atanh"]
    slopes = xlamini.jit(xlamini.vmap(xlamini.grad(inverse(f))))((jnp.arange(5) + 1.0) / 5.0)
    np.testing.assert_allclose(slopes, [-3.1440797, 15.584931, 2.2551253, 1.3155028, 1.0], rtol=1e-5)


def test_derivatives_of_an_evaluated_jaxpr() -> None:
    closed = xlamini.make_jaxpr(lambda x, y: (jnp.sin(x) * y, y))(1.0, 2.0)
    slope = xlamini.grad(lambda x: core.eval_jaxpr(closed.jaxpr, closed.consts, x, 2.0)[0])(0.5)
    np.testing.assert_allclose(slope, 2 * np.cos(0.5), rtol=1e-6)
    out = xlamini.vmap(core.jaxpr_as_fun(closed))(jnp.arange(2.0), jnp.ones(2))
    np.testing.assert_allclose(out[0], np.sin(np.arange(2.0)), rtol=1e-6)


def test_constant_outputs_are_arrays() -> None:
    closed = xlamini.make_jaxpr(lambda x: (1.0, x))(2.0)
    one, x = core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    assert isinstance(one, xlamini.Array) and float(one) == 1 and x == 3


def test_a_wrong_number_of_values() -> None:
    closed = xlamini.make_jaxpr(lambda x, y: x + y)(1.0, 2.0)
    with pytest.raises(TypeError, match="takes 0 consts and 2 arguments, but got 0 and 1"):
        core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0)


def test_operands_of_other_types_leave_nothing_behind() -> None:
    """Equations that were traced for a weak type are not those of a strong one, nor of another shape."""
    closed = xlamini.make_jaxpr(lambda x: lax.sinh(x) * x)(1.0)
    evaluate = core.jaxpr_as_fun(closed)
    strong = xlamini.vmap(evaluate)(jnp.arange(2.0))[0]
    weak = xlamini.vmap(lax.sinh)(lax.full((2,), 1.0))
    assert (strong.weak_type, weak.weak_type) == (False, True)
    longer = xlamini.jit(lambda x: evaluate(x)[0])(jnp.arange(3.0))
    np.testing.assert_allclose(longer, np.sinh(np.arange(3.0)) * np.arange(3.0), rtol=1e-6)
