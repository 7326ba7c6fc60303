"""A Python loop of many layers is compiled for a few short steps."""
import jax
import jax.numpy as jnp


@jax.jit
def deep(x, weights):
    for i in range(100):
        x = jnp.tanh(x @ weights[i]) + jnp.cos(x)
    return x


x, weights = jnp.ones((8, 32)), jnp.ones((100, 32, 32)) / 32
for _ in range(5):
    x = deep(x, weights)
print(x.sum())
