"""What the compiler of kernels for GPUs may be told."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TritonParams:
    """How a GPU runs a kernel: `pallas_call(..., compiler_params=pallas.triton.CompilerParams(num_warps=8))`.

    Args:
      num_warps: the number of warps, of 32 threads each, that share one program; a power of two, by default 4.
      num_stages: how many iterations ahead a loop loads its operands, by default 3.

    Raises ValueError for a number of warps that is no power of two, and for a number of stages below 1.

    >>> pl.triton.CompilerParams(num_warps=8).num_warps
    8
    """

    num_warps: int | None = None
    num_stages: int | None = None

    def __post_init__(self) -> None:
        warps, stages = self.num_warps, self.num_stages
        if warps is not None and (warps < 1 or warps & (warps - 1)):
            raise ValueError(f"CompilerParams: num_warps must be a power of two, got {warps}; take 4 or 8")
        if stages is not None and stages < 1:
            raise ValueError(f"CompilerParams: num_stages must be 1 or more, got {stages}")


CompilerParams = TritonParams
