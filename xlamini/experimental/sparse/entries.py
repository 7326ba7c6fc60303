"""Entries: rows of indices and their data, among them padding, in batches whose dimensions may have size 1.

A row has an index along each sparse dimension. A row out of bounds is padding, and is written as the array's sizes.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xlamini import lax, numpy as jnp
from xlamini.transforms.vmap import vmap


def columns(indices: Any) -> tuple[Any, ...]:
    """The index along each sparse dimension."""
    return tuple(lax.index_in_dim(indices, i, -1, keepdims=False) for i in range(indices.shape[-1]))


def rows_of(columns: Sequence[Any], shape: Sequence[int], dtype: Any) -> Any:
    """Rows of indices from a column for each sparse dimension; `shape` is that of a column."""
    if not columns:
        return jnp.zeros((*shape, 0), dtype)
    return jnp.stack([jnp.broadcast_to(c, shape).astype(dtype) for c in columns], axis=-1)


def picked_columns(indices: Any, dims: Sequence[int]) -> Any:
    """Rows of indices along these sparse dimensions alone."""
    found = columns(indices)
    return rows_of([found[d] for d in dims], indices.shape[:-1], indices.dtype)


def fitting(dtype: Any, sizes: Sequence[int]) -> Any:
    """The dtype of indices below these sizes: the given one, or int32 where it cannot hold the sizes."""
    return dtype if max(sizes, default=0) <= jnp.iinfo(dtype).max else jnp.promote_types(dtype, jnp.int32)


def unraveled(places: Any, sizes: Sequence[int], dtype: Any) -> Any:
    """Rows of indices from places in row-major order; a place out of bounds becomes padding."""
    strides = [max(1, math.prod(sizes[d + 1 :])) for d in range(len(sizes))]
    rows = [places // stride % max(1, n) for stride, n in zip(strides, sizes, strict=True)]
    valid = (places >= 0) & (places < math.prod(sizes))
    return padded(rows_of(rows, places.shape, fitting(dtype, sizes)), sizes, valid)


def within(indices: Any, sizes: Sequence[int]) -> Any:
    """A mask of the rows that are within bounds; the others are padding."""
    valid = jnp.ones(indices.shape[:-1], bool)
    for column, size in zip(columns(indices), sizes, strict=True):
        valid &= (column >= 0) & (column < size)
    return valid


def masked(data: Any, valid: Any) -> Any:
    """The data with zeros where a mask of entries is False."""
    return jnp.where(lax.expand_dims(valid, range(valid.ndim, data.ndim)), data, jnp.zeros((), data.dtype))


def padded(indices: Any, sizes: Sequence[int], valid: Any = None) -> Any:
    """The rows with padding in place of those that are not `valid`: by default, of those out of bounds."""
    valid = within(indices, sizes) if valid is None else valid
    return jnp.where(valid[..., None], indices, jnp.array(sizes, fitting(indices.dtype, sizes)))


def values_at(array: Any, rows: Any, fill: Any = 0) -> Any:
    """The elements of `array` at these rows, which index its first dimensions; `fill` for padding."""
    if not rows.shape[-1]:
        return jnp.broadcast_to(array, (rows.shape[0], *array.shape))
    return array.at[columns(rows)].get(mode="fill", fill_value=fill, wrap_negative_indices=False)


def added_at(rows: Any, data: Any, shape: Sequence[int], is_sorted: bool = False, is_unique: bool = False) -> Any:
    """Zeros of this shape, with each entry's data added at its row; padding is dropped."""
    if not rows.shape[-1]:
        return data.sum(0, dtype=data.dtype)
    at = jnp.zeros(shape, data.dtype).at[columns(rows)]
    hints = {"indices_are_sorted": is_sorted, "unique_indices": is_unique}
    return at.add(data, mode="drop", wrap_negative_indices=False, **hints)


def mapped(fun: Callable[..., Any], n_batch: int, *operands: Any) -> Any:
    """`fun` mapped over the first `n_batch` dimensions of all operands; a dimension of size 1 is broadcast.

    An operand is mapped only along dimensions of which it has more than one element, so that nothing is copied.
    """
    if n_batch == 0:
        return fun(*operands)
    size = max((x.shape[0] for x in operands), key=lambda n: (n != 1, n))
    axes = tuple(0 if x.shape[0] == size else None for x in operands)
    slices = [x if axis == 0 else lax.squeeze(x, (0,)) for x, axis in zip(operands, axes, strict=True)]
    return vmap(lambda *xs: mapped(fun, n_batch - 1, *xs), in_axes=axes)(*slices)


def full_batch(x: Any, batch: tuple[int, ...]) -> Any:
    """A buffer with its batch dimensions broadcast to their full sizes."""
    return jnp.broadcast_to(x, (*batch, *x.shape[len(batch) :]))


def fits_batch(found: tuple[int, ...], expected: tuple[int, ...], n_batch: int) -> bool:
    """Whether a buffer's shape is as expected, but for batch dimensions of size 1."""
    if len(found) != len(expected):
        return False
    return all(n == m or (n == 1 and i < n_batch) for i, (n, m) in enumerate(zip(found, expected, strict=True)))
