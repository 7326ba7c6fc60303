"""Import time of the library and its NumPy module."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks.timing import Measurement, Settings, once


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Time the import in a process that has not imported NumPy or jaxlib."""
    seconds, _ = once(load)
    return [Measurement("import", seconds, target=0.45)]
