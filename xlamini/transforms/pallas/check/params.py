"""`InterpretParams`: how the checking interpreter runs a kernel, and what it looks for."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_CHOICES = {
    "target": (None, "tpu", "gpu"),
    "out_of_bounds_reads": ("raise", "uninitialized"),
    "uninitialized_memory": ("nan", "zero"),
    "dma_execution_mode": ("eager", "on_wait"),
    "buffer_bounds": ("logical", "padded"),
}


@dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """Run a kernel's programs one by one on the CPU, and find mistakes that a target would hide.

    As `interpret=InterpretParams(target="gpu")`; each mistake is a KernelCheckError with the program, the ref and the
    user's line.

    Args:
      target: "tpu" runs the grid in order, but for the axes that `dimension_semantics` says are parallel, and has the
        TPU's rules on tiles and memory; "gpu" runs all programs at the same time, with a GPU's rules. None runs the
        grid in order without rules of a target.
      detect_races: with no target, whether programs are to be independent, as they must be on a GPU.
      out_of_bounds_reads: "uninitialized" gives undefined values for elements beyond a ref, and no error until a result
        depends on them.
      uninitialized_memory: "zero" lets kernels read memory that nothing wrote.
      skip_floating_point_ops: results of floating point are infinite, which is faster and finds mistakes of indices.
      random_seed: programs along parallel axes run in an order by this seed.
      num_cores_or_threads: more than 1 share the parallel axes of a TPU's grid.
      grid_point_recorder: is called with the indices of each program and the number of its core, before it runs.
      dma_execution_mode: whether an async copy copies at its start or when it is waited for.
      vector_clock_size, logging_mode, allow_hbm_allocation_in_run_scoped, buffer_bounds: accepted for compatibility,
        and ignored.

    >>> InterpretParams(target="gpu").target
    'gpu'
    """

    target: str | None = None
    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[..., Any] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"InterpretParams: {name} must be {' or '.join(map(repr, choices))}, got {getattr(self, name)!r}"
                )
