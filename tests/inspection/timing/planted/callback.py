"""Each step asks Python for a value."""
import jax
import jax.numpy as jnp
import numpy as np


def lookup(x):
    return np.sort(np.asarray(x)).astype("float32")


@jax.jit
def step(x):
    y = jnp.tanh(x) * 2
    z = jax.pure_callback(lookup, jax.ShapeDtypeStruct(x.shape, x.dtype), y)
    return z / 2


x = jnp.asarray(np.random.default_rng(0).normal(size=200_000), "float32")
for _ in range(100):
    x = step(x)
print(x.sum())
