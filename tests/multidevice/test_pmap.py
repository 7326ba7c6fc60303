"""pmap beside vmap, which does the same on one device."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES
from xlamini import grad, jit, lax, numpy as jnp, pmap, vmap

X = np.linspace(-1, 2, 24).astype(np.float32).reshape(8, 3)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5, atol=1e-6)


PROGRAMS = {
    "alone": (lambda x: jnp.sin(x), {}, (X,)),
    "psum": (lambda x: x / lax.psum(x, "i"), {}, (X,)),
    "index": (lambda x: lax.axis_index("i") * lax.axis_size("i"), {}, (X,)),
    "whole": (lambda x, w: x @ w, {"in_axes": (0, None)}, (X, X[0])),
    "axis 1": (lambda x, y: x + y, {"in_axes": (1, 0), "out_axes": 1}, (X.T.copy(), X)),
    "from the end": (lambda x: x, {"in_axes": -1, "out_axes": -1}, (X.T.copy(),)),
    "out whole": (lambda x: lax.psum(x, "i"), {"out_axes": None}, (X,)),
    "tree": (lambda d: {"s": d["a"] * d["b"], "p": d["a"]}, {"in_axes": ({"a": 0, "b": None},)}, ({"a": X, "b": 2.0},)),
    "few": (lambda x: lax.pmean(x, "i"), {}, (X[:3],)),
    "ring": (lambda x: lax.ppermute(x, "i", [(i, (i + 1) % 8) for i in range(8)]), {}, (X,)),
    "vmap inside": (vmap(lambda x: lax.psum(x, "i")), {}, (X,)),
    "scan": (lambda x: lax.scan(lambda c, v: (c + lax.psum(v, "i"), c), 0.0, x)[1], {}, (X,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_vmap(name: str) -> None:
    f, axes, args = PROGRAMS[name]
    found = pmap(f, axis_name="i", **axes)(*args)
    xlamini.tree.map(near, found, vmap(f, axis_name="i", **axes)(*args))
    xlamini.tree.map(near, jit(pmap(f, axis_name="i", **axes))(*args), found)


def test_results_lie_on_the_devices() -> None:
    found = pmap(lambda x: 2 * x)(X[:4])
    assert [shard.device for shard in found.addressable_shards] == DEVICES[:4]
    assert [shard.data.shape for shard in found.addressable_shards] == [(1, 3)] * 4
    chosen = pmap(lambda x: 2 * x, devices=DEVICES[:3:-1])(X[:4])
    places = {s.device: s.index[0].start for s in chosen.addressable_shards}
    assert places == dict(zip(DEVICES[:3:-1], range(4), strict=True))
    again = pmap(lambda x: x + 1)(found)
    near(again, 2 * X[:4] + 1)


def test_static_and_keyword_arguments() -> None:
    f = pmap(lambda x, how, *, y: getattr(jnp, how)(x) + y, static_broadcasted_argnums=1)
    near(f(X, "sin", y=X), np.sin(X) + X)
    near(f(X, "cos", y=X), np.cos(X) + X)
    for axes in ((0, None), (0, 0), (0,)):
        near(pmap(lambda x, n: x * n, static_broadcasted_argnums=1, in_axes=axes)(X, 3), 3 * X)
    near(pmap(lambda n, x: x * n, static_broadcasted_argnums=(0,))(3, X), 3 * X)


def test_sizes() -> None:
    near(pmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=4)(), np.arange(4))
    near(pmap(lambda x: x, axis_size=8)(X), X)


@pytest.mark.full
def test_derivatives() -> None:
    """Those of JAX 0.10.2: inside, the cotangent of a psum is the sum of all devices' cotangents."""
    f = lambda x: lax.psum(jnp.sin(x), "i")
    near(pmap(grad(f), axis_name="i")(X[:, 0]), 8 * np.cos(X[:, 0]))
    near(vmap(grad(f), axis_name="i")(X[:, 0]), 8 * np.cos(X[:, 0]))
    g = lambda x: lax.psum(jnp.sin(x), "i") * x
    near(grad(lambda x: pmap(g, axis_name="i")(x).sum())(X), grad(lambda x: vmap(g, axis_name="i")(x).sum())(X))
    shared = lambda w: pmap(lambda x, w: jnp.sin(x * w), in_axes=(0, None))(X, w).sum()
    near(grad(shared)(2.0), (X * np.cos(2 * X)).sum())
    near(grad(grad(shared))(2.0), -(X**2 * np.sin(2 * X)).sum())
    near(vmap(pmap(jnp.sum))(np.stack([X, X])), np.stack([X, X]).sum(2))


def test_donation() -> None:
    x = pmap(lambda x: x)(X)
    near(pmap(lambda x: x + 1, donate_argnums=0)(x), X + 1)
    assert x.is_deleted()
