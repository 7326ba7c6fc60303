"""Arrays in other layouts than row-major: every way to read their values, and the programs compiled for them."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import NamedSharding, P, device_put, export, grad, jit, jvp, lax, numpy as jnp, vmap
from xlamini.experimental.layout import Format, Layout
from xlamini.experimental.serialize_executable import deserialize_and_load, serialize

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
HERE = xlamini.sharding.SingleDeviceSharding(xlamini.devices()[0])
COLUMNS, ROWS = Format(Layout((1, 0)), HERE), Format(Layout((0, 1)), HERE)


def columns(values: Any = VALUES) -> Any:
    return device_put(values, COLUMNS)


def order(x: Any) -> tuple[int, ...]:
    return x.format.layout.major_to_minor


def view(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in aligned memory."""
    size = int(np.prod(shape))
    held = np.zeros(size * 4 + 64, np.uint8)
    start = -held.ctypes.data % 64
    out = held[start : start + size * 4].view(np.float32).reshape(shape)
    out[...] = np.arange(size).reshape(shape)
    return out


READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "asarray": (np.asarray, VALUES),
    "array": (np.array, VALUES),
    "tolist": (lambda x: x.tolist(), VALUES),
    "tobytes": (lambda x: np.frombuffer(np.asarray(x).tobytes(), np.float32), VALUES.ravel()),
    "dlpack": (np.from_dlpack, VALUES),
    "pickle": (lambda x: pickle.loads(pickle.dumps(x)) + 0, VALUES),
    "copy": (lambda x: x.copy() + 1, VALUES + 1),
    "deepcopy": (lambda x: copy.deepcopy(x) + 1, VALUES + 1),
    "shard": (lambda x: x.addressable_shards[0].data + 1, VALUES + 1),
    "another device": (lambda x: device_put(x, xlamini.devices()[1]) + 1, VALUES + 1),
    "rows": (lambda x: device_put(x, ROWS) + 1, VALUES + 1),
    "operator": (lambda x: x * 2 + x, VALUES * 3),
    "index": (lambda x: x[1], VALUES[1]),
    "iteration": (lambda x: np.stack(list(x)), VALUES),
    "reshape": (lambda x: x.reshape(3, 2), VALUES.reshape(3, 2)),
    "transpose": (lambda x: x.T, VALUES.T),
    "product": (lambda x: x @ x.T, VALUES @ VALUES.T),
    "captured": (lambda x: jit(lambda: x + 1)(), VALUES + 1),
    "grad": (grad(lambda x: (x * x).sum()), 2 * VALUES),
    "jvp": (lambda x: jvp(lambda x: x * x, (x,), (x,))[1], 2 * VALUES**2),
    "linearize": (lambda x: xlamini.linearize(lambda x: x * x, x)[1](x), 2 * VALUES**2),
    "vmap": (vmap(lambda x: x * 2, in_axes=1, out_axes=1), VALUES * 2),
    "scan": (lambda x: lax.scan(lambda c, x: (c, x), 0, x)[1], VALUES),
    "cond": (lambda x: lax.cond(True, lambda x: x + 1, lambda x: x, x), VALUES + 1),
    "callback": (jit(lambda x: xlamini.pure_callback(lambda x: np.asarray(x) * 2, x, x)), VALUES * 2),
    "export": (lambda x: export.export(jit(lambda x: x + 1))(VALUES).call(x), VALUES + 1),
    "ref": (lambda x: xlamini.new_ref(x)[...], VALUES),
}


@pytest.mark.parametrize("name", READS)
def test_every_way_to_read_one(name: str) -> None:
    read, expected = READS[name]
    np.testing.assert_array_equal(read(jnp.asarray(VALUES)), expected)  # what is compiled for rows, first
    x = columns()
    for _ in range(2):  # the second time by C++
        np.testing.assert_array_equal(read(x), expected)
    assert order(x) == (1, 0)


def test_formats_of_arguments_and_results() -> None:
    rows = jnp.asarray(VALUES)
    for options, given in (({}, (0, 1)), ({"out_shardings": COLUMNS}, (1, 0))):
        for where in (None, COLUMNS, ROWS, HERE):
            add = jit(lambda x: x + 1, in_shardings=where, **options)
            for x in (rows, columns(), VALUES, rows, columns()):
                np.testing.assert_array_equal(out := add(x), VALUES + 1)
                assert order(out) == given
    three = np.arange(24.0).reshape(2, 3, 4).astype("float32")
    there = device_put({"a": three}, {"a": Format(Layout((2, 0, 1)))})["a"]
    assert order(there) == (2, 0, 1)
    np.testing.assert_array_equal(there + 0, three)


