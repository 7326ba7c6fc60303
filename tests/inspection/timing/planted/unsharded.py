"""Eight devices, but the batch is not split: each of them computes all of it."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("batch",))
everywhere = NamedSharding(mesh, P())


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((jnp.tanh(x @ w) - 1) ** 2).mean())(w)


rng = np.random.default_rng(0)
w = jax.device_put(rng.normal(size=(128, 128)).astype("float32"), everywhere)
batch = rng.normal(size=(2048, 128)).astype("float32")
for _ in range(40):
    w = step(w, batch)
print(w.sum())
