"""A loop of small operations that nobody jitted."""
import jax.numpy as jnp
import numpy as np

position = jnp.asarray(np.random.default_rng(0).normal(size=(16, 3)), "float32")
velocity = jnp.zeros_like(position)
for _ in range(1000):
    force = -position / (1 + jnp.sum(position**2))
    velocity = velocity + 0.01 * force
    position = position + 0.01 * velocity
print(position.sum())
