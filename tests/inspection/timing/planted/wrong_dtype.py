"""The batches are float64, as NumPy makes them, and converted in each step."""
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(w, x):
    return w + 0.01 * x.mean(axis=0)


rng = np.random.default_rng(0)
batches = rng.normal(size=(4, 4096, 512))
w = jnp.zeros(512)
for i in range(80):
    w = step(w, batches[i % 4])
print(w.sum())
