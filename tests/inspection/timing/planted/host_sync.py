"""The loss of each step is looked at before the next step begins."""
import jax
import jax.numpy as jnp
import numpy as np


def loss(w, x):
    return jnp.mean((jnp.tanh(x @ w) - 1) ** 2)


@jax.jit
def step(w, x):
    value, slope = jax.value_and_grad(loss)(w, x)
    return w - 0.1 * slope, value


rng = np.random.default_rng(0)
w = jnp.asarray(rng.normal(size=(256, 256)), "float32")
x = jnp.asarray(rng.normal(size=(512, 256)), "float32")
history = []
for _ in range(300):
    w, value = step(w, x)
    history.append(float(value))
print(history[-1])
