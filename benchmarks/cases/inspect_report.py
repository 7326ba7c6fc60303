"""The report on the transformer's training step of 12 layers, beside the compilation of the step.

The bars are 2.5 times the time of the compilation, which is part of it, and a page of 3 MB. Without a report, a library
has the compilation only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from benchmarks import transformer
from benchmarks.timing import BYTES, Measurement, Settings, once

DEPTH = 12


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure the compilation, then the report of a new function with the same source."""
    jax = load()
    params, batch = transformer.init_params(DEPTH), transformer.make_batch()
    compilation, _ = once(lambda: jax.jit(transformer.make_step(jax)).lower(params, batch).compile())
    rows = [Measurement("12 layers: trace, lower, compile", compilation)]
    if not hasattr(jax, "inspect"):
        return rows
    seconds, report = once(lambda: jax.inspect(transformer.make_step(jax))(params, batch))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "step.html"
        report.save(page)
        size = page.stat().st_size
    return [*rows, Measurement("12 layers: report", seconds), Measurement("12 layers: page", size, BYTES)]
