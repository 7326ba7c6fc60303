"""Programs that tests run in several processes: `python process_programs.py NAME`."""
from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import xlamini
from xlamini import lax, multihost, numpy as jnp, random
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec

HEARTBEAT = 6


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def batch(mesh: Mesh) -> tuple[xlamini.Array, np.ndarray]:
    """A batch that is split over all processes, and the whole of it."""
    whole = np.sin(np.arange(24 * 4.0)).reshape(24, 4).astype(np.float32)
    parts = whole.reshape(xlamini.process_count(), -1, 4)
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    return xlamini.make_array_from_process_local_data(sharding, parts[xlamini.process_index()]), whole


def loss(params: dict, x: xlamini.Array) -> xlamini.Array:
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    return jnp.mean((hidden @ params["v"] - jnp.sum(x, axis=1)) ** 2)


def step(params: dict, x: xlamini.Array) -> tuple[dict, xlamini.Array]:
    value, grads = xlamini.value_and_grad(loss)(params, x)
    return xlamini.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def train() -> None:
    """Three data-parallel steps give what one process computes from the whole batch."""
    mesh = Mesh(xlamini.devices(), "data")
    x, whole = batch(mesh)
    params = {"w": np.full((4, 8), 0.3, np.float32), "b": np.zeros(8, np.float32), "v": np.ones(8, np.float32)}
    alone, together = params, xlamini.device_put(params, NamedSharding(mesh, PartitionSpec()))
    run = xlamini.jit(step)
    for _ in range(3):
        together, value = run(together, x)
        alone, expected = run(alone, whole)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
    xlamini.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), together, alone)
    multihost.assert_equal(xlamini.tree.map(np.asarray, together))
    say(f"trained on {len(xlamini.devices())} devices")


def preemption() -> None:
    """One process gets SIGTERM; all stop at one step."""
    for step in range(100):
        if xlamini.process_index() == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        if multihost.reached_preemption_sync_point(step):
            break
        time.sleep(0.1)
    multihost.assert_equal(step)
    assert 3 <= step < 99
    say("stopped together")


def folders(where: str) -> None:
    """Arrays over processes are saved in one folder, and loaded with another sharding."""
    from xlamini.experimental.array_serialization.pytree_serialization import load, save

    mesh = Mesh(xlamini.devices(), "data")
    x, whole = batch(mesh)
    save({"x": x, "n": 3}, where)
    by_column = NamedSharding(mesh, PartitionSpec(None, "data"))
    found = load(where, {"x": by_column, "n": NamedSharding(mesh, PartitionSpec())})
    assert found["x"].sharding == by_column and int(found["n"]) == 3
    np.testing.assert_array_equal(multihost.process_allgather(found["x"], tiled=True), whole)
    say("saved and loaded")


def helpers() -> None:
    """Values go between processes."""
    me, count = xlamini.process_index(), xlamini.process_count()
    own = {"a": np.arange(3) + me, "b": np.bool_(me == 0), "c": np.float64(0.1) * me}
    given = multihost.broadcast_one_to_all(own, is_source=me == 1)
    assert given["a"].tolist() == [1, 2, 3] and not given["b"] and given["c"] == 0.1
    assert multihost.process_allgather(own["a"]).tolist() == [[p, p + 1, p + 2] for p in range(count)]
    assert multihost.process_allgather(me, tiled=True).tolist() == list(range(count))
    mesh, split = Mesh(xlamini.devices(), "x"), PartitionSpec("x")
    whole = multihost.host_local_array_to_global_array(own["a"][:2], mesh, split)
    assert whole.shape == (2 * count,)
    part = multihost.global_array_to_host_local_array(whole * 2, mesh, split)
    assert part.tolist() == [2 * me, 2 * me + 2] and part.is_fully_addressable
    assert multihost.process_allgather(whole, tiled=True).tolist() == [p + i for p in range(count) for i in (0, 1)]
    multihost.sync_global_devices("the end")
    say("helped")


def each_holds(x: xlamini.Array, whole: np.ndarray) -> None:
    """The parts that this process has of an array are those of `whole`."""
    assert (x.shape, x.dtype) == (whole.shape, whole.dtype), x
    here = x.sharding.addressable_devices_indices_map(x.shape)
    assert [s.device for s in x.addressable_shards] == list(here)
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, whole[here[shard.device]])


def arrays() -> None:
    """Arrays over all processes are made, and moved."""
    local_data()
    callbacks()
    moving()
    mapped()
    say("held together")


