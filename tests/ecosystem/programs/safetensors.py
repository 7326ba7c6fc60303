"""Programs of safetensors: parameters saved and loaded in the middle of training, dtypes, and sharded arrays."""
from __future__ import annotations

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from safetensors import safe_open
from safetensors.flax import load, load_file, save, save_file


def training_goes_on_from_a_file() -> dict[str, jax.Array]:
    """Half of the training, a file with parameters and metadata, and the other half from what was loaded."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((64, 4)), jnp.float32)
    y = jnp.sin(x.sum(1))
    layers = {"layer_0": (4, 16), "layer_1": (16, 1)}
    params = {name: jnp.asarray(rng.standard_normal(shape) * 0.4, jnp.float32) for name, shape in layers.items()}

    def loss(params):
        out = jnp.tanh(x @ params["layer_0"]) @ params["layer_1"]
        return ((out[:, 0] - y) ** 2).mean()

    @jax.jit
    def steps(params):
        step = lambda _, p: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p))
        return jax.lax.fori_loop(0, 60, step, params)

    params = steps(params)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        save_file(params, file, metadata={"steps": "60"})
        loaded = load_file(file)
        with safe_open(file, framework="flax") as opened:
            metadata, shape = opened.metadata(), opened.get_slice("layer_0").get_shape()
            one = opened.get_tensor("layer_1")
    assert metadata == {"steps": "60"}
    on, straight = steps(loaded), steps(params)
    return {
        "loss": loss(on),
        "params": on,
        "one": one[:3],
        "shape": shape,
        "same": [bool((on[name] == straight[name]).all()) for name in on],
    }


def dtypes_and_shards() -> dict[str, jax.Array]:
    """Each dtype there and back in a file; an array over eight devices saved in memory and put over them again."""
    x = jnp.linspace(-2, 2, 6).reshape(2, 3)
    dtypes = ("float32", "float16", "bfloat16", "int8", "int32", "uint8", "bool")
    with tempfile.TemporaryDirectory() as folder:
        save_file({name: x.astype(name) for name in dtypes}, f"{folder}/all.safetensors")
        back = load_file(f"{folder}/all.safetensors")
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    sharded = jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, P("x", "y")))
    again = jax.device_put(load(save({"a": sharded}))["a"], sharded.sharding)
    return {
        "back": {name: back[name] for name in dtypes},
        "types": [back[name].dtype == name and isinstance(back[name], jax.Array) for name in dtypes],
        "sum": jax.jit(lambda a: (a * jnp.arange(8.0)).sum(0))(again),
        "shards": [shard.data.shape for shard in again.addressable_shards],
    }
