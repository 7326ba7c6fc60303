"""The transformer's training step at twice the depth, to find costs that grow faster than the program."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks.cases.transformer import measure_depth
from benchmarks.timing import Measurement, Settings


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a model of 24 layers."""
    return measure_depth(load(), 24, settings)
