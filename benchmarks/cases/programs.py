"""The programs of `targets/programs/`, run: what their kernels and cycles, counted there, take by the clock.

Donated arguments are kept, as each call has the same. Programs are compiled in threads, and run alone.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.targets.lower import import_modules
from benchmarks.targets.program import Program, Spec
from benchmarks.targets.programs import elementwise, programs
from benchmarks.timing import Measurement, Settings, each_per_call

Compiled = tuple[Program, Callable[..., Any]]

WORST, MEAN = 1.05, 0.95
COMPILERS = os.cpu_count()


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure each program that compiles, and the mean of all; `--quick` takes those of elementwise functions."""
    jax = load()
    import_modules(jax.__name__)
    with ThreadPoolExecutor(COMPILERS) as pool:
        compiled = list(pool.map(lambda program: _compiled(jax, program), _chosen(jax, settings)))
    measured = [m for each in compiled for m in _measure(jax, *each, settings)]
    seconds = [m.value for m in measured if m.value is not None]
    return [*measured, Measurement("programs, geometric mean", statistics.geometric_mean(seconds), target=MEAN)]


def _chosen(jax: ModuleType, settings: Settings) -> list[Program]:
    found = elementwise.programs(jax) if settings.quick else programs(jax).values()
    return [program for program in found if not program.name.endswith("_3layers")]


def _compiled(jax: ModuleType, program: Program) -> Compiled:
    try:
        return program, jax.jit(program.fun).lower(*program.types(jax)).compile()
    except Exception as error:
        return program, _raising(error)


def _raising(error: Exception) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        raise error

    return run


def _measure(jax: ModuleType, program: Program, run: Callable[..., Any], settings: Settings) -> list[Measurement]:
    """One program's measurement; its arguments exist no longer than that."""
    rng = np.random.default_rng(0)
    args = jax.device_put(program.arguments(jax, lambda spec: _values(rng, spec)))
    return each_per_call(jax, [(f"program: {program.name}", lambda: run(*args))], settings, WORST)


def _values(rng: np.random.Generator, spec: Spec) -> np.ndarray:
    """Numbers between 0 and 1, small integers; equal in each process."""
    dtype = np.dtype(spec.dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 100, spec.shape).astype(dtype)
    return rng.random(spec.shape, np.float32).astype(dtype)
