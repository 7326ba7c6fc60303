"""Branches and loops that a value decides on which differs by device, beside the same program for one device's part."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES
from xlamini import P, grad, jit, lax, numpy as jnp, shard_map, vmap
from xlamini.errors import ShardingTypeError
from xlamini.sharding import Mesh

MESH = Mesh(np.array(DEVICES[:2]), ("y",))
PARTS = np.array([[1, 2, 3], [-4, 1, 0.5]], np.float32)
W = np.array([0.3, -0.7, 1.1], np.float32)


def over_y(f: Any, outs: Any = P("y"), **options: Any) -> Any:
    return shard_map(f, mesh=MESH, in_specs=(P("y"), P()), out_specs=outs, **options)


def scanned(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, v: (jnp.tanh(c * v), c.sum() * v), x, w)[1].sum() + x


def positive(x: Any, w: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda: jnp.sin(x * w), lambda: jnp.cos(x + w) * w.sum())


def switched(x: Any, w: Any) -> Any:
    branches = [lambda w: x * w, lambda w: w**2 * x, jit(lambda w: scanned(x, w))]
    return lax.switch((x.sum() > 0).astype(int) * 2, branches, w)


def nested(x: Any, w: Any) -> Any:
    inner = lambda: lax.cond(x[0] > 0, lambda: w * 2 * x, lambda: x)
    return lax.cond(x.sum() > 0, inner, lambda: scanned(x, jnp.sin(w)))


def in_scan(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, v: (lax.cond(c.sum() > 0, lambda: c * v, lambda: c - v * w), v), x, w)[0]


def shared(x: Any, w: Any) -> Any:
    return x * lax.cond(x.sum() > 0, lambda: w, lambda: -2 * w)


def bounded(x: Any, w: Any) -> Any:
    return lax.while_loop(lambda c: jnp.abs(c).sum() > 1, lambda c: c * jnp.cos(w), x, max_steps=8)


PROGRAMS = [positive, switched, nested, in_scan, shared, bounded]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("check", [True, False], ids=["checked", "unchecked"])
def test_derivatives(program: Any, check: bool) -> None:
    """A sum over devices in the derivative of one branch would wait for the devices that chose another."""
    split = over_y(lambda x, w: program(x[0], w)[None], check_vma=check)

    def together(x: Any, w: Any) -> Any:
        return jnp.stack([program(part, w) for part in x])

    def second(f: Any) -> Any:
        first = grad(lambda x, w: jnp.sin(f(x, w)).sum(), (0, 1))
        return grad(lambda x, w: sum((g**2).sum() for g in first(x, w)), (0, 1))

    for derivative in (lambda f: grad(lambda x, w: jnp.sin(f(x, w)).sum(), (0, 1)), second):
        found, expected = jit(derivative(split))(PARTS, W), derivative(together)(PARTS, W)
        xlamini.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5), found, expected)


def test_results_differ_by_device() -> None:
    """A result of such a conditional or loop varies, even if all values that it is computed from are shared."""
    chosen = over_y(lambda x, w: lax.cond(x.sum() > 0, lambda: w, lambda: -w), P())
    counted = over_y(lambda x, w: lax.while_loop(lambda i: i < x[0, 0], lambda i: i + 1, 0.0), P())
    for f in (chosen, counted):
        with pytest.raises(ValueError, match=r"devices along 'y' have the same, but its type .* they may differ"):
            f(PARTS, W)
    stacked = over_y(lambda x, w: lax.cond(x.sum() > 0, lambda: w, lambda: -w))
    np.testing.assert_array_equal(stacked(PARTS, W), np.concatenate([W, -W]))
    counts = over_y(lambda x, w: lax.while_loop(lambda i: i < x[0, 0], lambda i: i + 1, 0.0)[None])
    np.testing.assert_array_equal(counts(PARTS + 1.5, W), [3, 0])


def test_collectives_that_some_devices_do_not_reach() -> None:
    """They would keep the others waiting, until XLA ends the process."""
    branch = over_y(lambda x, w: lax.cond(x.sum() > 0, lambda: lax.psum(x, "y"), lambda: x))
    called = over_y(lambda x, w: lax.cond(x.sum() > 0, jit(lambda: lax.all_gather(x, "y").sum(0)), lambda: x))
    loop = over_y(lambda x, w: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + lax.ppermute(c, "y", [(0, 1)]), x))
    for f in (branch, called, loop):
        with pytest.raises(ShardingTypeError, match=r"along 'y' in a branch or a loop .* lax.pmax"):
            f(PARTS, W)


def test_collectives_that_all_devices_reach() -> None:
    together = over_y(lambda x, w: lax.cond(lax.pmax(x.sum(), "y") > 0, lambda: lax.psum(w, "y"), lambda: w), P())
    np.testing.assert_allclose(together(PARTS, W), 2 * W)
    unchecked = over_y(
        lambda x, w: lax.cond(lax.pmax(x.sum(), "y") > 0, lambda: lax.psum(x, "y"), lambda: x), check_vma=False
    )
    np.testing.assert_allclose(unchecked(PARTS, W), np.tile(PARTS.sum(0), (2, 1)))


@pytest.mark.full
@pytest.mark.parametrize("program", [positive, shared], ids=lambda f: f.__name__)
def test_batches_of_derivatives(program: Any) -> None:
    """Under vmap over the index both branches run, and no device waits for another."""
    split = over_y(lambda x, w: program(x[0], w)[None])
    batch = np.stack([PARTS, PARTS[::-1], -PARTS])

    def together(x: Any, w: Any) -> Any:
        return jnp.stack([program(part, w) for part in x])

    def derivatives(f: Any) -> Any:
        first = grad(lambda x, w: jnp.sin(f(x, w)).sum(), (0, 1))
        second = grad(lambda x, w: sum((g**2).sum() for g in first(x, w)), (0, 1))
        return jit(vmap(lambda x: (first(x, W), second(x, W))))

    found, expected = derivatives(split)(batch), derivatives(together)(batch)
    xlamini.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-4), found, expected)
