"""Calls of small kernels under checks, for tests."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xlamini.numpy as jnp
from xlamini import ShapeDtypeStruct
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

F32, I32 = "float32", "int32"
TPU, GPU, ANY = (pltpu.InterpretParams(target=target) for target in ("tpu", "gpu", None))


class Parallel(NamedTuple):
    """The params of a compiler that runs axes of the grid at the same time."""

    dimension_semantics: tuple[str, ...]
    vmem_limit_bytes: int | None = None


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(F32)


def ints(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=I32).reshape(shape)


def like(*shape: int, dtype: str = F32) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype)


def rows(size: int, *rest: int) -> pl.BlockSpec:
    """Blocks of some rows, by the last index of the program."""
    return pl.BlockSpec((size, *rest), lambda *ids: (ids[-1], *[0] * len(rest)))


def call(kernel: Callable[..., None], out: Any, params: Any = ANY, **options: Any) -> Callable[..., Any]:
    return pl.pallas_call(kernel, out, interpret=params, **options)


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def copied_by(x: pl.BlockSpec, o: pl.BlockSpec, grid: int, size: int = 8, params: Any = ANY) -> Any:
    """A copy of 8 floats by these blocks."""
    return call(copy, like(size), params, grid=grid, in_specs=[x], out_specs=o)(floats(8))


def matmul(grid: tuple[int, ...], params: Any, order: str, size: int = 8, **options: Any) -> Any:
    """A product of blocks that adds up over the axis k of the grid."""
    k = order.index("k")

    def kernel(x: Any, y: Any, o: Any) -> None:
        start = jnp.where(pl.program_id(k) == 0, 0.0, o[...])
        o[...] = start + jnp.dot(x[...], y[...])

    def blocks(axes: str) -> pl.BlockSpec:
        return pl.BlockSpec((size, size), lambda *ids: tuple(ids[order.index(a)] for a in axes))

    specs = [blocks("ik"), blocks("kj")]
    product = call(kernel, like(2 * size, size), params, grid=grid, in_specs=specs, out_specs=blocks("ij"), **options)
    return product(floats(2 * size, 2 * size), floats(2 * size, size))
