"""Primitives made by name on several devices: inside shard_map, and on arrays with explicit shardings."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, extend, grad, jit, lax, numpy as jnp
from xlamini.sharding import AxisType

X = np.arange(16, dtype=np.float32).reshape(8, 2)


@pytest.fixture
def scaled() -> Any:
    """Multiplies by numbers that it captures; with a rule of sharding."""
    p, factors = extend.Primitive("scaled"), jnp.array([2.0, 3.0])
    extend.shape_rule[p] = lambda x: extend.ShapedArray(x.shape, x.dtype)
    extend.expand_rule[p] = lambda x: x * factors
    extend.jvp_rule[p] = lambda primals, tangents: (p.bind(*primals), p.bind(*tangents))
    extend.transpose_rule[p] = lambda ct, x: (p.bind(ct),)
    extend.sharding_rule[p] = lambda avals, outs: extend.alike(avals, outs)
    return p.bind


def test_inside_shard_map(scaled: Any) -> None:
    mesh = xlamini.make_mesh((4,), ("x",))

    def total(x: Any) -> Any:
        return lax.psum((scaled(x) ** 2).sum(), "x")

    f = xlamini.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())
    np.testing.assert_allclose(jit(f)(X), ((X * [2, 3]) ** 2).sum(), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(f))(X), 2 * X * [4, 9], rtol=1e-6)


def test_with_explicit_shardings(scaled: Any) -> None:
    mesh = xlamini.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
    x = xlamini.device_put(X, xlamini.NamedSharding(mesh, P("x")))
    out = jit(scaled)(x)
    np.testing.assert_allclose(out, X * [2, 3])
    assert out.sharding.spec == P("x", None)
    np.testing.assert_allclose(jit(grad(lambda x: (scaled(x) ** 2).sum()))(x), 2 * X * [4, 9], rtol=1e-6)


def test_without_a_sharding_rule_the_compiler_decides_and_a_warning_says_so() -> None:
    p = extend.Primitive("plain")
    extend.shape_rule[p] = lambda x: extend.ShapedArray(x.shape, x.dtype)
    extend.expand_rule[p] = lambda x: x * 2
    mesh = xlamini.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
    x = xlamini.device_put(X, xlamini.NamedSharding(mesh, P("x")))
    with pytest.warns(UserWarning, match="plain of f32.*: dimension 0 of .* must be whole here"):
        out = jit(p.bind)(x)
    np.testing.assert_allclose(out, 2 * X)
