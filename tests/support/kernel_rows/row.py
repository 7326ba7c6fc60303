"""A row of the table: a kernel, its operands, and what NumPy says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import xlamini
from xlamini.experimental import pallas as pl

BOTH = ("cuda", "tpu")


class Row(NamedTuple):
    """One kernel. `expected` takes the operands and returns the results; `targets` are the platforms that have it."""

    name: str
    call: Callable[..., Any]
    operands: Sequence[np.ndarray]
    expected: Callable[..., Any]
    tolerance: float = 1e-5
    targets: tuple[str, ...] = BOTH


def floats(*shape: int, dtype: Any = np.float32, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Random numbers."""
    return np.random.default_rng(seed + math.prod(shape)).uniform(low, high, shape).astype(np.float32).astype(dtype)


def ints(*shape: int, dtype: Any = np.int32, seed: int = 0) -> np.ndarray:
    """Random integers, of all the bits, with small numbers and the ends among them."""
    rng, ends = np.random.default_rng(seed + math.prod(shape)), np.iinfo(dtype)
    found = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    small = rng.integers(max(ends.min, -9), 9, shape).astype(dtype)
    found = np.where(rng.random(shape) < 0.5, small, found)
    found.flat[:4] = ends.min, ends.max, 0, 1
    return found


def bools(*shape: int, seed: int = 0) -> np.ndarray:
    """Random bits."""
    return np.random.default_rng(seed + math.prod(shape)).random(shape) < 0.5


def numbers_of(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers of any dtype."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return bools(*shape, seed=seed)
    return (ints if kind in "iu" else floats)(*shape, dtype=dtype, seed=seed)


def like(shape: Sequence[int], dtype: Any) -> Any:
    """The type of a result."""
    return xlamini.ShapeDtypeStruct(tuple(shape), dtype)


def of_whole_arrays(functions: Sequence[Callable[..., Any]], outs: Sequence[Any]) -> Callable[..., Any]:
    """The call of a kernel that applies each function to the whole operands."""

    def kernel(*refs: Any) -> None:
        values = [r[...] for r in refs[: len(refs) - len(outs)]]
        for function, out in zip(functions, refs[len(refs) - len(outs) :], strict=True):
            out[...] = function(*values)

    return pl.pallas_call(kernel, list(outs))


TOLERANCES = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def tolerance_of(dtype: Any) -> float:
    """How far apart results of a dtype may be."""
    return TOLERANCES.get(np.dtype(dtype).name, 0.0)
