"""The transformer's training step with 24 layers, twice the depth, to show superlinear costs."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks.cases.transformer import measure_depth
from benchmarks.timing import Measurement, Settings


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a model of 24 layers."""
    return measure_depth(load(), 24, settings)
