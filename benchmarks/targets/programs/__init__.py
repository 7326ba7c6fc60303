"""The programs by family, one file each: `programs(jax)` gives those of the library `jax`, xlamini or JAX."""

from __future__ import annotations

from types import ModuleType

from benchmarks.targets.program import Program
from benchmarks.targets.programs import (
    attention,
    convolutions,
    elementwise,
    indexing,
    linalg,
    loops,
    products,
    random_numbers,
    reductions,
    sorting,
    transformers,
    windows,
)

FAMILIES = (
    products,
    attention,
    transformers,
    convolutions,
    windows,
    loops,
    linalg,
    random_numbers,
    sorting,
    reductions,
    indexing,
    elementwise,
)


def programs(jax: ModuleType) -> dict[str, Program]:
    """All programs by name."""
    return {program.name: program for family in FAMILIES for program in family.programs(jax)}
