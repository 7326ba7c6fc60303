"""The first call of a transformer's training step, of 12, 24 and 48 layers, each with no caches.

The stages of `lower` and `compile` make one program; a call may run a deep program in segments.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks import transformer
from benchmarks.timing import Measurement, Settings, once, per_call

TARGETS = {12: 0.4, 24: 0.2, 48: 0.12}


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure one depth after another, in a process that has compiled nothing before the first."""
    jax = load()
    depths = [12] if settings.quick else TARGETS
    return [measurement for depth in depths for measurement in _of_depth(jax, depth, settings)]


def _of_depth(jax: ModuleType, depth: int, settings: Settings) -> list[Measurement]:
    params, batch = transformer.init_params(depth), transformer.make_batch()
    step = jax.jit(transformer.make_step(jax))
    first, (params, _) = once(lambda: jax.block_until_ready(step(params, batch)))
    steady = per_call(jax, lambda: step(params, batch), settings)
    jax.clear_caches()
    return [
        Measurement(f"{depth} layers: first call", first, target=TARGETS[depth]),
        Measurement(f"{depth} layers: later calls", steady),
    ]
