"""Arrays on many devices: their parts, making, moving, donating, converting them."""
from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES, HALF, MESH, REVERSED, SPECS, over, split, table
from xlamini import NamedSharding, P, errors, lax, numpy as jnp, random
from xlamini.sharding import Mesh
from xlamini.transforms.sharding import device_order, device_put

OTHERS = [NamedSharding(REVERSED, P("x", "y")), NamedSharding(HALF, P("y")), DEVICES[3]]
MESH_XY = over("x", "y")
PLACES = [*[over(*spec) for spec in SPECS], *OTHERS]


def of_key(spec: P) -> str:
    return str(spec)


@pytest.mark.parametrize("spec", SPECS, ids=of_key)
def test_every_shard_holds_its_part(spec: P) -> None:
    whole = table(4, 8)
    x = xlamini.device_put(whole, NamedSharding(MESH, spec))
    assert [s.device for s in x.addressable_shards] == DEVICES
    for shard in x.global_shards:
        assert shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(shard.data, whole[shard.index])
    parts = len({str(s.index) for s in x.addressable_shards})
    assert max(s.replica_id for s in x.addressable_shards) == 8 // parts - 1
    assert x.is_fully_replicated == (parts == 1)
    assert x.is_fully_addressable
    assert isinstance(x.addressable_shards[0], xlamini.Shard)


def test_shards_are_kept() -> None:
    x = split(table(4, 8), "x", "y")
    assert all(a is b for a, b in zip(x.addressable_shards, x.addressable_shards, strict=True))
    assert x.addressable_data(3) is x.addressable_shards[3].data
    x.addressable_shards.clear()  # a list of one's own
    assert len(x.addressable_shards) == len(x.global_shards) == 8
    x.delete()
    with pytest.raises(errors.DeletedArrayError):
        _ = x.addressable_shards


def test_a_shard_as_recorded_from_jax_0_10() -> None:
    x = split(np.ones((4, 8), np.float32), None, "y")
    assert repr(x.addressable_shards[-1]) == (
        "Shard(device=CpuDevice(id=7), index=(slice(None, None, None), slice(6, 8, None)), replica_id=1, "
        "data=[[1. 1.]\n [1. 1.]\n [1. 1.]\n [1. 1.]])"
    )


@pytest.mark.parametrize("source", PLACES, ids=str)
def test_device_put_from_any_place_to_any(source: Any) -> None:
    whole = table(8, 8)
    x = xlamini.device_put(whole, source)
    for target in PLACES:
        y = xlamini.device_put(x, target)
        np.testing.assert_array_equal(y, whole)
        assert y.committed
        assert y.devices() == (target.device_set if hasattr(target, "device_set") else {target})
        np.testing.assert_array_equal(y.addressable_data(0), whole[y.addressable_shards[0].index])


def test_parts_that_stay_are_not_copied() -> None:
    x = split(table(4, 8), "x")
    y = xlamini.device_put(x, over("x", None))
    pointers = [[s.data.unsafe_buffer_pointer() for s in a.addressable_shards] for a in (x, y)]
    assert pointers[0] == pointers[1]
    assert y.sharding.is_equivalent_to(x.sharding, 2)
    assert not y.sharding.is_equivalent_to(over("y"), 2)


@pytest.mark.parametrize("pair", list(itertools.permutations(SPECS[:5], 2)), ids=str)
def test_the_program_that_moves_between_devices_beside_the_host(pair: tuple[P, P]) -> None:
    source, target = (NamedSharding(MESH, spec) for spec in pair)
    x = xlamini.device_put(table(4, 8), source)
    moved = device_put._program(target, False)(x)
    assert moved.sharding == target
    np.testing.assert_array_equal(moved, table(4, 8))


@pytest.mark.parametrize("spec", SPECS, ids=of_key)
@pytest.mark.parametrize("order", [[7, 6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 7, 5, 2, 4]], ids=str)
def test_devices_in_another_order_get_their_parts_from_one_another(order: list[int], spec: P) -> None:
    mesh = Mesh(np.array([DEVICES[i] for i in order]).reshape(4, 2), ("y", "x"))
    place = NamedSharding(mesh, spec)
    near = device_order.numbered_as(MESH_XY, place)
    assert near._internal_device_list == MESH_XY._internal_device_list
    x = xlamini.device_put(table(8, 8), near)
    for moved in (device_order.handed_on(x, place), device_order._sent(x, place), xlamini.device_put(x, place)):
        assert moved.sharding == place
        for shard in moved.addressable_shards:
            np.testing.assert_array_equal(shard.data, table(8, 8)[shard.index])