def local_data() -> None:
    """Each process gives what it has of an array: of a mesh whose rows are processes, and of one whose columns are."""
    me, count = xlamini.process_index(), xlamini.process_count()
    grid = np.array(xlamini.devices()).reshape(count, -1)
    own, n = np.float32(100 * me) + np.arange(8, dtype=np.float32).reshape(2, 4), grid.shape[1]
    every = [own + 100 * (p - me) for p in range(count)]
    rows, columns, whole = np.concatenate(every), np.concatenate(every, 1), every[0]
    rows_first, columns_first = Mesh(grid, ("p", "d")), Mesh(grid.T, ("d", "p"))
    for mesh in (rows_first, columns_first):
        of_shape = {(None, None): rows, None: rows, rows.shape: rows}
        for spec in (PartitionSpec("p"), PartitionSpec(("p", "d")), PartitionSpec("p", "d")):
            for shape, expected in of_shape.items():
                each_holds(given(mesh, spec, own, shape), expected)
            each_holds(given(mesh, spec, rows, rows.shape), rows)
        each_holds(given(mesh, PartitionSpec("d", "p"), own), columns)
        for spec in (PartitionSpec(), PartitionSpec("d"), PartitionSpec(None, "d")):
            each_holds(given(mesh, spec, whole), whole)
        both = given(mesh, PartitionSpec("p"), {"a": own, "b": own[0]}, {"a": rows.shape, "b": (4 * count,)})
        each_holds(both["a"], rows)
    refused("the devices of this process hold 2 of", lambda: given(rows_first, PartitionSpec("p"), own[:1], rows.shape))
    interleaved = given(rows_first, PartitionSpec(("d", "p")), own)
    each_holds(interleaved, np.concatenate([e[i : i + 2 // n] for i in range(0, 2, 2 // n) for e in every]))


def mapped() -> None:
    """As in JAX 0.10.2, pmap takes and returns the entries of a process' own devices, and its axis is over all."""
    me, mine, count = xlamini.process_index(), xlamini.local_device_count(), xlamini.device_count()
    own = np.arange(mine, dtype=np.float32) + me * mine
    total = count * (count - 1) / 2
    add = xlamini.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    for _ in range(2):
        summed = add(own)
        assert summed.is_fully_addressable and summed.tolist() == [total] * mine
    assert xlamini.pmap(lambda x: lax.psum(x, "i"), "i", out_axes=None)(own) == total
    assert xlamini.pmap(lambda x: lax.psum(x, "i"), "i", axis_size=count)(own).tolist() == [total] * mine
    here = xlamini.pmap(lambda x: lax.psum(x, "i"), "i", devices=xlamini.local_devices())
    assert here(own).tolist() == [own.sum()] * mine
    indices = xlamini.pmap(lambda n, d: {"i": lax.axis_index("i") * n + d["b"]}, "i", static_broadcasted_argnums=0)
    assert indices(10, {"b": own})["i"].tolist() == (own * 11).tolist()
    columns = xlamini.pmap(lambda x, y: x + y, in_axes=(1, None), out_axes=1)(np.ones((3, mine)) * own, np.ones(3))
    assert columns.tolist() == (np.ones((3, mine)) * own + 1).tolist()
    keys = random.split(random.key(me), mine)
    folded = xlamini.pmap(lambda k: random.fold_in(k, 1))(keys)
    np.testing.assert_array_equal(random.key_data(folded)[0], random.key_data(random.fold_in(keys[0], 1)))
    slope = xlamini.pmap(xlamini.grad(lambda w, x: (w * x) ** 2), in_axes=(None, 0))(2.0, own)
    assert slope.tolist() == (4 * own**2).tolist()
    refused(f"is mapped over {mine + 1} entries in process {me}", lambda: add(np.ones(mine + 1, np.float32)))


def given(mesh: Mesh, spec: PartitionSpec, data: object, shape: object = None) -> xlamini.Array:
    return xlamini.make_array_from_process_local_data(NamedSharding(mesh, spec), data, shape)


def callbacks() -> None:
    """Each process is asked for its own parts only, and needs a dtype where it has none."""
    devices, me = xlamini.devices(), xlamini.process_index()
    whole, asked = np.arange(4.0 * len(devices), dtype=np.float32).reshape(-1, 2), []
    split = NamedSharding(Mesh(devices, "x"), PartitionSpec("x"))

    def part(index: tuple) -> np.ndarray:
        asked.append(index)
        return whole[index]

    x = xlamini.make_array_from_callback(whole.shape, split, part)
    each_holds(x, whole)
    assert asked == list(split.addressable_devices_indices_map(whole.shape).values())
    parts = [s.data * 2 for s in x.addressable_shards]
    each_holds(xlamini.make_array_from_single_device_arrays(x.shape, split, parts), whole * 2)
    of_first = NamedSharding(Mesh([d for d in devices if d.process_index == 0], "x"), PartitionSpec("x"))
    each_holds(xlamini.make_array_from_callback(whole.shape, of_first, part, np.float32), whole)
    if me:
        refused("pass dtype", lambda: xlamini.make_array_from_callback(whole.shape, of_first, part))
    mesh, spec = split.mesh, split.spec
    local = multihost.global_array_to_host_local_array(x, mesh, spec)
    each_holds(multihost.host_local_array_to_global_array(np.asarray(local) + 1, mesh, spec), whole + 1)
    np.testing.assert_array_equal(multihost.process_allgather(x, tiled=True), whole)


def refused(words: str, act: Callable[[], object]) -> None:
    """The action fails with these words."""
    try:
        act()
    except (RuntimeError, TypeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def moving() -> None:
    """An array goes from mesh to mesh, whose devices are in any order; only what all can mean is taken from each."""
    devices = xlamini.devices()
    whole = np.arange(64, dtype=np.float32).reshape(8, 8)
    mixed = np.random.default_rng(0).permutation(len(devices))
    orders = (devices, devices[::-1], [devices[i] for i in mixed])
    meshes = [Mesh(np.array(order).reshape(2, -1), ("x", "y")) for order in orders]
    specs = [PartitionSpec("x"), PartitionSpec("y", "x"), PartitionSpec(None, ("x", "y")), PartitionSpec()]
    places = [NamedSharding(mesh, spec) for mesh in meshes for spec in specs]
    x = xlamini.device_put(whole, places[0])
    for place in [*places, *places[::-3], *places[::5]]:
        x = xlamini.device_put(x, place)
        assert x.sharding == place
        each_holds(x, whole)
    twos = xlamini.jit(lambda: jnp.full((8,), 2), out_shardings=places[0])()
    assert twos.weak_type and xlamini.device_put(twos, places[4]).weak_type
    keys = random.split(random.key(0), 8)
    moved = xlamini.device_put(xlamini.device_put(keys, places[0]), places[4])
    each_holds(random.key_data(moved), np.asarray(random.key_data(keys)))
    x = xlamini.device_put(x, places[0])
    assert str(x) == f"{x}" == "Array(shape=(8, 8), dtype=float32)"
    own = whole + xlamini.process_index()
    refused("the value differs between processes", lambda: xlamini.device_put(own, places[0]))
    split = xlamini.jit(lambda x: x + 1, in_shardings=places[0], out_shardings=places[0])
    refused("make_array_from_process_local_data", lambda: split(whole))
    each_holds(split(xlamini.device_put(whole, places[0])), whole + 1)


def disagree() -> None:
    """What differs between processes is said in all of them."""
    me = xlamini.process_index()
    for act in (
        lambda: multihost.assert_equal({"seed": me}),
        lambda: multihost.process_allgather(np.ones(me + 1)),
        lambda: multihost.broadcast_one_to_all(3, is_source=True),
        lambda: multihost.sync_global_devices(f"place {me}"),
    ):
        try:
            act()
        except (AssertionError, RuntimeError, ValueError) as error:
            say(f"{type(error).__name__}: {error}")


def different() -> None:
    """Process 1 would run another program."""
    x, _ = batch(Mesh(xlamini.devices(), "data"))

    def energy(x: xlamini.Array) -> xlamini.Array:
        y = jnp.sin(x)
        if xlamini.process_index() == 1:
            y = y * 2  # only here
        return jnp.sum(y)

    xlamini.jit(energy)(x)


def run_until(how: str, victim: int) -> None:
    """Compute together until one of the processes comes to harm."""
    x, _ = batch(Mesh(xlamini.devices(), "data"))
    total = xlamini.jit(lambda x: jnp.sum(jnp.sin(x)))
    for turn in range(600):
        total(x).block_until_ready()
        if turn == 5 and xlamini.process_index() == victim:
            harm(how)
        time.sleep(0.05)


def harm(how: str) -> None:
    if how == "raise":
        raise OSError("the disk is full")
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))


def guard() -> None:
    """Under `thread_guard` another thread may not run a program of both processes."""
    x, _ = batch(Mesh(xlamini.devices(), "data"))
    f = xlamini.jit(lambda x: x * 2)
    with xlamini.thread_guard(True), ThreadPoolExecutor(1) as others:
        f(x)
        error = others.submit(f, x).exception()
        assert "was called from thread" in str(error), error
        others.submit(f, np.ones(3)).result()
    with ThreadPoolExecutor(1) as others:
        others.submit(f, x).result()
    say("guarded")


PROGRAMS: dict[str, Callable[..., None]] = {
    "train": train,
    "folders": folders,
    "helpers": helpers,
    "guard": guard,
    "preemption": preemption,
    "arrays": arrays,
    "disagree": disagree,
    "different": different,
    "harm": run_until,
}


def main() -> None:
    name, *args = sys.argv[1:]
    timeout = float(os.environ.get("TEST_TIMEOUT", "60"))
    xlamini.distributed.initialize(initialization_timeout=timeout, heartbeat_timeout_seconds=HEARTBEAT)
    PROGRAMS[name](*(int(a) if a.isdecimal() else a for a in args))


if __name__ == "__main__":
    main()
