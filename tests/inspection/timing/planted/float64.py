"""A NumPy array of 64 bits makes all that follows 64 bits wide."""
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
w = jnp.asarray(rng.normal(size=(512, 512)), jnp.float32)
x = jnp.asarray(rng.normal(size=(512, 512)), jnp.float32)
scale = np.linspace(0.5, 1.5, 512)


@jax.jit
def step(w, x):
    h = x * scale
    return jnp.tanh(h @ w).mean(axis=0)


for _ in range(60):
    out = step(w, x)
print(out.sum())
