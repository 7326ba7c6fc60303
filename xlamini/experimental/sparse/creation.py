"""New sparse arrays: empty, eye and random_bcoo."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini import numpy as jnp, random
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.experimental.sparse.bcoo import BCOO
from xlamini.experimental.sparse.bcsr import BCSR
from xlamini.experimental.sparse.duplicates import bcoo_sort_indices, bcoo_sum_duplicates
from xlamini.experimental.sparse.entries import fitting, mapped, unraveled
from xlamini.experimental.sparse.layouts import with_layout
from xlamini.experimental.sparse.matrices import COO, CSC, CSR
from xlamini.experimental.sparse.shapes import split_shape
from xlamini.runtime import Array
from xlamini.typing import DTypeLike

FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _in_format(mat: BCOO, sparse_format: str) -> Any:
    if sparse_format not in FORMATS:
        raise ValueError(f"sparse_format must be one of {sorted(FORMATS)}, got {sparse_format!r}")
    return FORMATS[sparse_format].from_bcoo(mat)


@api_boundary
def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = np.int32,
    sparse_format: str = "bcoo",
    *,
    nse: int = 0,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Any:
    """A sparse array of zeros, with `nse` entries of padding. `sparse_format` is "bcoo", "bcsr", "coo", "csr"
    or "csc" (else ValueError).

    >>> empty((2, 3)).todense()
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    batch, sparse, dense = split_shape(shape, n_batch, n_dense)
    data = jnp.zeros((*batch, nse, *dense), dtype)
    indices = jnp.full((*batch, nse, len(sparse)), np.array(sparse, int), fitting(index_dtype, sparse))
    mat = BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)
    return _in_format(mat, sparse_format)


@api_boundary
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = np.int32,
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Any:
    """A sparse array of shape (N, M) with ones on diagonal k. `sparse_format` is "bcoo", "bcsr", "coo", "csr"
    or "csc" (else ValueError).

    >>> eye(2, 3, k=1).todense()
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    columns = N if M is None else M
    row, column = max(0, -k), max(0, k)
    places = jnp.arange(max(0, min(N - row, columns - column)), dtype=fitting(index_dtype, (N, columns)))
    data, indices = jnp.ones(places.size, dtype), jnp.stack([places + row, places + column], 1)
    mat = BCOO((data, indices), shape=(N, columns), indices_sorted=True, unique_indices=True)
    if n_batch or n_dense:
        mat = with_layout(mat, n_batch=n_batch, n_dense=n_dense)
        mat = bcoo_sum_duplicates(mat, nse=1 if n_batch or not mat.n_sparse else mat.nse)
    return _in_format(mat, sparse_format)


@api_boundary
def random_bcoo(
    key: Array,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = float,
    indices_dtype: DTypeLike | None = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array with random elements at random indices.

    `nse` is the number of entries of each batch, or below 1 their share of the places. `generator(key, shape, dtype,
    **kwds)` makes the data. ValueError for more entries than places.

    >>> random_bcoo(random.key(0), (4, 5), nse=0.2)
    BCOO(float32[4, 5], nse=4)
    """
    batch, sparse, dense = split_shape(shape, n_batch, n_dense)
    places = math.prod(sparse)
    count = math.ceil(nse * places) if 0 < nse < 1 else int(nse)
    if count != nse >= 1 or not 0 <= count <= places:
        raise ValueError(f"random_bcoo: nse must be a share below 1, or an integer from 0 to {places}, got {nse}")
    keys = random.split(key, 1 + math.prod(batch))
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)

    def rows(key: Any) -> Any:
        chosen = random.choice(key, places, (count,), replace=not unique_indices)
        return unraveled(chosen, sparse, indices_dtype or np.int32)

    indices = mapped(rows, n_batch, keys[1:].reshape((*batch, *keys.shape[1:])))
    mat = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    if not sorted_indices:
        return mat
    return mat.like(data, bcoo_sort_indices(mat).indices, indices_sorted=True, unique_indices=unique_indices)
