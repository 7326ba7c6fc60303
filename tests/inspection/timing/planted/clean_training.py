"""Steps of training, whose batches are few and small, and whose losses are kept."""
import jax
import jax.numpy as jnp
import numpy as np


def loss(weights, x, y):
    for w in weights[:-1]:
        x = jnp.tanh(x @ w)
    return jnp.mean((x @ weights[-1] - y) ** 2)


@jax.jit
def step(weights, x, y):
    value, slopes = jax.value_and_grad(loss)(weights, x, y)
    return [w - 0.01 * s for w, s in zip(weights, slopes, strict=True)], value


rng = np.random.default_rng(0)
weights = [jnp.asarray(rng.normal(size=size) / 16, "float32") for size in ((128, 256), (256, 256), (256, 10))]
x = rng.normal(size=(8, 512, 128)).astype("float32")
y = rng.normal(size=(8, 512, 10)).astype("float32")
values = []
for i in range(400):
    weights, value = step(weights, x[i % 8], y[i % 8])
    values.append(value)
print(np.mean(jax.device_get(values[-50:])))
