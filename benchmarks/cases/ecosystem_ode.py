"""A training step of a neural ordinary differential equation: an MLP of equinox in diffrax, by optax."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.ecosystem import measurements, spent, step_stages
from benchmarks.timing import Measurement, Settings

BATCH, SIZE, WIDTH, DEPTH = 32, 2, 64, 2
OPTIMIZER = optax.adam(3e-3)


class Field(eqx.Module):
    """The right side of the equation, learned."""

    mlp: eqx.nn.MLP

    def __call__(self, t: Any, y: Any, args: Any) -> Any:
        return self.mlp(y)


@eqx.filter_jit
def train_step(model: Any, moments: Any, ts: Any, ys: Any) -> Any:
    """One update: the solver chooses its steps, and the gradient goes through checkpoints."""

    def loss(model: Any) -> Any:
        def path(y: Any) -> Any:
            controller = diffrax.PIDController(rtol=1e-3, atol=1e-6)
            save = diffrax.SaveAt(ts=ts)
            terms, solver = diffrax.ODETerm(model), diffrax.Tsit5()
            return diffrax.diffeqsolve(
                terms, solver, ts[0], ts[-1], 0.1, y, saveat=save, stepsize_controller=controller
            ).ys

        return ((jax.vmap(path)(ys[:, 0]) - ys) ** 2).mean()

    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, moments = OPTIMIZER.update(grads, moments)
    return eqx.filter((eqx.apply_updates(model, updates), moments, value), eqx.is_array)


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure the making of the model, then each stage of the step."""
    load()
    rng = np.random.default_rng(0)
    ts = jnp.linspace(0.0, 1.5, 10)
    angles = np.asarray(ts) + rng.uniform(0, 6, (BATCH, 1))
    ys = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], -1), jnp.float32)
    options = {"activation": jax.nn.softplus, "key": jax.random.key(0)}
    init, model = spent(lambda: Field(eqx.nn.MLP(SIZE, SIZE, WIDTH, DEPTH, **options)))
    operands = model, OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array)), ts, ys
    stages = step_stages(
        "neural ODE",
        lambda: train_step.lower(*operands),
        lambda compiled: compiled(*operands),
        lambda: train_step(*operands),
        jax.block_until_ready,
        settings,
    )
    return [*measurements("neural ODE", {"init": init}), *stages]
