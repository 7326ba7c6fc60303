"""Bad shardings, and arrays on devices that they do not belong to. See tests/support/error_rows.py."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES, HALF, MESH, REVERSED, over, split
from tests.support.error_rows import Row, check, ones, parameters, row
from xlamini import NamedSharding, P, debug, device_put, errors, grad, jit, lax, make_mesh, random, sharding
from xlamini.errors import ShardingError

from_callback, from_arrays = xlamini.make_array_from_callback, xlamini.make_array_from_single_device_arrays
from_local = xlamini.make_array_from_process_local_data
PARTS = [device_put(ones(2, 2), d) for d in DEVICES]
BACKWARDS = NamedSharding(REVERSED, P("x"))


def same(x: Any, *rest: Any) -> Any:
    return x


def in_mesh(program: Any) -> Any:
    with xlamini.set_mesh(MESH):
        return program()


SHARDINGS = [
    row("unknown axis", lambda: NamedSharding(MESH, P("z")), ShardingError, "names the axis 'z'", "'x' of size 2"),
    row("twice", lambda: NamedSharding(MESH, P("x", "x")), ShardingError, "names the axis 'x' twice"),
    row("abstract names", lambda: sharding.AbstractMesh((2, 4), ("x",)), ValueError, "2 axes have the names ('x',)"),
    row("no spec", lambda: NamedSharding(MESH, "x"), TypeError, "spec must be a PartitionSpec, got 'x'"),
    row("few devices", lambda: make_mesh((4, 4), ("x", "y")), ValueError, "needs 16 devices, but there are 8", "=16"),
    row("no devices", lambda: make_mesh((-1, 4), ("x", "y")), ValueError, "each axis needs a size of 1 or more"),
    row("names", lambda: make_mesh((2, 4), ("x",)), ValueError, "2 axes have the names ('x',)"),
    row("equal names", lambda: make_mesh((2, 4), ("x", "x")), ValueError, "has a name twice"),
    row("a device twice", lambda: sharding.Mesh([DEVICES[0]] * 2, ("x",)), ValueError, "a device is there twice"),
    row("one device", lambda: sharding.make_single_device_sharding("cpu"), TypeError, "must be a device, got 'cpu'"),
]

PUTTING = [
    row(
        "uneven", lambda: device_put(np.ones((5, 8)), over("x")), ShardingError,
        "dimension 0 of an array of shape (5, 8) has size 5", "the 2 parts that P('x',) asks for", "pad it to 6",
    ),
    row("moved", lambda: device_put(split(np.ones((6, 8))), over("y")), ShardingError, "has size 6", "pad it to 8"),
    row("rank", lambda: device_put(np.ones(8), over("x", "y")), ShardingError, "speaks of 2 dimensions", "shape (8,)"),
    row("scalar", lambda: device_put(1.0, over("x")), ShardingError, "but the array has 0, of shape ()"),
    row("keys", lambda: device_put(random.split(random.key(0), 8), over("x", "y")), ShardingError, "of shape (8,)"),
    row("spec", lambda: device_put(ones(4), P("x")), ValueError, "device has P('x',), which names no mesh", "set_mesh"),
    row("spec's axis", lambda: in_mesh(lambda: device_put(ones(4), P("z"))), ShardingError, "names the axis 'z'"),
    row("tree", lambda: device_put({"a": 1, "b": 2}, {"a": over()}), ValueError, "device_put: ", "'b'"),
    row("reshard", lambda: xlamini.reshard(ones(4), 3), TypeError, "reshard: out_shardings must be shardings, got 3"),
    row("reshard spec", lambda: xlamini.reshard(ones(4), P("x")), ValueError, "reshard: out_shardings has P('x',)"),
    row("reshard uneven", lambda: xlamini.reshard({"a": ones(3)}, over("x")), ShardingError, "shape (3,) has size 3"),
    row("set_mesh", lambda: xlamini.set_mesh(3), TypeError, "set_mesh: mesh must be a Mesh, got 3"),
    row("traced", lambda: jit(lambda x: xlamini.set_mesh(MESH) and x)(1.0), ValueError, "in a traced function"),
    row("abstract", lambda: sharding.use_abstract_mesh(MESH), TypeError, "an AbstractMesh", "mesh.abstract_mesh"),
]

PROGRAMS = [
    row(
        "other devices", lambda: jit(lambda a, b: a + b)(split(np.ones(8), "x"), device_put(np.ones(8), DEVICES[0])),
        ValueError, "the argument 'b' lies on 1 devices", "the 8 of Mesh('x': 2, 'y': 4", "NamedSharding(mesh, P())",
    ),
    row(
        "other mesh", lambda: split(np.ones(8), "x") + device_put(np.ones(8), NamedSharding(HALF, P())), ValueError,
        "lies on 4 devices", "the 8 of Mesh",
    ),
    row(
        "another order", lambda: jit(lambda a, b: a + b)(split(np.ones(8), "x"), device_put(np.ones(8), BACKWARDS)),
        ValueError, "the argument 'b' has its devices in another order than Mesh('x': 2", "use one mesh", "device_put",
    ),
    row(
        "order of outputs", lambda: jit(same, out_shardings=BACKWARDS)(split(np.ones(8), "x")), ValueError,
        "same: output 0 has its devices in another order",
    ),
    row(
        "set mesh", lambda: in_mesh(lambda: jit(same)(device_put(1.0, DEVICES[1]))), ValueError, "'x' lies on 1",
    ),
    row(
        "in uneven", lambda: jit(same, in_shardings=({"w": over("y")},))({"w": ones(6)}), ShardingError,
        "jit: in_shardings for args[0]['w']: ", "shape (6,) has size 6",
    ),
    row(
        "out uneven", lambda: jit(lambda x: (x, x[:3]), out_shardings=over("x"))(ones(4)), ShardingError,
        "jit: out_shardings for output[1]: ", "size 3",
    ),
    row("out rank", lambda: jit(lambda x: x.sum(), out_shardings=over("x"))(ones(4)), ShardingError, "of shape ()"),
    row("in prefix", lambda: jit(same, in_shardings=(over(), over()))(ones(4)), ValueError, "in_shardings", "length 2"),
    row("out prefix", lambda: jit(same, out_shardings=(over(),))(ones(4)), ValueError, "out_shardings", "length 1"),
    row("in kind", lambda: jit(same, in_shardings=3)(ones(4)), TypeError, "in_shardings must be shardings"),
    row("in spec", lambda: jit(same, in_shardings=P("x"))(ones(4)), RuntimeError, "in_shardings has P('x',)"),
    row("out spec", lambda: jit(same, out_shardings=P("x"))(ones(4)), RuntimeError, "out_shardings has P('x',)"),
    row(
        "constraint", lambda: jit(lambda x: lax.with_sharding_constraint(x[:3], over("x")))(ones(4)), ShardingError,
        "shape (3,) has size 3",
    ),
    row(
        "constraint spec", lambda: lax.with_sharding_constraint(ones(4), P("x")), RuntimeError,
        "with_sharding_constraint: shardings has P('x',)", "NamedSharding(mesh, P('x',))",
    ),
    row(
        "constraint in grad", lambda: grad(lambda x: lax.with_sharding_constraint(x, over("x", "y")).sum())(ones(4)),
        ShardingError, "speaks of 2 dimensions",
    ),
    row(
        "donated", lambda: [jit(same, donate_argnums=0)(x := split(np.ones(8), "x")), x + 1], errors.DeletedArrayError,
        "float32[8]",
    ),
    row("device_put", lambda: jit(lambda x: device_put(x, over("y")))(ones(6)), ShardingError, "has size 6"),
]

MAKING = [
    row("place", lambda: from_callback((4,), DEVICES[0], same), TypeError, "callback: sharding must be"),
    row("uneven", lambda: from_callback((5,), over("x"), same), ShardingError, "has size 5"),
    row("list", lambda: from_callback((4,), over("x"), lambda i: [1, 2]), TypeError, "of type list", "np.asarray"),
    row(
        "shape", lambda: from_callback((4, 8), over("x"), lambda i: np.ones((3, 3))), ValueError, "shape (3, 3)",
        "has (2, 8)",
    ),
    row("dtype", lambda: from_callback((4,), over(), lambda i: np.ones(4), "int32"), ValueError, "float32", "is int32"),
    row(
        "dtypes", lambda: from_callback((4,), over("x"), lambda i: np.ones(2, "f" if i[0].start else "i")), ValueError,
        "on cpu:4 has dtype float32", "that on cpu:0 has int32",
    ),
    row("few", lambda: from_arrays((4, 8), over("x", "y"), PARTS[:3]), ValueError, "3 arrays for 8 devices"),
    row("one device", lambda: from_arrays((4, 8), over("x", "y"), PARTS[:1] * 8), ValueError, "no array lies on cpu:1"),
    row("shapes", lambda: from_arrays((4, 4), over("x", "y"), PARTS), ValueError, "the shape (2, 2)", "has (2, 1)"),
    row("no array", lambda: from_arrays((4,), over(), [np.ones(4)] * 8), TypeError, "arrays[0] is of type ndarray"),
    row("no list", lambda: from_arrays((2, 2), over(), PARTS[0]), TypeError, "arrays must be a list of arrays"),  # type: ignore[arg-type]
    row("local", lambda: from_local(over("x"), np.ones(4), (8,)), ValueError, "has size 4", "hold 8 of 8 there"),
    row("local rank", lambda: from_local(over("x"), np.ones(4), (None, 8)), ValueError, "differ in rank"),
]

CONVERTING = [
    row("dlpack", lambda: np.from_dlpack(split(np.ones(8), "x")), BufferError, "lies on 8", "addressable_data(i)"),
    row("dlpack device", lambda: split(np.ones(8), "x").__dlpack_device__(), BufferError, "float32[8]"),
    row("pointer", lambda: split(np.ones(8)).unsafe_buffer_pointer(), errors.JaxRuntimeError, "lies on 8 devices"),
    row("bool", lambda: bool(split(np.ones(8), "x")), ValueError, "truth value of an array of 8 elements"),
    row("item", lambda: float(split(np.ones(8), "x")), TypeError, "float32[8]"),
    row("picture", lambda: debug.visualize_sharding((2, 2, 2), over()), ValueError, "3 dimensions", "1 or 2"),
    row("uneven picture", lambda: debug.visualize_sharding((3, 2), over("x")), ShardingError, "has size 3"),
    row("callback", lambda: debug.inspect_array_sharding(1.0, callback=3), TypeError, "takes a function, got 3"),  # type: ignore[arg-type]
    row("struct", lambda: jit(same, in_shardings=over("x")).lower(ones(3)), ShardingError, "args[0]"),
]

FAMILIES = {
    "shardings": SHARDINGS,
    "putting": PUTTING,
    "programs": PROGRAMS,
    "making": MAKING,
    "converting": CONVERTING,
}


@pytest.mark.parametrize("case", parameters(FAMILIES))
def test_bad_input(case: Row) -> None:
    check(case)
