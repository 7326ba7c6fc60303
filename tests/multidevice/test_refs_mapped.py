"""Refs in shard_map and pmap: made inside, used from outside, passed as arguments."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import table
from xlamini import NamedSharding, P, grad, jit, lax, new_ref, numpy as jnp, pmap, shard_map

LINE = xlamini.make_mesh((8,), ("x",), axis_types=xlamini.sharding.AxisType.Auto)
X = table(16)


def on_line(f: Any, in_specs: Any = P("x"), out_specs: Any = P("x")) -> Any:
    return shard_map(f, mesh=LINE, in_specs=in_specs, out_specs=out_specs)


def spread() -> Any:
    return xlamini.device_put(X, NamedSharding(LINE, P("x")))


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def ring(x: Any) -> Any:
    return lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)])


def test_refs_made_inside() -> None:
    def summed(x: Any) -> Any:
        total = new_ref(jnp.zeros(2))

        def step(c: Any, _: Any) -> Any:
            total[...] += ring(c)
            return c, None

        lax.scan(step, x, None, length=3)
        total[1] = lax.axis_index("x")
        return total[...]

    expected = (3 * np.roll(X, 2)).reshape(8, 2)
    expected[:, 1] = range(8)
    same(jit(on_line(summed))(X), expected.reshape(-1))
    same(pmap(summed, axis_name="x")(X.reshape(8, 2)), expected)
    same(grad(lambda x: on_line(lambda p: new_ref(p * p)[...])(x).sum())(X), 2 * X)


def test_refs_from_outside_are_read_and_not_written() -> None:
    scale = new_ref(jnp.float32(3))
    times = on_line(lambda x: x * scale[...])
    for run in (times, jit(times), lambda x: pmap(lambda p: p * scale[...])(x.reshape(8, 2)).reshape(-1)):
        scale[...] = 3.0
        same(run(X), 3 * X)
        scale[...] = 4.0
        same(run(X), 4 * X)

    def write(x: Any) -> Any:
        scale[...] = lax.psum(x.sum(), "x")
        return x

    for run in (on_line(write), lambda x: pmap(write, axis_name="x")(x.reshape(8, 2))):
        with pytest.raises(TypeError, match=r"a ref of type float32\[\], made outside of write.*return the new one"):
            run(X)


@pytest.mark.parametrize("around", [lambda f: f, jit])
def test_refs_as_arguments_are_split(around: Any) -> None:
    def step(parts: Any, y: Any) -> Any:
        parts["a"][...] = parts["a"][...] * 2 + y
        return parts["a"][...].sum()[None]

    ref = new_ref(spread())
    found = around(on_line(step, ({"a": P("x")}, P())))({"a": ref}, 1.0)
    same(found, (2 * X + 1).reshape(8, 2).sum(1))
    same(ref[...], 2 * X + 1)
    assert ref[...].sharding.spec == P("x")
    same(around(on_line(step, (P(), P()), P()))({"a": ref}, 0.0), [2 * (2 * X + 1).sum()])
    same(ref[...], 4 * X + 2)


def test_refs_as_arguments_in_a_loop() -> None:
    ref = new_ref(spread())

    def step(part: Any, y: Any) -> Any:
        part[...] += y
        return part[...]

    each = on_line(step, (P("x"), P()))
    last, _ = jit(lambda: lax.scan(lambda c, _: (each(ref, c).sum(), None), 1.0, None, length=2))()
    assert last == (X + 1 + (X + 1).sum()).sum()
    same(ref[...], X + 1 + (X + 1).sum())


def test_refs_as_arguments_that_are_refused() -> None:
    def vary(part: Any) -> Any:
        part[...] = lax.axis_index("x") * part[...]

    ref = new_ref(spread())
    with pytest.raises(ValueError, match=r"says that they may differ"):
        on_line(vary, (P(),), None)(ref)
    with pytest.raises(ValueError, match=r"shard_map: only one reference .* the same ref is passed twice"):
        on_line(lambda a, b: None, (P(), P()), None)(ref, ref)
    with pytest.raises(TypeError, match=r"pmap: an argument is a ref; pass its value, as ref\[...\]"):
        pmap(lambda r: r[...])(ref)
