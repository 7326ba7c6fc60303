"""The two ways in which a kernel goes through an array: by an axis of its grid, or by a loop in each program.

A TPU runs the programs of a grid in order and copies the next block meanwhile: there a kernel has an axis for the
blocks, and scratch memory for what it has so far. A GPU runs programs at the same time, so each has a loop of its own.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini.core import tree_leaves as leaves, tree_map
from xlamini.core.program.form import Platform
from xlamini.staging.run.jit.make_jaxpr import eval_shape
from xlamini.transforms.cond.platform_dependent import platform_dependent


@dataclass(frozen=True)
class Hints:
    """What compilers are told of a kernel: which axes of a TPU's grid run in any order, and the threads of a GPU."""

    dimension_semantics: tuple[str, ...] | None = None
    vmem_limit_bytes: int | None = None
    num_warps: int | None = None
    num_stages: int | None = None


GRID, LOOP = "grid", "loop"


def walk_on(platform: Platform) -> str:
    """The walk of a platform's kernels."""
    return LOOP if platform.is_gpu else GRID


def for_target(call: Callable[..., Any], walk: str | None, *operands: Any) -> Any:
    """`call(walk, *operands)`; without `walk` by a loop on a GPU, by the grid on a TPU and in the scan on a CPU."""
    by_loop, by_grid = functools.partial(call, LOOP), functools.partial(_by_grid, call)
    if walk is not None:
        return (by_loop if walk == LOOP else by_grid)(*operands)
    return platform_dependent(*operands, cuda=by_loop, default=by_grid)


def _by_grid(call: Callable[..., Any], *operands: Any) -> Any:
    """The call in float32 instead of float16, which no TPU loads."""
    by_grid = functools.partial(call, GRID)
    if not any(x.dtype == np.float16 for x in leaves(operands)):
        return by_grid(*operands)
    types = eval_shape(by_grid, *operands)
    outs = by_grid(*tree_map(lambda x: x.astype(np.float32) if x.dtype == np.float16 else x, operands))
    return tree_map(lambda x, kind: x.astype(kind.dtype), outs, types)


def padded_to(size: int, block: int) -> int:
    """The size with the last block filled up."""
    return -(-size // block) * block
