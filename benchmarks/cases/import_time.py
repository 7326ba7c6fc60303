"""Import time: the library and its NumPy module, in a fresh process."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks.timing import Measurement, Settings, once


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Time the import; this process has imported neither NumPy nor jaxlib before."""
    seconds, _ = once(load)
    return [Measurement("import", seconds, target=0.45)]
