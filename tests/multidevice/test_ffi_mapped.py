"""FFI calls on several devices: whole arrays in a program of all devices, shards in shard_map."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import MESH, split, table
from tests.support.ffi_library import library, needs_compiler
from xlamini import P, ShapeDtypeStruct, effects_barrier, jit, shard_map
from xlamini.experimental.buffer_callback import buffer_callback
from xlamini.ffi import ffi_call

pytestmark = [needs_compiler, pytest.mark.full]
EPS = np.float32(0.25)


@pytest.fixture(autouse=True)
def handlers() -> Any:
    return library()


def rms(x: Any, **options: Any) -> Any:
    return ffi_call("test_rms", ShapeDtypeStruct(x.shape, x.dtype), **options)(x, eps=EPS, mode="rms")


def close(found: Any, x: Any) -> None:
    np.testing.assert_allclose(found, x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS), rtol=1e-6)


def test_a_program_of_all_devices_passes_whole_arrays() -> None:
    x = table(8, 4)
    auto = xlamini.make_mesh((8,), ("x",), axis_types=(xlamini.sharding.AxisType.Auto,))
    for spec in (P("x"), P()):
        close(jit(rms)(xlamini.device_put(x, xlamini.NamedSharding(auto, spec))), x)


def test_shard_map_passes_shards() -> None:
    x = table(8, 4)
    f = shard_map(rms, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    for run in (f, jit(f)):
        found = run(split(x, "x"))
        close(found, x)
        assert found.sharding.spec == P("x")
    rows_of_two = shard_map(rms, mesh=MESH, in_specs=P(None, ("x",)), out_specs=P(None, ("x",)))
    close(np.asarray(jit(rows_of_two)(split(x, None, "x"))).reshape(8, 2, 2), x.reshape(8, 2, 2))


def test_side_effects_happen_on_every_device(handlers: Any) -> None:
    handlers.take_noted()
    note = ffi_call("test_note", (), has_side_effect=True)
    f = shard_map(lambda x: (note(x + 1), x)[1], mesh=MESH, in_specs=P(), out_specs=P())
    jit(f)(np.zeros(1, np.float32)).block_until_ready()
    effects_barrier()
    assert handlers.take_noted() == 11111111


def test_side_effects_need_a_shard_map() -> None:
    f = jit(functools.partial(rms, has_side_effect=True))
    auto = xlamini.make_mesh((8,), ("x",), axis_types=(xlamini.sharding.AxisType.Auto,))
    with pytest.raises(NotImplementedError, match=r"ffi_call: test_rms has side effects, .*; call it in shard_map"):
        f(xlamini.device_put(table(8, 4), xlamini.NamedSharding(auto, P("x"))))


def test_buffer_callbacks_are_of_one_device() -> None:
    f = buffer_callback(lambda ctx, out, x: None, ShapeDtypeStruct((4, 4), "float32"))
    with pytest.raises(NotImplementedError, match="a program on several devices cannot call it; use pure_callback"):
        jit(shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x")))(split(table(8, 4), "x"))
