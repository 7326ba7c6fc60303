"""Entries of one batch: rows of indices, and the elements of dense arrays that they address."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini import lax, numpy as jnp


def columns(indices: Any) -> tuple[Any, ...]:
    """The index along each sparse dimension."""
    return tuple(lax.index_in_dim(indices, i, -1, keepdims=False) for i in range(indices.shape[-1]))


def rows_of(columns: Sequence[Any], like: Any) -> Any:
    """Rows of indices from one column for each sparse dimension, in the dtype and of the length of `like`."""
    if not columns:
        return jnp.zeros((*like.shape[:-1], 0), like.dtype)
    return jnp.stack([c.astype(like.dtype) for c in columns], axis=-1)


def picked_columns(indices: Any, dims: Sequence[int]) -> Any:
    """Rows of indices along these sparse dimensions alone."""
    found = columns(indices)
    return rows_of([found[d] for d in dims], indices)


def within(indices: Any, sizes: Sequence[int]) -> Any:
    """A mask of the rows that are within bounds; the others are padding."""
    valid = jnp.ones(indices.shape[:-1], bool)
    for column, size in zip(columns(indices), sizes, strict=True):
        valid &= (column >= 0) & (column < size)
    return valid


def masked(data: Any, valid: Any) -> Any:
    """The data with zeros where a mask of entries is False."""
    return jnp.where(lax.expand_dims(valid, range(valid.ndim, data.ndim)), data, jnp.zeros((), data.dtype))


def padded(indices: Any, valid: Any, sizes: Sequence[int]) -> Any:
    """The rows with those that are not valid replaced by the sizes, which is how padding is written."""
    return jnp.where(valid[..., None], indices, jnp.array(sizes, indices.dtype))


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
