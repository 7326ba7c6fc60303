"""Cosines of float32, which the compiler computes by way of float64, and weights of many shapes, made once."""
import jax
import jax.numpy as jnp


@jax.jit
def step(x):
    return jax.lax.fori_loop(0, 300, lambda i, c: jnp.cos(c + i), x)


weights = [jax.random.normal(jax.random.key(n), (n, n + 1)) for n in range(2, 14)]
x = jnp.ones((300, 300))
for _ in range(20):
    x = step(x)
print(x.mean() + weights[0].mean())
