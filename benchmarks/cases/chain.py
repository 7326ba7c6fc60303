"""One long chain of elementwise operations: the cost of tracing and lowering per equation."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import PER_SECOND, Measurement, Settings, once

OPERATIONS_PER_ITERATION = 4


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a chain of 20,000 operations (2,000 when quick)."""
    jax = load()
    length = 2_000 if settings.quick else 20_000
    x = np.linspace(0, 1, 16, dtype=np.float32)
    seconds, _ = once(lambda: jax.jit(_chain_of(jax, length)).lower(x))
    return [
        Measurement(f"chain of {length:,} ops: trace + lower", seconds, target=0.15),
        Measurement(f"chain of {length:,} ops: equations", length / seconds, PER_SECOND),
    ]


def _chain_of(jax: ModuleType, length: int) -> Callable[[Any], Any]:
    def chain(x: Any) -> Any:
        y = x
        for _ in range(length // OPERATIONS_PER_ITERATION):
            y = jax.numpy.tanh(jax.numpy.sin(y) * x + 0.5)
        return y

    return chain
