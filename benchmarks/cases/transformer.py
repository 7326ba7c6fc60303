"""A transformer's training step: each stage up to its first result, and its steady state.

In a new process each stage is timed at its first execution. Then the step runs until its time is
steady. Finally all caches are cleared, and a new function with the same source is traced and
lowered; this is the cost of the second model of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks import transformer
from benchmarks.timing import Measurement, Settings, once, per_call

WARM_REPEATS = 3
TARGETS = {
    "trace + lower": {12: 0.15},
    "trace + lower, caches cleared": {12: 0.12},
    "time to first step": {12: 0.4, 24: 0.15, 48: 0.1},
    "steady step": {12: 0.95, 24: 0.6, 48: 0.6},
}
"""By measurement and number of layers."""


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a model of 12 layers."""
    return measure_depth(load(), 12, settings)


def measure_depth(jax: ModuleType, depth: int, settings: Settings) -> list[Measurement]:
    """Measure every stage of a model of `depth` layers, right after the import of the library."""
    params, batch = transformer.init_params(depth), transformer.make_batch()
    trace, traced = once(lambda: jax.jit(transformer.make_step(jax)).trace(params, batch))
    lower, lowered = once(traced.lower)
    compile_, step = once(lowered.compile)
    run, (params, _) = once(lambda: jax.block_until_ready(step(params, batch)))
    steady = per_call(jax, lambda: step(params, batch), settings)
    warm = min(_trace_and_lower_again(jax, depth) for _ in range(WARM_REPEATS))
    rows = {
        "trace": trace,
        "lower": lower,
        "trace + lower": trace + lower,
        "trace + lower, caches cleared": warm,
        "compile": compile_,
        "time to first step": trace + lower + compile_ + run,
        "steady step": steady,
    }
    return [
        Measurement(f"{depth} layers: {what}", seconds, target=TARGETS.get(what, {}).get(depth))
        for what, seconds in rows.items()
    ]


def _trace_and_lower_again(jax: ModuleType, depth: int) -> float:
    params, batch = transformer.init_params(depth), transformer.make_batch()
    _clear_caches(jax)
    step = transformer.make_step(jax)
    return once(lambda: jax.jit(step).trace(params, batch).lower())[0]


def _clear_caches(jax: ModuleType) -> None:
    clear = getattr(jax, "clear_caches", None)
    if clear is not None:
        clear()
