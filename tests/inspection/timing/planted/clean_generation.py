"""Tokens are generated one by one on the device, with a cache that is donated."""
import functools

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
embedding = jnp.asarray(rng.normal(size=(8000, 128)), "float32")
query, key = (jnp.asarray(rng.normal(size=(128, 128)) / 12, "float32") for _ in range(2))


@functools.partial(jax.jit, donate_argnums=0)
def generate(cache, token, position):
    x = embedding[token]
    cache = jax.lax.dynamic_update_slice(cache, (x @ key)[None], (position, 0))
    scores = jnp.where(jnp.arange(512) <= position, cache @ (query @ x), -jnp.inf)
    x = jnp.tanh(x + jax.nn.softmax(scores) @ cache)
    return cache, jnp.argmax(embedding @ x), position + 1


for _ in range(4):
    cache, token, position, tokens = jnp.zeros((512, 128)), jnp.int32(1), jnp.int32(0), []
    for _ in range(500):
        cache, token, position = generate(cache, token, position)
        tokens.append(token)
print(np.sum(jax.device_get(tokens)))