def test_ahead_of_time() -> None:
    x = jnp.asarray(VALUES)
    for shown, made in ((x, {}), (columns(), {}), (x, {"out_shardings": COLUMNS}), (x, {"in_shardings": COLUMNS})):
        compiled = jit(lambda x: x + 1, **made).lower(shown).compile()
        (taken,), _ = compiled.input_formats
        takes_columns = shown is not x or "in_shardings" in made
        assert taken.layout.major_to_minor == ((1, 0) if takes_columns else (0, 1))
        assert compiled.output_formats.layout.major_to_minor == ((1, 0) if "out_shardings" in made else (0, 1))
        for run in (compiled, xlamini.load(compiled.serialize())):
            for value in (x, columns()):
                np.testing.assert_array_equal(run(value), VALUES + 1)


@pytest.mark.filterwarnings("ignore:.*the memory of donated arguments")
def test_donation() -> None:
    for where, reuses in ((COLUMNS, True), (ROWS, False)):
        add = jit(lambda x: x + 1, donate_argnums=0, out_shardings=where)
        x = device_put(jnp.asarray(VALUES), COLUMNS)
        pointer = x.unsafe_buffer_pointer()
        out = add(x)
        np.testing.assert_array_equal(out, VALUES + 1)
        assert (out.unsafe_buffer_pointer() == pointer) == x.is_deleted() == reuses
    with pytest.raises(xlamini.errors.DeletedArrayError):
        x = columns()
        x.delete()
        jit(lambda x: x, in_shardings=COLUMNS)(x)


@pytest.mark.parametrize("spec", [P("a", "b"), P(None, "b"), P()], ids=str)
def test_sharded(spec: P) -> None:
    values, mesh = np.arange(64, dtype=np.float32).reshape(8, 8), xlamini.make_mesh((2, 4), ("a", "b"))
    place, other = NamedSharding(mesh, spec), NamedSharding(mesh, P("b", "a"))
    x = device_put(values, Format(Layout((1, 0)), place))
    assert order(x) == order(x.addressable_data(3)) == (1, 0)
    add, moved = jit(lambda x: x + 1), jit(lambda x: x + 1, in_shardings=other)
    parts = [s.data for s in x.addressable_shards]
    parts[0] = parts[0] + 0  # in rows
    whole = xlamini.make_array_from_single_device_arrays((8, 8), place, parts)
    for value in (device_put(values, place), x, whole, x):
        for run in (add, moved, moved, lambda x: device_put(x, other) + 1):
            np.testing.assert_array_equal(run(value), values + 1)
    np.testing.assert_array_equal(x.sum(0), values.sum(0))


def test_memory_of_others_without_a_copy() -> None:
    theirs = view((64, 32)).T
    x = jnp.from_dlpack(theirs, copy=False)
    assert x.unsafe_buffer_pointer() == theirs.__array_interface__["data"][0] and order(x) == (1, 0)
    np.testing.assert_array_equal(x + 1, theirs + 1)
    assert order(jnp.from_dlpack(theirs)) == order(jnp.asarray(theirs)) == (0, 1)


def test_a_donated_array_in_another_layout_is_given_back() -> None:
    x = columns()
    y = device_put(x, ROWS, donate=True)
    np.testing.assert_array_equal(y, VALUES)
    assert x.is_deleted() and order(y) == (0, 1)


def test_a_sort_that_has_run_is_saved_with_its_layouts() -> None:
    """It is compiled again, for the layouts that it was compiled for."""
    program = jit(lambda x: jnp.sort(-x, axis=0), in_shardings=COLUMNS, out_shardings=COLUMNS).lower(VALUES).compile()
    wanted = np.sort(-VALUES, axis=0)
    np.testing.assert_array_equal(program(columns()), wanted)
    loaded = deserialize_and_load(*serialize(program))
    found = loaded(columns())
    np.testing.assert_array_equal(found, wanted)
    assert order(found) == (1, 0)
