"""What a kernel tells the compiler of a GPU: `pallas.triton.CompilerParams`."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TritonParams:
    """The parameters of Triton for one kernel: the warps of a program, and the stages of its loops' pipelines.

    Raises ValueError for a number of warps that is no power of two.

    >>> pl.triton.CompilerParams(num_warps=8).num_warps
    8
    """

    num_warps: int | None = None
    num_stages: int | None = None

    def __post_init__(self) -> None:
        warps = self.num_warps
        if warps is not None and (warps < 1 or warps & (warps - 1)):
            raise ValueError(f"CompilerParams: num_warps must be a power of two, got {warps}")


CompilerParams = TritonParams
