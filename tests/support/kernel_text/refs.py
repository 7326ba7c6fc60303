"""Memrefs of Mosaic: NumPy views of a buffer. An access outside of one is an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.kernel_text.machine import KernelTextError, Machine, Op, Rule


def part(ref: np.ndarray, at: Sequence[Any], shape: Sequence[int], strides: Sequence[int] | None = None) -> np.ndarray:
    """The view of the part of this shape that starts at indices."""
    starts, strides = [int(i) for i in at], strides or [1] * ref.ndim
    front = [1] * (ref.ndim - len(shape))
    dims = list(zip(starts, [*front, *shape], strides, ref.shape, strict=True))
    if any(start < 0 or start + (size - 1) * stride >= end for start, size, stride, end in dims):
        raise KernelTextError(f"a part of shape {tuple(shape)} at {starts}, strides {strides}, of a ref {ref.shape}")
    view = ref[tuple(slice(start, start + (size - 1) * stride + 1, stride) for start, size, stride, _ in dims)]
    return view[(0,) * len(front)] if front else view


def same_memory(ref: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """A ref in another shape, which must not be a copy."""
    found = ref.reshape(tuple(shape))
    assert np.shares_memory(found, ref) or not ref.size
    return found


def _load(machine: Machine, op: Op, ref: np.ndarray, *at: Any) -> Any:
    found = part(ref, at, (1,) * ref.ndim).reshape(())
    return found.item() if found.dtype == object else np.array(found)


def _store(machine: Machine, op: Op, value: Any, ref: np.ndarray, *at: Any) -> None:
    part(ref, at, (1,) * ref.ndim)[...] = value


def _slice(machine: Machine, op: Op, ref: np.ndarray, *at: Any) -> np.ndarray:
    return part(ref, at[: ref.ndim], op.kinds[0].shape)


def _reshaped(machine: Machine, op: Op, ref: np.ndarray) -> np.ndarray:
    return same_memory(ref, op.kinds[0].shape)


def _bitcast(machine: Machine, op: Op, ref: np.ndarray) -> np.ndarray:
    if ref.dtype.itemsize != op.kinds[0].dtype.itemsize:
        raise KernelTextError("tpu.memref_bitcast to elements of another size is not known")
    return ref.view(op.kinds[0].dtype)


def _itself(machine: Machine, op: Op, ref: np.ndarray) -> np.ndarray:
    return ref


MEMREFS: dict[str, Rule] = {
    "memref.load": _load, "memref.store": _store,
    "tpu.memref_slice": _slice, "tpu.memref_squeeze": _reshaped, "tpu.memref_reshape": _reshaped,
    "tpu.memref_bitcast": _bitcast, "tpu.erase_memref_layout": _itself, "memref.cast": _itself,
    "memref.memory_space_cast": _itself,
    "memref.dim": lambda machine, op, ref, axis: np.int64(ref.shape[int(axis)]),
}  # fmt: skip
