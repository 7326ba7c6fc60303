"""Sparse arrays for tests: each layout, with duplicates and with padding of every kind."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.experimental.sparse import BCOO, BCSR

LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]
"""Numbers of batch and of dense dimensions."""


def sample(shape: tuple[int, ...], n_batch: int = 0, n_dense: int = 0, nse: int = 7, seed: int = 0) -> BCOO:
    """A BCOO with `nse` random entries in a batch: two at one place, one out of bounds, one at a negative index."""
    rng = np.random.default_rng(seed)
    batch, sparse = shape[:n_batch], shape[n_batch : len(shape) - n_dense]
    columns = [rng.integers(0, n, (*batch, nse)) for n in sparse]
    indices = np.stack(columns, -1) if sparse else np.zeros((*batch, nse, 0), int)
    data = rng.uniform(0.5, 1.5, (*batch, nse, *shape[len(shape) - n_dense :])) * rng.choice([-1.0, 1.0])
    if sparse:
        indices[..., 1, :] = indices[..., 0, :]
        indices[..., 2, -1] = sparse[-1]
        indices[..., 3, 0] = -1
    return BCOO((data, indices.astype(np.int32)), shape=shape)


def compressed(shape: tuple[int, int], nse: int = 7, seed: int = 0) -> BCSR:
    """A BCSR with a column out of bounds, an empty row, and padding at both ends."""
    rng = np.random.default_rng(seed)
    rows, columns = shape
    indices = rng.integers(0, columns, nse).astype(np.int32)
    indices[2] = columns
    indptr = np.concatenate([[1, 1], np.sort(rng.integers(1, nse, rows - 1))]).astype(np.int32)
    return BCSR((rng.uniform(0.5, 1.5, nse), indices, indptr), shape=shape)


def dense(mat: Any) -> np.ndarray:
    """The dense array, by a loop in NumPy."""
    x = mat.to_bcoo()
    out = np.zeros(x.shape, np.asarray(x.data).dtype)
    sizes, batch = x.sparse_shape, x.shape[: x.n_batch]
    data = np.broadcast_to(np.asarray(x.data), (*batch, *x.data.shape[x.n_batch :]))
    indices = np.broadcast_to(np.asarray(x.indices), (*batch, *x.indices.shape[x.n_batch :]))
    for at in np.ndindex(*batch, x.nse):
        row = tuple(indices[at])
        if all(0 <= i < n for i, n in zip(row, sizes, strict=True)):
            out[(*at[:-1], *row)] += data[at]
    return out


def dense_rows(mat: BCSR) -> np.ndarray:
    """The dense array of a BCSR without batch dimensions, by a loop in NumPy."""
    out, data, columns = np.zeros(mat.shape), np.asarray(mat.data), np.asarray(mat.indices)
    for row, (start, end) in enumerate(zip(mat.indptr[:-1], mat.indptr[1:], strict=True)):
        for i in range(int(start), int(end)):
            if 0 <= columns[i] < mat.shape[1]:
                out[row, columns[i]] += data[i]
    return out
