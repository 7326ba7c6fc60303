"""A recurrent network as a scan, with its gradient."""
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(parameters, xs):
    def loss(parameters):
        u, v = parameters

        def cell(h, x):
            h = jnp.tanh(h @ u + x @ v)
            return h, h.mean()

        return jax.lax.scan(cell, jnp.zeros((256, 128)), xs)[1].mean()

    slopes = jax.grad(loss)(parameters)
    return jax.tree.map(lambda p, s: p - 0.1 * s, parameters, slopes)


rng = np.random.default_rng(0)
parameters = tuple(jnp.asarray(rng.normal(size=(n, 128)) / 16, "float32") for n in (128, 64))
xs = jnp.asarray(rng.normal(size=(30, 256, 64)), "float32")
for _ in range(80):
    parameters = step(parameters, xs)
print(parameters[0].mean())
