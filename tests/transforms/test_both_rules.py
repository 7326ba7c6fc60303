"""custom_vjp functions that have a rule for forward mode too."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp

grad, jit, vmap, jvp = xlamini.grad, xlamini.jit, xlamini.vmap, xlamini.jvp


@pytest.mark.parametrize("second", [3.0, "x"])
def test_a_function_with_both_rules_can_be_linearized(second: Any) -> None:
    """The linear map is applied by the rule for forward mode, and transposed by that for reverse mode."""

    def plain(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y, 2 * y

    both = xlamini.custom_vjp(plain)
    both.defvjp(lambda x, y: (plain(x, y), (x, y)), lambda kept, cts: (7 * cts[0], cts[0] + 2 * cts[1]))
    both.defjvp(lambda primals, tangents: jvp(plain, primals, tangents))

    def of(fun: Any) -> Any:
        return lambda x: fun(x, x if second == "x" else second)

    x, t = jnp.arange(3.0), jnp.array([1.0, -2.0, 0.5])
    wanted = jvp(of(plain), (x,), (t,))[1]
    for found in (
        xlamini.linearize(of(both), x)[1](t),
        jit(lambda x: xlamini.linearize(of(both), x)[1](t))(x),
        vmap(lambda x, t: xlamini.linearize(of(both), x)[1](t))(x, t),
        xlamini.linearize(vmap(of(both)), x)[1](t),
    ):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    shared = vmap(lambda x: xlamini.linearize(of(both), x)[1](jnp.float32(2.0))[0])(x)
    np.testing.assert_allclose(shared, jvp(of(plain), (x,), (2 + 0 * x,))[1][0], rtol=1e-6)
    one = xlamini.linearize(of(both), jnp.float32(0.5))[1]
    np.testing.assert_allclose(vmap(one)(t)[0], jvp(of(plain), (0.5 + 0 * t,), (t,))[1][0], rtol=1e-6)
    assert grad(lambda x: of(both)(x)[0])(0.5) == (8 if second == "x" else 7)


def test_the_linear_map_has_derivatives() -> None:
    """In what it is applied to and in the point of linearization, in both modes."""

    def plain(x: Any) -> Any:
        return jnp.sin(x) * x

    both = xlamini.custom_vjp(plain)
    both.defvjp(lambda x: (plain(x), x), lambda x, ct: ((jnp.cos(x) * x + jnp.sin(x)) * ct,))
    both.defjvp(lambda primals, tangents: jvp(plain, primals, tangents))
    x, t = jnp.arange(3.0), jnp.array([1.0, -2.0, 0.5])

    def all_of(fun: Any) -> list[Any]:
        linear = xlamini.linearize(fun, x)[1]
        return [
            xlamini.jacfwd(xlamini.jacfwd(lambda s: fun(x * s)))(1.5),
            xlamini.jacrev(xlamini.jacfwd(lambda s: fun(x * s)))(1.5),
            grad(lambda x: xlamini.linearize(fun, x)[1](x).sum())(x),
            jvp(linear, (t,), (x,))[1],
            grad(lambda t: jnp.sin(linear(t)).sum())(t),
            xlamini.linearize(lambda x: xlamini.linearize(fun, x)[1](x), x)[1](t),
            vmap(grad(lambda x: xlamini.linearize(fun, x)[1](x)))(x),
            xlamini.hessian(lambda x: xlamini.linearize(fun, x)[1](x).sum())(x),
        ]

    for found, wanted in zip(all_of(both), all_of(plain), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
