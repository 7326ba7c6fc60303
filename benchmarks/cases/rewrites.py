"""The cost per equation of differentiation and batching, for programs of 1,000, 10,000 and 100,000 operations.

The time includes tracing and rewriting, but no lowering. A cost per equation that grows with the length shows quadratic
behavior.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import PER_SECOND, Measurement, Settings, once

OPERATIONS_PER_ITERATION = 4
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 4_000)


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure operations per second through jvp, grad and vmap, for each length."""
    jax = load()
    x = np.linspace(0, 1, 16, dtype=np.float32)
    rows = []
    for length in QUICK_LENGTHS if settings.quick else LENGTHS:
        chain = _chain_of(jax, length)
        for name, fun in _rewrites(jax, chain).items():
            seconds, _ = once(lambda fun=fun: jax.make_jaxpr(fun)(x))
            rows.append(Measurement(f"{name} of {length:,} ops: equations", length / seconds, PER_SECOND))
    return rows


def _rewrites(jax: ModuleType, chain: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    return {
        "jvp": lambda x: jax.jvp(chain, (x,), (x,)),
        "grad": jax.grad(lambda x: jax.numpy.sum(chain(x))),
        "vmap": lambda x: jax.vmap(chain)(x),
    }


def _chain_of(jax: ModuleType, length: int) -> Callable[[Any], Any]:
    lax = jax.lax

    def chain(x: Any) -> Any:
        for _ in range(length // OPERATIONS_PER_ITERATION):
            x = lax.tanh(lax.add(lax.mul(lax.sin(x), x), x))
        return x

    return chain
