"""The forward pass and the gradient of a recurrent network, with and without a checkpointed step."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Measurement, Settings, each_per_call

STEPS, WIDTH, BATCH = 200, 64, 32
TARGET = 1.05


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a network of width 64 over 200 steps for a batch of 32."""
    jax = load()
    args = jax.device_put(_arguments())
    losses = {"forward": _loss_of(jax, _step_of(jax)), "forward, unrolled": _loss_of(jax, _step_of(jax), unroll=4)}
    gradients = {
        "gradient": losses["forward"],
        "gradient, unrolled": losses["forward, unrolled"],
        "gradient, checkpointed": _loss_of(jax, jax.checkpoint(_step_of(jax), prevent_cse=False)),
    }
    compiled = {what: jax.jit(f) for what, f in losses.items()}
    compiled.update((what, jax.jit(jax.grad(f))) for what, f in gradients.items())
    calls = [(f"RNN, {STEPS} steps: {what}", lambda f=f: f(*args)) for what, f in compiled.items()]
    return each_per_call(jax, calls, settings, TARGET)


def _arguments() -> tuple[dict[str, Any], Any, Any]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32) / np.sqrt(WIDTH)

    params = {"w": normal(WIDTH, WIDTH), "u": normal(WIDTH, WIDTH), "b": normal(WIDTH)}
    return params, normal(BATCH, WIDTH), normal(STEPS, BATCH, WIDTH)


def _step_of(jax: ModuleType) -> Callable[..., Any]:
    def step(params: dict[str, Any], hidden: Any, x: Any) -> tuple[Any, Any]:
        new = jax.numpy.tanh(hidden @ params["w"] + x @ params["u"] + params["b"])
        return new, (new * new).sum()

    return step


def _loss_of(jax: ModuleType, step: Callable[..., Any], unroll: int = 1) -> Callable[..., Any]:
    def loss(params: dict[str, Any], hidden: Any, xs: Any) -> Any:
        _, squares = jax.lax.scan(lambda h, x: step(params, h, x), hidden, xs, unroll=unroll)
        return squares.mean()

    return loss
