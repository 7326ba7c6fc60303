"""The transformer's first step in a second process, with the default settings of the cache on disk.

xlamini keeps programs that took long to compile among the user's caches, JAX keeps none. The user's caches are in a
temporary folder, which a child process fills; this process, the second, is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType

from benchmarks.cases.second_process import first_step
from benchmarks.timing import Measurement, Settings

TARGET = 0.25
WHAT = "12 layers, second process, nothing set: time to first step"


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a model of 12 layers, from the first trace to the first result."""
    os.environ.pop("XLAMINI_COMPILATION_CACHE_DIR", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        jax = load()
        code = f"from benchmarks.cases.second_process_unasked import first; first({jax.__name__!r})"
        subprocess.run([sys.executable, "-c", code], check=True)
        return [Measurement(WHAT, first_step(jax), target=TARGET)]


def first(library: str) -> None:
    """Run the first step in the child process, which fills the cache."""
    import importlib

    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    first_step(jax)
