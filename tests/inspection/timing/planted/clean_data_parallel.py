"""Steps of training on eight devices, over which the batch is split."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("batch",))


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((jnp.tanh(x @ w) - 1) ** 2).mean())(w)


rng = np.random.default_rng(0)
w = jax.device_put(rng.normal(size=(128, 128)).astype("float32"), NamedSharding(mesh, P()))
x = jax.device_put(rng.normal(size=(8192, 128)).astype("float32"), NamedSharding(mesh, P("batch")))
for _ in range(80):
    w = step(w, x)
print(w.sum())
