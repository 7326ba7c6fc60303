"""Single operations outside jit, on arrays so small that overhead dominates."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Measurement, Settings, each_per_call

Calls = list[tuple[str, Callable[[], Any]]]


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure arithmetic, reductions, indexing, shape operations, conversions and composites, and their mean."""
    jax = load()
    jnp = jax.numpy
    matrix = jnp.asarray(np.linspace(0.1, 1, 64, dtype=np.float32).reshape(8, 8))
    groups = (_arithmetic, _reductions, _indexing, _shapes, _conversions, _composites)
    calls = [call for group in groups for call in group(jnp, matrix)]
    measured = each_per_call(jax, [(f"eager {what}", call) for what, call in calls], settings)
    seconds = [m.value for m in measured if m.value is not None]
    mean = Measurement("eager operations, geometric mean", statistics.geometric_mean(seconds), target=0.5)
    return [*measured, mean]


def _arithmetic(jnp: ModuleType, x: Any) -> Calls:
    return [
        ("x + y", lambda: x + x),
        ("x * 2", lambda: x * 2),
        ("x @ y", lambda: x @ x),
        ("jnp.sin", lambda: jnp.sin(x)),
        ("jnp.where", lambda: jnp.where(x > 0.5, x, 0.0)),
        ("jnp.clip", lambda: jnp.clip(x, 0.2, 0.8)),
        ("jnp.einsum", lambda: jnp.einsum("ij,kj->ik", x, x)),
    ]


def _reductions(jnp: ModuleType, x: Any) -> Calls:
    return [
        ("jnp.sum", lambda: jnp.sum(x)),
        ("jnp.mean, axis", lambda: jnp.mean(x, axis=0)),
        ("jnp.max", lambda: jnp.max(x)),
        ("jnp.argmax", lambda: jnp.argmax(x)),
    ]


def _indexing(jnp: ModuleType, x: Any) -> Calls:
    rows = jnp.asarray(np.array([3, 1, 2], np.int32))
    row = jnp.asarray(np.int32(3))
    return [
        ("x[2]", lambda: x[2]),
        ("x[2:5]", lambda: x[2:5]),
        ("x[array]", lambda: x[rows]),
        ("x[scalar array]", lambda: x[row]),
        ("x.at[2].set", lambda: x.at[2].set(1.0)),
    ]


def _shapes(jnp: ModuleType, x: Any) -> Calls:
    return [
        ("reshape", lambda: x.reshape(4, 16)),
        ("transpose", lambda: x.T),
        ("concatenate", lambda: jnp.concatenate([x, x])),
        ("stack", lambda: jnp.stack([x, x])),
        ("broadcast_to", lambda: jnp.broadcast_to(x, (3, 8, 8))),
    ]


def _conversions(jnp: ModuleType, x: Any) -> Calls:
    host, scalar = np.ones((8, 8), np.float32), jnp.asarray(np.float32(1))
    return [
        ("jnp.asarray(ndarray)", lambda: jnp.asarray(host)),
        ("np.asarray(array)", lambda: np.asarray(x + x)),
        ("float(scalar)", lambda: float(scalar + scalar)),
        ("jnp.zeros", lambda: jnp.zeros((8, 8))),
        ("jnp.arange", lambda: jnp.arange(8)),
        ("astype", lambda: x.astype(jnp.int32)),
    ]


def _composites(jnp: ModuleType, x: Any) -> Calls:
    """Functions of several operations, one of each family."""
    vector = x[0]
    positive = x @ x.T + 8 * jnp.eye(8)
    return [
        ("jnp.cumsum", lambda: jnp.cumsum(x, axis=1)),
        ("jnp.sort", lambda: jnp.sort(vector)),
        ("jnp.median", lambda: jnp.median(x, axis=1)),
        ("jnp.quantile", lambda: jnp.quantile(vector, 0.25)),
        ("jnp.interp", lambda: jnp.interp(vector, vector, vector)),
        ("jnp.polyval", lambda: jnp.polyval(vector, x)),
        ("jnp.cov", lambda: jnp.cov(x)),
        ("jnp.fft.rfft", lambda: jnp.fft.rfft(vector)),
        ("jnp.linalg.norm", lambda: jnp.linalg.norm(x)),
        ("jnp.linalg.solve", lambda: jnp.linalg.solve(positive, vector)),
        ("jnp.linalg.eigh", lambda: jnp.linalg.eigh(positive)),
    ]
