"""A training step of a transformer of flax.nnx by optax."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from benchmarks.ecosystem import measurements, spent, step_stages
from benchmarks.timing import Measurement, Settings

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 128, 32, 64, 4, 6, 8


class Block(nnx.Module):
    """Causal attention and a feed-forward network, both residual."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norms = nnx.List([nnx.LayerNorm(WIDTH, rngs=rngs) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.wide = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.narrow = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: Any, mask: Any) -> Any:
        x = x + self.attention(self.norms[0](x), mask=mask)
        return x + self.narrow(nnx.gelu(self.wide(self.norms[1](x))))


class Transformer(nnx.Module):
    """Blocks between an embedding and its transpose."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])

    def __call__(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        mask = nnx.make_causal_mask(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.embed.attend(x)


@nnx.jit
def train_step(model: Any, optimizer: Any, tokens: Any) -> Any:
    """One update by Adam."""

    def loss(model: Any) -> Any:
        logits = model(tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure the making of the model, then each stage of the step."""
    load()
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, VOCABULARY, (BATCH, LENGTH + 1)), jnp.int32)
    init, model = spent(lambda: Transformer(nnx.Rngs(0)))
    operands = model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param), tokens
    stages = step_stages(
        "nnx transformer",
        lambda: train_step.lower(*operands),
        lambda compiled: compiled(*operands),
        lambda: train_step(*operands),
        jax.block_until_ready,
        settings,
    )
    return [*measurements("nnx transformer", {"init": init}), *stages]
