"""The host makes each batch while the device waits for it."""
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


def load():
    images = rng.random((64, 64, 64), dtype="float32")
    flipped = np.where(rng.random(64)[:, None, None] < 0.5, images[:, :, ::-1], images)
    return flipped.reshape(64, 4, 1024).mean(axis=1)


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)


w = jnp.ones((1024, 2))
for _ in range(300):
    w = step(w, load())
print(w.sum())
