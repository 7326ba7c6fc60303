"""A buffer of many megabytes is updated in one row at each step, and copied for that."""
import jax
import jax.numpy as jnp


@jax.jit
def push(buffer, i, row):
    return buffer.at[i].set(row)


buffer = jnp.zeros((4096, 4096))
row = jnp.ones(4096)
for i in range(30):
    buffer = push(buffer, i, row)
print(buffer.sum())
