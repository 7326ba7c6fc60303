"""A training step of a small transformer, written with array operations only.

The layers are a Python loop, as in most users' code, so the traced program grows with the depth.
Every function takes the library (`jax`) as its first argument. Parameters and tokens are NumPy
arrays, so that creating them fills no cache of the library that is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 64, 4, 32, 8, 128
LEARNING_RATE = 0.01

Params = dict[str, Any]


def init_params(depth: int, seed: int = 0) -> Params:
    """Random parameters of a model with `depth` layers."""
    rng = np.random.default_rng(seed)

    def weight(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    def norm() -> Params:
        return {"scale": np.ones(WIDTH, np.float32), "bias": np.zeros(WIDTH, np.float32)}

    def layer() -> Params:
        return {
            "attention_norm": norm(),
            "qkv": weight(WIDTH, 3 * WIDTH),
            "out": weight(WIDTH, WIDTH),
            "mlp_norm": norm(),
            "up": weight(WIDTH, 4 * WIDTH),
            "up_bias": np.zeros(4 * WIDTH, np.float32),
            "down": weight(4 * WIDTH, WIDTH),
            "down_bias": np.zeros(WIDTH, np.float32),
        }

    return {
        "tokens": weight(VOCABULARY, WIDTH),
        "positions": weight(LENGTH, WIDTH),
        "layers": [layer() for _ in range(depth)],
        "final_norm": norm(),
        "readout": weight(WIDTH, VOCABULARY),
    }


def make_batch(seed: int = 1) -> np.ndarray:
    """Random token sequences, one longer than the model reads: int32[batch, length + 1]."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, VOCABULARY, size=(BATCH, LENGTH + 1), dtype=np.int32)


def make_loss(jax: ModuleType) -> Callable[[Params, Any], Any]:
    """A new function (params, batch) -> loss, the cross-entropy of the next token."""

    def loss(params: Params, batch: Any) -> Any:
        logits = _model(jax, params, batch[:, :-1])
        expected = jax.nn.one_hot(batch[:, 1:], VOCABULARY)
        return -jax.numpy.mean(jax.numpy.sum(expected * jax.nn.log_softmax(logits), axis=-1))

    return loss


def make_step(jax: ModuleType) -> Callable[[Params, Any], tuple[Params, Any]]:
    """A new function (params, batch) -> (new params, loss), one step of gradient descent."""
    loss = make_loss(jax)

    def step(params: Params, batch: Any) -> tuple[Params, Any]:
        value, grads = jax.value_and_grad(loss)(params, batch)
        params = jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads)
        return params, value

    return step


def _model(jax: ModuleType, params: Params, tokens: Any) -> Any:
    table = jax.numpy.asarray(params["tokens"])
    x = table[tokens] + params["positions"]
    for layer in params["layers"]:
        x = x + _attention(jax, layer, _layer_norm(jax, layer["attention_norm"], x))
        x = x + _mlp(jax, layer, _layer_norm(jax, layer["mlp_norm"], x))
    return _layer_norm(jax, params["final_norm"], x) @ params["readout"]


def _layer_norm(jax: ModuleType, params: Params, x: Any) -> Any:
    jnp = jax.numpy
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
    return centered / jnp.sqrt(variance + 1e-5) * params["scale"] + params["bias"]


def _attention(jax: ModuleType, layer: Params, x: Any) -> Any:
    jnp = jax.numpy
    heads = (x @ layer["qkv"]).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
    query, key, value = heads[:, :, 0], heads[:, :, 1], heads[:, :, 2]
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(WIDTH // HEADS).item()
    earlier = jnp.arange(LENGTH)[:, None] >= jnp.arange(LENGTH)
    weights = jax.nn.softmax(jnp.where(earlier, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    return mixed.reshape(BATCH, LENGTH, WIDTH) @ layer["out"]


def _mlp(jax: ModuleType, layer: Params, x: Any) -> Any:
    hidden = jax.nn.gelu(x @ layer["up"] + layer["up_bias"])
    return hidden @ layer["down"] + layer["down_bias"]