@pytest.mark.parametrize("spec", [P(), P("x"), P("y", "x")], ids=of_key)
@pytest.mark.parametrize("value", [table(8, 8) > 9, table(8, 8).T, table(8, 8)[::-1].astype(">f8")], ids=[*"bT>"])
def test_an_ndarray_is_copied_once_and_may_change_afterwards(spec: P, value: np.ndarray) -> None:
    given, expected = value.copy(order="K"), value.astype(bool if value.dtype == bool else np.float32)
    x = xlamini.device_put(given, NamedSharding(MESH, spec))
    given[...] = 0
    np.testing.assert_array_equal(x, expected)
    different = {str(s.index): s.data.unsafe_buffer_pointer() for s in x.addressable_shards}
    assert {s.data.unsafe_buffer_pointer() for s in x.addressable_shards} == set(different.values())


@pytest.mark.parametrize("spec", [P(), P("x")], ids=of_key)
def test_memory_that_devices_share_is_not_overwritten_by_one_that_is_given_it(spec: P) -> None:
    first, *others = xlamini.device_put(table(64, 64), NamedSharding(MESH, spec)).addressable_shards
    double = xlamini.jit(lambda a: a * 2, donate_argnums=0)
    np.testing.assert_array_equal(double(first.data), 2 * table(64, 64)[first.index])
    for shard in others:
        np.testing.assert_array_equal(shard.data, table(64, 64)[shard.index])
    given = xlamini.device_put(table(64, 64), NamedSharding(MESH, spec))
    for shard in double(given).addressable_shards:
        np.testing.assert_array_equal(shard.data, 2 * table(64, 64)[shard.index])
    assert given.is_deleted()


def test_a_mesh_without_devices_holds_no_array() -> None:
    nowhere = NamedSharding(MESH.abstract_mesh, P("x"))
    for value in (table(8), jnp.arange(8.0), 1.0):
        with pytest.raises(ValueError, match=r"AbstractMesh\(.* has no devices to put a value on; use a Mesh"):
            xlamini.device_put(value, nowhere)


@pytest.mark.parametrize("place", [lax.with_sharding_constraint, xlamini.reshard])
def test_an_abstract_mesh_stands_for_the_mesh_of_the_array_or_the_current_one(place: Any) -> None:
    nowhere = NamedSharding(MESH.abstract_mesh, P("y"))
    assert place(split(table(8), "x"), nowhere).sharding == over("y")
    with xlamini.set_mesh(MESH):
        assert place(table(8), nowhere).sharding == over("y")
        assert place(xlamini.device_put(table(8), DEVICES[3]), nowhere).sharding == over("y")
        elsewhere = place(xlamini.device_put(table(8), NamedSharding(REVERSED, P("x"))), nowhere)
        assert elsewhere.sharding == NamedSharding(REVERSED, P("y"))
        np.testing.assert_array_equal(elsewhere, table(8))
    with pytest.raises(ValueError, match="has no devices to put a value on; use a Mesh"):
        place(table(8), nowhere)
    with xlamini.set_mesh(HALF), pytest.raises(ValueError, match="has no devices to put a value on; use a Mesh"):
        place(table(8), nowhere)


def test_a_tree_of_shardings() -> None:
    put = xlamini.device_put({"w": table(4, 8), "b": [1.0, table(8)]}, {"w": over("x", "y"), "b": over()})
    assert put["w"].sharding == over("x", "y")
    assert [b.sharding for b in put["b"]] == [over(), over()]
    mixed = xlamini.device_put((table(8), table(8)), (over("x"), DEVICES[2]))
    assert mixed[1].devices() == {DEVICES[2]}


def test_donation_across_shardings() -> None:
    x = split(table(4, 8), "x", "y")
    y = xlamini.device_put(x, over("y"), donate=True)
    assert x.is_deleted()
    same = xlamini.device_put(y, over("y", None), donate=True)
    np.testing.assert_array_equal(same, table(4, 8))
    kept = xlamini.device_put(same, over("y"), may_alias=False)
    same.delete()
    np.testing.assert_array_equal(kept, table(4, 8))


def test_keys_lie_on_a_mesh() -> None:
    keys = random.split(random.key(0), 8)
    there = xlamini.device_put(keys, over(("x", "y")))
    assert there.sharding == over(("x", "y"))
    shard = there.addressable_shards[3]
    assert shard.index == (slice(3, 4, None),)
    np.testing.assert_array_equal(random.key_data(shard.data), random.key_data(keys)[3:4])
    assert [s.device for s in there.global_shards] == DEVICES
    assert copy.copy(there).sharding == there.sharding
    words = split(random.key_data(keys), "y", "x")
    part = random.wrap_key_data(words).addressable_data(0)
    np.testing.assert_array_equal(random.key_data(part), random.key_data(keys)[:2])


