"""Transformations outside jit, as in a notebook: each call traces, rewrites and runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Measurement, Settings, each_per_call

SIZES = (16, 32, 32, 32, 4)
TARGETS = {"eager grad of a 4-layer MLP": 0.12, "eager vmap(jnp.dot)": 0.2, "eager hessian": 0.12}


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure grad of a small network (eager and under jit), vmap of a dot product, and a Hessian."""
    jax = load()
    params, x = _make_params(jax), jax.numpy.ones((8, SIZES[0]))
    gradient = jax.grad(_loss_of(jax))
    compiled_gradient = jax.jit(gradient)
    point = jax.numpy.asarray(np.linspace(0.5, 1.5, 4, dtype=np.float32))

    def dots() -> Any:
        return jax.vmap(jax.numpy.dot)(x, x)

    def curved(x: Any) -> Any:
        return jax.numpy.sum(jax.numpy.sin(x) * x**3)

    calls = [
        ("eager grad of a 4-layer MLP", lambda: gradient(params, x)),
        ("the same grad under jit", lambda: compiled_gradient(params, x)),
        ("eager vmap(jnp.dot)", dots),
        ("eager hessian", lambda: jax.hessian(curved)(point)),
    ]
    measured = each_per_call(jax, calls, settings)
    return [dataclasses.replace(m, target=TARGETS.get(m.what)) for m in measured]


def _make_params(jax: ModuleType) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape).astype(np.float32) for shape in pairwise(SIZES)]
    return [(jax.numpy.asarray(w), jax.numpy.zeros(w.shape[1])) for w in weights]


def _loss_of(jax: ModuleType) -> Callable[[Any, Any], Any]:
    def loss(params: list[tuple[Any, Any]], x: Any) -> Any:
        for weight, bias in params:
            x = jax.numpy.tanh(x @ weight + bias)
        return jax.numpy.mean(x * x)

    return loss
