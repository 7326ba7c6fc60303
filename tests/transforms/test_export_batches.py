"""Exported functions under vmap: a loop over the examples."""
from __future__ import annotations

import numpy as np

import xlamini
from tests.transforms.test_export import X, again, close, exported
from xlamini import numpy as jnp, random


def test_vmap_is_a_loop_over_the_examples() -> None:
    found = exported(lambda x, y: {"s": jnp.tanh(x) * y, "n": x.shape[0]}, X[0], 2.0)
    call = xlamini.vmap(found.call, in_axes=(1, None), out_axes={"s": 1, "n": 0})
    close(call(X.T, 3.0), {"s": np.tanh(X.T) * 3, "n": np.array([3, 3])})
    jaxpr = str(xlamini.make_jaxpr(call)(X.T, 3.0))
    assert "scan[" in jaxpr and "call_exported[" in jaxpr
    close(call(X.T[:, :0], 3.0), {"s": np.zeros((3, 0), np.float32), "n": np.zeros(0, np.int32)})
    twice = xlamini.vmap(xlamini.vmap(exported(jnp.sin, 1.0).call))
    close(twice(X), np.sin(X))


def test_derivatives_of_batches() -> None:
    found = again(exported(lambda x, n: jnp.sum(jnp.tanh(x) * n), X[0], 2), 2)
    wanted = (1 - np.tanh(X) ** 2) * 2
    of_one = xlamini.grad(found.call)
    np.testing.assert_allclose(xlamini.vmap(of_one, (0, None))(X, 2), wanted, rtol=1e-5)
    of_all = xlamini.grad(lambda x: xlamini.vmap(found.call, (0, None))(x, 2).sum())
    np.testing.assert_allclose(of_all(X), wanted, rtol=1e-5)
    second = xlamini.vmap(xlamini.grad(lambda x: of_one(x, 2).sum()))(X)
    np.testing.assert_allclose(second, -2 * np.tanh(X) * wanted, rtol=1e-4)


def test_batches_of_keys() -> None:
    found = exported(lambda k: random.normal(k, (2,)), random.key(0))
    keys = random.split(random.key(1), 3)
    close(xlamini.vmap(found.call)(keys), xlamini.vmap(lambda k: random.normal(k, (2,)))(keys))
