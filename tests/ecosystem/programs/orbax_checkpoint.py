"""Orbax: checkpoints saved and restored, at once and in the background, onto other devices, and a manager of many."""
from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding


def _mesh(*shape: int) -> Mesh:
    """The first devices, as a mesh of this shape."""
    return Mesh(np.array(jax.devices()[:int(np.prod(shape))]).reshape(shape), ("x", "y"))


def _layout(array: Any) -> Any:
    """Which rows and columns lie on which device, as one array of (device, start, stop, start, stop)."""
    return np.array([[shard.device.id, *(i for s, n in zip(shard.index, array.shape, strict=True)
                                         for i in s.indices(n)[:2])] for shard in array.addressable_shards])


def _struct(array: Any, sharding: Any) -> Any:
    """The description of an array that Orbax restores onto `sharding`."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)


def resharded_restore() -> dict[str, Any]:
    """An array split over 4 x 2 devices is restored on 2 x 4, on two, on one and as NumPy."""
    first = NamedSharding(_mesh(4, 2), PartitionSpec("x", "y"))
    w = jax.device_put(jax.random.normal(jax.random.key(0), (8, 16)), first)
    half = jax.device_put(w.astype(jnp.bfloat16), NamedSharding(_mesh(4, 2), PartitionSpec(None, "x")))
    tree = {"w": w, "half": half, "step": 3, "key": jnp.arange(4, dtype=jnp.uint32), "list": [w[0], (w[1], 2.5)]}
    out: dict[str, Any] = {}
    targets = {
        "wide": NamedSharding(_mesh(2, 4), PartitionSpec("y", "x")),
        "pair": NamedSharding(_mesh(1, 2), PartitionSpec("y")),
        "copies": NamedSharding(_mesh(4, 2), PartitionSpec()),
        "one": SingleDeviceSharding(jax.devices()[5]),
    }
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as saver:
        path = pathlib.Path(folder).absolute() / "tree"
        saver.save(path, tree)
        saver.wait_until_finished()
        for name, sharding in targets.items():
            target = tree | {"w": _struct(w, sharding), "half": _struct(half, sharding)}
            got = saver.restore(path, target)
            out |= {f"{name}/w": got["w"], f"{name}/half": got["half"].astype(jnp.float32),
                    f"{name}/layout": _layout(got["w"]), f"{name}/step": got["step"],
                    f"{name}/equal": got["w"].sharding == sharding}
        plain = saver.restore(path)
        out |= {"plain/w": plain["w"], "plain/list": plain["list"][1][1]}
        reader = ocp.PyTreeCheckpointer()
        as_numpy = reader.restore(path, restore_args=jax.tree.map(lambda _: ocp.RestoreArgs(np.ndarray), plain))
        out |= {"numpy": {k: np.asarray(v, np.float32) for k, v in as_numpy.items() if k != "list"}}
        shape = saver.metadata(path).item_metadata["w"].shape
        out["metadata"] = np.array(shape)
    return out


def _least_squares() -> tuple[Any, Any]:
    """A state of training, parameters and moments, and a step of it."""
    x = jax.random.normal(jax.random.key(0), (32, 4))
    y = x @ jnp.arange(4.0) + 1
    tx = optax.adam(0.1)
    params = {"w": jnp.zeros(4), "b": jnp.zeros(())}

    @jax.jit
    def step(state: Any) -> Any:
        params, moments = state
        loss, grads = jax.value_and_grad(lambda p: ((x @ p["w"] + p["b"] - y) ** 2).mean())(params)
        updates, moments = tx.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments), loss

    return (params, tx.init(params)), step


def managed_training() -> dict[str, Any]:
    """A training run saves in the background, keeps the best and the newest, stops, and goes on from its checkpoint."""
    start, step = _least_squares()

    def run(state: Any, steps: range, manager: Any) -> tuple[Any, list[Any]]:
        losses = []
        for i in steps:
            state, loss = step(state)
            losses.append(loss)
            manager.save(i, args=ocp.args.Composite(state=ocp.args.StandardSave(state),
                                                    notes=ocp.args.JsonSave({"step": i})),
                         metrics={"loss": float(loss)})
        manager.wait_until_finished()
        return state, losses

    options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=5, enable_async_checkpointing=True)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder).absolute()
        with ocp.CheckpointManager(path, options=options) as manager:
            _, losses = run(start, range(18), manager)
            kept = manager.all_steps()
        with ocp.CheckpointManager(path, options=options) as manager:
            newest = manager.latest_step()
            back = manager.restore(newest, args=ocp.args.Composite(
                state=ocp.args.StandardRestore(start), notes=ocp.args.JsonRestore()))
            state, more = run(back.state, range(newest + 1, 40), manager)
        with ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler()) as later:
            later.save(path / "later", {"state": state[0]})
            later.wait_until_finished()
            again = later.restore(path / "later")
    return {"losses": jnp.stack(losses), "kept": np.array(kept), "newest": newest, "note": back.notes["step"],
            "more": jnp.stack(more)} | {"params": state[0]} | {"again": again}
