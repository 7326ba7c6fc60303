"""`custom_vjp.defvjp_with_accums`: a backward rule that puts cotangents into accumulators."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, numpy as jnp, vmap
from xlamini.experimental.hijax import NullAccum, ValAccum

X = jnp.float32(2.0)
D = {"a": X + 1, "b": X}


def made(symbolic_zeros: bool, seen: list[Any]) -> Any:
    @xlamini.custom_vjp
    def f(x: Any, d: Any) -> Any:
        return x * d["a"], d["b"]

    def fwd(x: Any, d: Any) -> Any:
        value = lambda leaf: getattr(leaf, "value", leaf)
        x, d = xlamini.tree.map(value, (x, d), is_leaf=lambda leaf: hasattr(leaf, "value"))
        return f(x, d), (x, d)

    def bwd(res: Any, g: Any, x_acc: Any, d_acc: Any) -> Any:
        x, d = res
        seen.append(xlamini.tree.map(type, (x_acc, d_acc)))
        x_acc.accum(g[0] * d["a"])
        x_acc.accum(None)
        d_acc["a"].accum(g[0] * x / 2)
        d_acc["a"].accum(g[0] * x / 2)
        return {"dropped": g[0]}

    f.defvjp_with_accums(fwd, bwd, symbolic_zeros=symbolic_zeros)
    return f


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_cotangents_are_those_of_the_accumulators(wrap: Any) -> None:
    f = made(False, [])
    gradients = wrap(grad(lambda x, d: sum(f(x, d)), (0, 1)))(X, D)
    assert xlamini.tree.structure(gradients) == xlamini.tree.structure((X, D))
    np.testing.assert_array_equal(xlamini.tree.leaves(gradients), [3.0, 2.0, 0.0])
    xs = jnp.arange(3.0)
    np.testing.assert_array_equal(vmap(grad(lambda x: f(x, D)[0]))(xs), [3.0] * 3)
    np.testing.assert_array_equal(grad(lambda d: vmap(lambda x: f(x, d)[0])(xs).sum())(D)["a"], 3.0)


def test_what_is_not_differentiated_is_dropped() -> None:
    seen: list[Any] = []
    f = made(True, seen)
    np.testing.assert_array_equal(grad(lambda x: f(x, D)[0])(X), 3.0)
    assert seen[-1] == (ValAccum, {"a": NullAccum, "b": NullAccum})


def test_arguments_that_are_no_arrays() -> None:
    f = xlamini.custom_vjp(lambda k, x: x**k, nondiff_argnums=0)
    f.defvjp_with_accums(lambda k, x: (x**k, x), lambda k, x, ct, acc: acc.accum(10 * ct * k * x ** (k - 1)))
    np.testing.assert_array_equal(grad(lambda x: f(3, x))(X), 120.0)


def test_custom_gradient() -> None:
    @xlamini.custom_gradient(with_accums=ValAccum)
    def f(x: Any, d: Any) -> Any:
        def pull(ct: Any, x_acc: Any, d_acc: Any) -> None:
            x_acc.accum(10 * ct * d["a"])
            d_acc["a"].accum(ct * x)

        return x * d["a"], pull

    gradients = jit(grad(f, (0, 1)))(X, D)
    np.testing.assert_array_equal(xlamini.tree.leaves(gradients), [30.0, 2.0, 0.0])
