"""Exported functions of any sizes whose values are sharded: called, differentiated, in files, with rows that remain."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import table
from tests.multidevice.test_export_sharded import FOUR, again, exported, typed
from xlamini import P, ShapeDtypeStruct, export, lax, numpy as jnp
from xlamini.errors import InconclusiveDimensionOperation, ShardingError
from xlamini.sharding import AbstractMesh, AxisType, NamedSharding

ROW = AbstractMesh((8,), ("r",), AxisType.Auto)
LINE = xlamini.make_mesh((8,), ("r",), (AxisType.Auto,))


def any_rows(*constraints: str, of: str = "b") -> ShapeDtypeStruct:
    """The type of an array with any number of rows, which are split."""
    return typed("r", mesh=ROW, shape=(*export.symbolic_shape(of, constraints=constraints), 3))


def rows(count: int, mesh: Any = LINE, spec: Any = "r") -> Any:
    return xlamini.device_put(np.sin(table(count, 3)), NamedSharding(mesh, P(spec)))


def centred(x: Any) -> Any:
    y = lax.with_sharding_constraint(jnp.tanh(x), NamedSharding(ROW, P("r")))
    return y - y.mean(0)


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu", "cpu")])
@pytest.mark.parametrize("constraints", [(), ("mod(b, 8) == 0",)])
def test_any_number_of_rows(constraints: tuple[str, ...], platforms: Any) -> None:
    made = exported(centred, any_rows(*constraints), platforms=platforms, out_shardings=NamedSharding(ROW, P("r")))
    for found in (made, again(made, 1)):
        assert (found.nr_devices, str(found.in_shardings_hlo)) == (8, "({devices=[8,1]<=[8]},)")
        for count in (8, 24):
            x = rows(count)
            y = np.tanh(np.asarray(x))
            out = found.call(x)
            np.testing.assert_allclose(out, y - y.mean(0), rtol=1e-5, atol=1e-6)
            assert out.sharding == NamedSharding(LINE, P("r")) and out.addressable_shards[0].data.shape[0] == count // 8
            slope = xlamini.vjp(found.call, x)[1](2 * out)[0]
            np.testing.assert_allclose(slope, 2 * (y - y.mean(0)) * (1 - y**2), rtol=1e-4, atol=1e-5)
            assert slope.sharding == NamedSharding(LINE, P("r"))


def test_each_device_runs_its_rows() -> None:
    mapped = xlamini.shard_map(lambda x: lax.psum(jnp.sum(x), "r"), mesh=ROW, in_specs=P("r"), out_specs=P())
    found = again(exported(mapped, any_rows("mod(b, 8) == 0")))
    for count in (8, 16):
        np.testing.assert_allclose(found.call(rows(count)), np.sin(table(count, 3)).sum(), rtol=1e-5, atol=1e-5)


def test_rows_that_cannot_be_split() -> None:
    found = again(exported(jnp.cos, any_rows()))
    said = (
        r"x\.shape\[0\] is b = 10, which cannot be split into 8 parts along the mesh axis 'r'; pass a multiple of 8\. "
        r"symbolic_shape\(\.\.\., constraints=\['mod\(b, 8\) == 0'\]\) promises that"
    )
    for call in (found.call, xlamini.jit(found.call)):
        with pytest.raises(ShardingError, match=said):
            call(rows(10, spec=None))
    with pytest.raises(ShardingError, match=r"'x' of cos: .* has size 8\*b \+ 1, which cannot be split into the 8"):
        exported(jnp.cos, any_rows(of="8*b + 1"))
    with pytest.raises(ValueError, match="was exported for 8 devices, but is called on 1"):
        found.call(np.ones((8, 3), np.float32))
    with pytest.raises(ValueError, match="was exported for 8 devices, but is called on 4"):
        found.call(rows(8, FOUR, "a"))


def test_sharded_functions_in_each_other() -> None:
    inner = exported(lambda x: jnp.sin(x) * 2, any_rows())
    outer = again(exported(lambda x: inner.call(x) + 1, any_rows("mod(b, 8) == 0")))
    out = outer.call(rows(16))
    np.testing.assert_allclose(out, 2 * np.sin(np.sin(table(16, 3))) + 1, rtol=1e-5)
    assert out.sharding == NamedSharding(LINE, P("r"))


def test_types_with_explicit_axes() -> None:
    explicit = xlamini.make_mesh((8,), ("r",), (AxisType.Explicit,))
    b, c = export.symbolic_shape("b, c", constraints=["mod(b, 8) == 0"])
    found = exported(lambda x: jnp.sin(x) * 2, typed("r", mesh=explicit, shape=(b, 3)))
    assert found.out_avals[0].str_short() == "f32[b@r,3]"
    out = found.call(rows(16, explicit))
    assert out.aval.str_short() == "f32[16@r,3]"
    np.testing.assert_allclose(out, 2 * np.sin(np.sin(table(16, 3))), rtol=1e-5)
    with pytest.raises(InconclusiveDimensionOperation, match=r"constraints=\['mod\(c, 8\) == 0'\]"):
        exported(jnp.sin, typed("r", mesh=explicit, shape=(c, 3)))
