"""debug.breakpoint and linear_call in programs on several devices."""
from __future__ import annotations

import io
from typing import Any

import numpy as np

import xlamini
from tests.multidevice.meshes import table
from xlamini import NamedSharding, P, debug, jit, numpy as jnp, shard_map
from xlamini.custom_derivatives import linear_call

LINE = xlamini.make_mesh((4,), ("x",))
SPLIT = NamedSharding(LINE, P("x"))


def stopped(f: Any, x: Any) -> list[str]:
    """What the prompts show of `x`, in order of the text."""
    streams = {"stdin": io.StringIO("p x\nc\n" * 8), "stdout": io.StringIO()}
    np.testing.assert_array_equal(jit(f(streams))(x), 2 * x)
    xlamini.effects_barrier()
    return sorted(part.strip() for part in streams["stdout"].getvalue().split("(xdb) ") if part.startswith("Array"))


def test_each_device_stops_in_mapped_code() -> None:
    def plain(streams: Any) -> Any:
        def f(x: Any) -> Any:
            debug.breakpoint(**streams)
            return 2 * x

        return shard_map(f, mesh=LINE, in_specs=P("x"), out_specs=P("x"))

    def with_token(streams: Any) -> Any:
        def f(x: Any) -> Any:
            return 2 * debug.breakpoint(token=x, **streams)

        return shard_map(f, mesh=LINE, in_specs=P("x"), out_specs=P("x"))

    shards = [f"Array([{i}.], dtype=float32)" for i in range(4)]
    assert stopped(plain, jnp.arange(4.0)) == stopped(with_token, jnp.arange(4.0)) == shards


def test_a_program_over_a_mesh_stops_once_and_a_token_keeps_its_sharding() -> None:
    types: list[str] = []

    def with_token(streams: Any) -> Any:
        def f(x: Any) -> Any:
            token = debug.breakpoint(token=x, **streams)
            types.append(str(xlamini.typeof(token)))
            return 2 * token

        return f

    x = xlamini.device_put(jnp.arange(4.0), SPLIT)
    assert stopped(with_token, x) == ["Array([0., 1., 2., 3.], dtype=float32)"] and types == ["float32[4@x]"]


def test_linear_call_keeps_shardings_in_types() -> None:
    def f(x: Any) -> Any:
        return linear_call(lambda r, x: x.T / r, lambda r, ct: ct.T / r, 2.0, x)

    value = table(4, 2)
    x = xlamini.device_put(value, NamedSharding(LINE, P("x", None)))
    out, slope = jit(f)(x), jit(xlamini.grad(lambda x: (f(x) ** 2).sum()))(x)
    np.testing.assert_allclose(out, value.T / 2)
    np.testing.assert_allclose(slope, value / 2)
    assert (str(xlamini.typeof(out)), str(xlamini.typeof(slope))) == ("float32[2,4@x]", "float32[4@x,2]")
    mapped = shard_map(lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x), mesh=LINE,
                       in_specs=P("x"), out_specs=P("x"))  # fmt: skip
    np.testing.assert_allclose(jit(xlamini.grad(lambda x: (mapped(x) ** 2).sum()))(jnp.arange(4.0)), np.arange(4) / 2)