@pytest.mark.full
def test_random_numbers_do_not_depend_on_where_keys_lie() -> None:
    keys = random.split(random.key(7), 8)
    draw = xlamini.vmap(lambda k: random.normal(k, (3,)))
    for spec in (P("x"), P(("y", "x")), P()):
        there = xlamini.device_put(keys, NamedSharding(MESH, spec))
        np.testing.assert_array_equal(draw(there), draw(keys))
        np.testing.assert_array_equal(xlamini.jit(draw)(there), draw(keys))
        again = xlamini.vmap(random.split)(there)
        np.testing.assert_array_equal(random.key_data(again), random.key_data(xlamini.vmap(random.split)(keys)))


@pytest.mark.full
def test_python_and_numpy_see_the_whole() -> None:
    whole = table(4, 8)
    x = split(whole, "x", "y")
    assert x[1, 2].item() == 10.0
    assert x.tolist() == whole.tolist()
    np.testing.assert_array_equal(np.stack(list(x)), whole)
    np.testing.assert_array_equal(x[1:3, ::2], whole[1:3, ::2])
    np.testing.assert_array_equal(x.at[0].set(5.0)[0], np.full(8, 5.0))
    assert repr(x) == repr(jnp.asarray(whole))
    assert str(x) == str(whole)
    assert float(split(2.0)) == 2.0
    assert xlamini.device_get(x).tobytes() == whole.tobytes()
    assert x.is_ready() in (True, False)
    assert x.block_until_ready() is x
    assert x.on_device_size_in_bytes() == whole.nbytes
    x.copy_to_host_async()


def test_copies_keep_the_place_and_pickles_do_not() -> None:
    x = split(table(4, 8), "x", "y")
    for made in (copy.copy(x), copy.deepcopy(x), x.copy()):
        assert made.sharding == x.sharding
    loaded = pickle.loads(pickle.dumps(x))
    assert loaded.devices() == {DEVICES[0]}
    np.testing.assert_array_equal(loaded, x)


@pytest.mark.parametrize("place", [DEVICES[3], MESH, *OTHERS[:2], over("x").with_memory_kind("pinned_host")], ids=str)
def test_places_are_copied_as_they_are_and_pickled(place: Any) -> None:
    assert copy.copy(place) is place
    assert copy.deepcopy({"place": place})["place"] is place
    loaded = pickle.loads(pickle.dumps(place))
    assert loaded == place
    assert hash(loaded) == hash(place)


def test_a_single_device_in_a_pickle() -> None:
    place = xlamini.sharding.SingleDeviceSharding(DEVICES[3], memory_kind="pinned_host")
    assert copy.deepcopy(place) is place
    assert pickle.loads(pickle.dumps(place)) == place
    shard = copy.deepcopy(split(table(8), "x").addressable_shards[5])
    assert (shard.device, shard.index) == (DEVICES[5], (slice(4, 8),))
    typed = xlamini.ShapeDtypeStruct((8,), np.float32, sharding=over("x"))
    assert pickle.loads(pickle.dumps(typed)).sharding == over("x")


def test_a_pickle_with_a_device_that_is_not_here() -> None:
    text = pickle.dumps(DEVICES[7], protocol=0).replace(b"I7\n", b"I99\n")
    with pytest.raises(errors.PlatformError, match="the pickle speaks of the device cpu:99, but here are cpu:0, cpu:1"):
        pickle.loads(text)


def test_deleted_arrays_say_so() -> None:
    x = split(table(4, 8), "x", "y")
    part = x.addressable_data(0)
    x.delete()
    assert x.is_deleted()
    assert part.is_deleted()
    assert repr(x) == "<deleted Array float32[4,8]>"
    for use in (np.asarray, copy.copy, lambda x: x.addressable_shards, lambda x: xlamini.device_put(x, over())):
        with pytest.raises(errors.DeletedArrayError, match=r"float32\[4,8\]"):
            use(x)


