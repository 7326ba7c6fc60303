"""The parameters are printed after each step."""
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((jnp.tanh(x @ w) - 1) ** 2).mean())(w)


rng = np.random.default_rng(0)
w = jnp.asarray(rng.normal(size=(128, 128)), "float32")
x = jnp.asarray(rng.normal(size=(256, 128)), "float32")
for i in range(200):
    w = step(w, x)
    print(i, w)
