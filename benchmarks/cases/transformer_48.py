"""The transformer's training step with 48 layers."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks.cases.transformer import measure_depth
from benchmarks.timing import Measurement, Settings


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a model of 48 layers."""
    return measure_depth(load(), 48, settings)
