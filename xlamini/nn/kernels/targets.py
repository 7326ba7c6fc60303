"""The two ways in which a kernel goes through an array: by an axis of its grid, or by a loop in each program.

A TPU runs the programs of a grid in order and copies the next block meanwhile: there a kernel has an axis for the
blocks, and scratch memory for what it has so far. A GPU runs programs at the same time, so each has a loop of its own.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xlamini.transforms.cond.platform_dependent import platform_dependent


@dataclass(frozen=True)
class Hints:
    """What compilers are told of a kernel: which axes of a TPU's grid run in any order, and the threads of a GPU."""

    dimension_semantics: tuple[str, ...] | None = None
    vmem_limit_bytes: int | None = None
    num_warps: int | None = None
    num_stages: int | None = None


GRID, LOOP = "grid", "loop"


def for_target(call: Callable[..., Any], walk: str | None, *operands: Any) -> Any:
    """`call(walk, *operands)`; without `walk` by a loop on a GPU, by the grid on a TPU and in the scan on a CPU."""
    if walk is not None:
        return call(walk, *operands)
    by_loop, by_grid = (functools.partial(call, each) for each in (LOOP, GRID))
    return platform_dependent(*operands, cuda=by_loop, default=by_grid)


def padded_to(size: int, block: int) -> int:
    """The size with the last block filled up."""
    return -(-size // block) * block


def several(outs: Any) -> Sequence[Any]:
    """Results as a sequence, of which there may be one."""
    return outs if isinstance(outs, tuple | list) else [outs]
