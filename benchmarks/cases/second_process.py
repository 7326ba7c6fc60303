"""The transformer's first step when its compiled program is in the cache on disk.

A child process fills the cache; this process, the second, is measured.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType

from benchmarks import transformer
from benchmarks.timing import Measurement, Settings, once

TARGET = 0.6
_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure a model of 12 layers, from the first trace to the first result."""
    with tempfile.TemporaryDirectory() as folder:
        jax = load()
        code = f"from benchmarks.cases.second_process import first; first({jax.__name__!r}, {folder!r})"
        subprocess.run([sys.executable, "-c", code], check=True)
        return [Measurement("12 layers, second process: time to first step", _first_step(jax, folder), target=TARGET)]


def first(library: str, folder: str) -> None:
    """Run the first step in the child process, which fills the cache."""
    import importlib

    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    _first_step(jax, folder)


def _first_step(jax: ModuleType, folder: str) -> float:
    jax.config.update("jax_compilation_cache_dir", folder)
    for name, value in _SETTINGS.items():
        jax.config.update(name, value)
    return first_step(jax)


def first_step(jax: ModuleType) -> float:
    """Seconds from the first trace to the first result."""
    params, batch = transformer.init_params(12), transformer.make_batch()
    step = jax.jit(transformer.make_step(jax))
    return once(lambda: jax.block_until_ready(step(params, batch)))[0]
