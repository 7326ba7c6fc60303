"""Peak memory of the process: after the import, after a call of a model of 24 layers, and after compiling it.

xlamini runs a call in segments, so that it is compiled as one program only in the end.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from types import ModuleType

from benchmarks import transformer
from benchmarks.timing import BYTES, Measurement, Settings


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure the peak resident set size."""
    jax = load()
    imported = _peak()
    params, batch = transformer.init_params(24), transformer.make_batch()
    step = jax.jit(transformer.make_step(jax))
    jax.block_until_ready(step(params, batch))
    called = _peak()
    step.lower(params, batch).compile()
    return [
        Measurement("peak memory after import", imported, BYTES, 0.9),
        Measurement("peak memory after a call of 24 layers", called, BYTES, 0.5),
        Measurement("peak memory after compiling 24 layers", _peak(), BYTES, 0.5),
    ]


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
