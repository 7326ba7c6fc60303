"""Entries in order: bcoo_sort_indices and bcoo_sum_duplicates, and which entries are at the same place.

Rows of indices are sorted as they are, column by column, so that no array is too large to have its places numbered.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini import lax, numpy as jnp
from xlamini.core import ConcretizationTypeError
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.entries import columns, mapped, masked, padded, rows_of, within
from xlamini.numpy.segments import segment_sum
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


class Groups(NamedTuple):
    """The entries of one batch in the order of their rows: equal rows are a group."""

    rows: Any
    """The rows in order."""
    order: Any
    """The entry at each place of that order; equal rows keep theirs."""
    starts: Any
    """Whether a group starts there."""

    @property
    def numbers(self) -> Any:
        """The number of each place's group."""
        return jnp.cumsum(self.starts, dtype=jnp.int32) - 1


def grouped(indices: Any) -> Groups:
    """The entries of one batch, grouped by their rows."""
    count = indices.shape[0]
    order = lax.iota(jnp.int32, count)
    *in_order, order = lax.sort([*columns(indices), order], num_keys=max(indices.shape[1], 1))
    starts = lax.iota(jnp.int32, count) == 0
    for column in in_order:
        starts |= jnp.concatenate([starts[:1], column[1:] != column[:-1]])
    return Groups(rows_of(in_order, order.shape, indices.dtype), order, starts)


def is_first(indices: Any) -> Any:
    """A mask of the entries without an earlier one at the same row."""
    groups = grouped(indices)
    return jnp.zeros(indices.shape[0], bool).at[groups.order].set(groups.starts, unique_indices=True)


@takes_sparse
@composite()
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its entries sorted by their indices.

    >>> from xlamini.experimental.sparse import BCOO
    >>> bcoo_sort_indices(BCOO((jnp.array([1, 2]), jnp.array([[2], [0]])), shape=(3,))).data
    Array([2, 1], dtype=int32)
    """

    def in_order(indices: Any, data: Any) -> tuple[Any, Any]:
        groups = grouped(indices)
        return data[groups.order], groups.rows

    data, indices = mapped(in_order, mat.n_batch, mat.indices, mat.data)
    return mat.like(data, indices, indices_sorted=True, unique_indices=mat.unique_indices)


@takes_sparse
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """The array with one entry for each place, in order: entries at the same place are added.

    `nse` is the number of entries of the result: entries beyond it are left out, and padding fills up. By default it is
    the number of different places, of the batch with the most of them; it depends on values, so under `jit` and `vmap`
    it has to be given (else ValueError). With `remove_zeros`, entries that are 0 are left out before the addition.

    >>> from xlamini.experimental.sparse import BCOO
    >>> bcoo_sum_duplicates(BCOO((jnp.array([1, 2, 3]), jnp.array([[2], [0], [2]])), shape=(3,))).data
    Array([2, 4], dtype=int32)
    """
    if nse is None:
        nse = 1 if not mat.n_sparse else known_nse("bcoo_sum_duplicates", _count_places(mat, remove_zeros=remove_zeros))
    return _summed(mat, nse=nse, remove_zeros=remove_zeros)


def known_nse(name: str, count: Any) -> int:
    """A number of entries that was computed; ValueError where it is traced, as the size of a result is static."""
    try:
        return int(count)
    except ConcretizationTypeError:
        raise ValueError(
            f"{name}: the number of entries depends on traced values; pass nse, the number or an upper bound"
        ) from None


@composite(static=("remove_zeros",))
def _count_places(mat: BCOO, *, remove_zeros: bool) -> Any:
    def count(indices: Any, data: Any) -> Any:
        groups, valid = _of_places(mat, indices, data, remove_zeros)
        return (groups.starts & valid).sum()

    return mapped(count, mat.n_batch, mat.indices, mat.data).max(initial=0)


def _of_places(mat: BCOO, indices: Any, data: Any, remove_zeros: bool) -> tuple[Groups, Any]:
    """The groups of a batch's entries, padding last, and a mask of those that count, in order."""
    valid = within(indices, mat.sparse_shape)
    if remove_zeros:
        valid &= (data != 0).any(tuple(range(1, data.ndim)))
    groups = grouped(padded(indices, mat.sparse_shape, valid))
    return groups, valid[groups.order]


@composite(static=("nse", "remove_zeros"))
def _summed(mat: BCOO, *, nse: int, remove_zeros: bool) -> BCOO:
    def one_each(indices: Any, data: Any) -> tuple[Any, Any]:
        groups, valid = _of_places(mat, indices, data, remove_zeros)
        number = groups.numbers
        total = segment_sum(masked(data[groups.order], valid), number, nse, indices_are_sorted=True)
        empty = jnp.broadcast_to(jnp.array(mat.sparse_shape, groups.rows.dtype), (nse, indices.shape[1]))
        return total, empty.at[number].set(groups.rows, mode="drop", indices_are_sorted=True)

    data, indices = mapped(one_each, mat.n_batch, mat.indices, mat.data)
    return mat.like(data.astype(mat.dtype), indices, indices_sorted=True, unique_indices=True)


def lookup(indices: Any, data: Any, queries: Any) -> Any:
    """The elements at the rows `queries` of the sparse array with these entries, of one batch.

    Both kinds of rows are sorted together. A group's total is the element at all of its places.
    """
    rows = jnp.concatenate([indices, queries])
    groups, count = grouped(rows), rows.shape[0]
    nothing = jnp.zeros((queries.shape[0], *data.shape[1:]), data.dtype)
    total = segment_sum(jnp.concatenate([data, nothing])[groups.order], groups.numbers, count, indices_are_sorted=True)
    place = jnp.zeros(count, groups.order.dtype).at[groups.order].set(groups.numbers, unique_indices=True)
    return total[place[indices.shape[0] :]]
