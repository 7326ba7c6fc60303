"""What a kernel tells the compiler of a TPU: `pallas.tpu.CompilerParams`."""
from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class GridDimensionSemantics(enum.StrEnum):
    """In which order the programs along an axis of the grid run: any, or one after the other.

    >>> GridDimensionSemantics.PARALLEL.value
    'parallel'
    """

    PARALLEL = "parallel"
    ARBITRARY = "arbitrary"


PARALLEL, ARBITRARY = GridDimensionSemantics


@dataclass(frozen=True)
class MosaicParams:
    """The parameters of a TPU's compiler for one kernel.

    Args:
      dimension_semantics: for each axis of the grid "parallel", if its programs may run in any order, or "arbitrary".
      vmem_limit_bytes: the memory that the kernel may have for its blocks and buffers.
      has_side_effects: whether the kernel stays though nobody uses its results.
      disable_bounds_checks: leave out the checks that accesses are within their buffers.
      allow_input_fusion: for each operand, whether its computation may become part of the kernel.
      flags, internal_scratch_in_bytes, collective_id: for the compiler as they are.

    Raises ValueError for another semantics.

    >>> pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")).dimension_semantics
    ('parallel', 'arbitrary')
    """

    dimension_semantics: Sequence[str] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool = False
    flags: Any = None
    internal_scratch_in_bytes: int | None = None
    disable_bounds_checks: bool = False

    def __post_init__(self) -> None:
        for semantics in self.dimension_semantics or ():
            if semantics not in [s.value for s in GridDimensionSemantics]:
                raise ValueError(
                    f"CompilerParams: dimension_semantics are 'parallel' or 'arbitrary', got {semantics!r}; a kernel "
                    "runs on one core"
                )
        for name in ("dimension_semantics", "allow_input_fusion", "flags"):
            object.__setattr__(self, name, _hashable(getattr(self, name)))


def _hashable(x: Any) -> Any:
    if isinstance(x, Mapping):
        return tuple(sorted(x.items()))
    return x if x is None else tuple(x)


CompilerParams = MosaicParams
