"""Programs of jax2onnx: functions and models for a batch of any size as ONNX, run by ONNX Runtime."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from flax import nnx
from jax2onnx import to_onnx

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda x: jnp.argmax(x, -1),
    "batch_size": lambda x: x / x.shape[0],
    "clip": lambda x: jnp.clip(x, -1, 1),
    "concatenate": lambda x: jnp.concatenate([x, 2 * x], -1),
    "einsum": lambda x: jnp.einsum("bi,bj->bij", x, x),
    "flat": lambda x: x.reshape(-1),
    "flip": lambda x: jnp.flip(x, 1),
    "gelu": jax.nn.gelu,
    "log_softmax": jax.nn.log_softmax,
    "logsumexp": lambda x: jax.nn.logsumexp(x, axis=-1),
    "mean": lambda x: x.mean(0),
    "one_hot": lambda x: jax.nn.one_hot(jnp.argmax(x, -1), 4),
    "pad": lambda x: jnp.pad(x, ((0, 0), (1, 2))),
    "product": lambda x: x @ x.T,
    "silu": jax.nn.silu,
    "slice": lambda x: x[:, 1:3],
    "softmax": jax.nn.softmax,
    "sort": lambda x: jnp.sort(x, -1),
    "stack": lambda x: jnp.stack([x, jnp.tanh(x)], 1),
    "tile": lambda x: jnp.tile(x, (1, 2)),
    "var": lambda x: x.var(-1),
    "where": lambda x: jnp.where(x > 0, x, 0.0),
}


def _sample(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def _converted(function: Callable[[Any], Any], shape: Sequence[Any], *samples: np.ndarray) -> list[np.ndarray]:
    """What ONNX Runtime gives for the samples, after a check that the function itself gives the same."""
    session = onnxruntime.InferenceSession(to_onnx(function, [shape]).SerializeToString())
    name = session.get_inputs()[0].name
    found = [session.run(None, {name: x})[0] for x in samples]
    for x, result in zip(samples, found, strict=True):
        np.testing.assert_allclose(result, np.asarray(function(x)), rtol=1e-4, atol=1e-5)
    return found


def functions_of_any_batch() -> dict[str, list[np.ndarray]]:
    """Each function converted once, with a symbolic batch, and run for one row and for five."""
    samples = _sample(1, 4), _sample(5, 4)
    return {name: _converted(f, ("B", 4), *samples) for name, f in FUNCTIONS.items()}


class _Block(nnx.Module):
    """A transformer's block with one head."""

    def __init__(self, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.qkv, self.out = nnx.Linear(8, 24, rngs=rngs), nnx.Linear(8, 8, rngs=rngs)
        self.wide, self.narrow = nnx.Linear(8, 32, rngs=rngs), nnx.Linear(32, 8, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        q, k, v = jnp.split(self.qkv(self.norm(x)), 3, -1)
        weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / 8**0.5, -1)
        x = x + self.out(weights @ v)
        return x + self.narrow(jax.nn.gelu(self.wide(x)))


class _Convolutions(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first, self.last = nnx.Conv(1, 4, (3, 3), rngs=rngs), nnx.Linear(4 * 4 * 4, 10, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.avg_pool(nnx.relu(self.first(x)), window_shape=(2, 2), strides=(2, 2))
        return self.last(x.reshape(x.shape[0], -1))


def models_of_any_batch() -> dict[str, list[np.ndarray]]:
    """A transformer's block for any batch and any length, a network of convolutions, and one of equinox under vmap."""
    perceptron = equinox.nn.MLP(8, 3, 16, 2, key=jax.random.key(0))
    return {
        "transformer": _converted(_Block(nnx.Rngs(0)), ("B", "T", 8), _sample(3, 5, 8), _sample(1, 7, 8)),
        "convolutions": _converted(_Convolutions(nnx.Rngs(0)), ("B", 8, 8, 1), _sample(3, 8, 8, 1)),
        "equinox": _converted(lambda x: jax.vmap(perceptron)(x), ("B", 8), _sample(1, 8), _sample(4, 8)),
    }