def test_make_array_from_callback_asks_once_for_each_part() -> None:
    whole, asked = table(4, 8), []

    def part(index: Any) -> np.ndarray:
        asked.append(index)
        return whole[index]

    x = xlamini.make_array_from_callback((4, 8), over("x"), part)
    np.testing.assert_array_equal(x, whole)
    assert x.sharding == over("x")
    assert [index[0] for index in asked] == [slice(0, 2), slice(2, 4)]
    scalar = xlamini.make_array_from_callback((), over(), lambda index: 3.0)
    assert (scalar.shape, scalar.item(), scalar.is_fully_replicated) == ((), 3.0, True)
    on_one = xlamini.sharding.SingleDeviceSharding(DEVICES[1])
    single = xlamini.make_array_from_callback((2,), on_one, lambda index: table(2)[index])
    assert single.devices() == {DEVICES[1]}


def test_make_array_from_callback_of_keys() -> None:
    keys = random.split(random.key(0), 8)
    made = xlamini.make_array_from_callback((8,), over("x"), lambda index: keys[index])
    assert made.dtype == keys.dtype
    np.testing.assert_array_equal(random.key_data(made), random.key_data(keys))


def test_make_array_from_single_device_arrays_in_any_order() -> None:
    parts = [xlamini.device_put(np.full((2, 2), i), d) for i, d in enumerate(DEVICES)]
    for given in (parts, parts[::-1]):
        x = xlamini.make_array_from_single_device_arrays((4, 8), over("x", "y"), given)
        np.testing.assert_array_equal(x[::2, ::2], np.arange(8).reshape(2, 4))
    assert x.addressable_data(3).unsafe_buffer_pointer() == parts[3].unsafe_buffer_pointer()


def test_make_array_from_process_local_data_of_one_process() -> None:
    made = xlamini.make_array_from_process_local_data(over("x"), {"a": table(4, 8), "b": table(2)})
    np.testing.assert_array_equal(made["a"], table(4, 8))
    assert made["b"].sharding == over("x")
    assert xlamini.make_array_from_process_local_data(over("x"), table(4), (None,)).shape == (4,)


def test_shardings_of_one_device() -> None:
    one = xlamini.sharding.make_single_device_sharding(DEVICES[2])
    assert xlamini.device_put(1.0, one).devices() == {DEVICES[2]}
    assert one == xlamini.sharding.SingleDeviceSharding(DEVICES[2])
    pinned = xlamini.sharding.make_single_device_sharding(DEVICES[2], memory_kind="pinned_host")
    assert pinned.memory_kind == "pinned_host"


def test_a_mesh_that_is_set() -> None:
    assert xlamini.sharding.get_mesh().empty
    with xlamini.set_mesh(MESH):
        assert xlamini.sharding.get_mesh() is MESH
        assert xlamini.sharding.get_abstract_mesh() == MESH.abstract_mesh
        assert xlamini.device_put(table(4), P("y")).sharding == over("y")
        assert (jnp.ones(4) + 1).sharding == over()
        assert lax.with_sharding_constraint(table(4), P("x")).sharding == over("x")
        assert xlamini.reshard({"a": table(4)}, P("x"))["a"].sharding == over("x")
        with xlamini.set_mesh(HALF):
            assert xlamini.device_put(table(4), P("y")).devices() == set(DEVICES[4:])
        other = xlamini.sharding.AbstractMesh((2,), ("a",))
        with xlamini.sharding.use_abstract_mesh(other):
            assert xlamini.sharding.get_abstract_mesh() == other
            assert xlamini.sharding.get_mesh() is MESH
    assert xlamini.sharding.get_mesh().empty
    assert xlamini.sharding.get_abstract_mesh().empty
    xlamini.set_mesh(MESH)
    assert xlamini.sharding.get_mesh() is MESH
    xlamini.set_mesh(None)
    assert xlamini.sharding.get_mesh().empty


def test_a_function_is_traced_for_each_mesh() -> None:
    halve = xlamini.jit(lambda x: lax.with_sharding_constraint(x, P("y")) + 1)
    for mesh in (MESH, HALF, MESH):
        with xlamini.set_mesh(mesh):
            assert halve(table(4)).sharding == NamedSharding(mesh, P("y"))


def test_the_local_mesh_of_one_process_is_the_mesh() -> None:
    assert MESH.local_mesh is MESH
    assert HALF.local_mesh == HALF


def test_a_jitted_function_moves_nothing_to_other_devices() -> None:
    other = NamedSharding(Mesh(np.array(DEVICES[:4]).reshape(2, 2), ("x", "y")), P("x"))
    x = xlamini.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(HALF, P("x")))
    with pytest.raises(ValueError, match=r"a program runs on 4 devices, and cpu:0 .* move it by device_put outside"):
        xlamini.jit(lambda x: xlamini.device_put(x, other))(x)
    np.testing.assert_array_equal(xlamini.device_put(x, other), x)
