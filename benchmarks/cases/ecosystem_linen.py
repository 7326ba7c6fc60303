"""A training step of a residual network of flax.linen with batch statistics, by optax."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from benchmarks.ecosystem import measurements, spent, step_stages
from benchmarks.timing import Measurement, Settings

WIDTHS, BLOCKS, BATCH, CLASSES = (16, 32, 64), 3, 8, 10


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    width: int
    stride: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        strides = (self.stride, self.stride)
        y = nn.Conv(self.width, (3, 3), strides, use_bias=False)(x)
        y = nn.relu(nn.BatchNorm(use_running_average=False)(y))
        y = nn.Conv(self.width, (3, 3), use_bias=False)(y)
        y = nn.BatchNorm(use_running_average=False)(y)
        if x.shape != y.shape:
            x = nn.Conv(self.width, (1, 1), strides, use_bias=False)(x)
        return nn.relu(x + y)


class ResNet(nn.Module):
    """Twenty layers for images of 32 x 32 pixels."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(WIDTHS[0], (3, 3), use_bias=False)(x)))
        for i, width in enumerate(WIDTHS):
            for j in range(BLOCKS):
                x = Block(width, 2 if i and not j else 1)(x)
        return nn.Dense(CLASSES)(x.mean((1, 2)))


class State(TrainState):
    """Parameters, moments and the statistics of batches."""

    statistics: Any


@jax.jit
def train_step(state: State, images: Any, labels: Any) -> Any:
    """One update by SGD with momentum."""

    def loss(params: Any) -> Any:
        variables = {"params": params, "batch_stats": state.statistics}
        logits, changed = state.apply_fn(variables, images, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed["batch_stats"]

    (value, statistics), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, statistics=statistics), value


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure `init`, then each stage of the step."""
    load()
    rng = np.random.default_rng(0)
    images = jnp.asarray(rng.standard_normal((BATCH, 32, 32, 3)), jnp.float32)
    labels = jnp.asarray(rng.integers(0, CLASSES, BATCH), jnp.int32)
    model = ResNet()
    init, variables = spent(lambda: jax.block_until_ready(model.init(jax.random.key(0), images)))
    state = State.create(
        apply_fn=model.apply,
        params=variables["params"],
        tx=optax.sgd(0.1, momentum=0.9),
        statistics=variables["batch_stats"],
    )
    operands = state, images, labels
    stages = step_stages(
        "linen ResNet",
        lambda: train_step.lower(*operands),
        lambda compiled: compiled(*operands),
        lambda: train_step(*operands),
        jax.block_until_ready,
        settings,
    )
    return [*measurements("linen ResNet", {"init": init}), *stages]
