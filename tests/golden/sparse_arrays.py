"""Expressions of sparse arrays, whose buffers equal JAX's: order of entries, padding, and layout.

Both the recorder and the test evaluate them, in a namespace made from the library's own modules. What is not recorded
differs by intention, such as the products of sparse arrays, whose padding comes last here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

EXPRESSIONS = """
m
tb
td
BCOO.fromdense(M, nse=5)
BCOO.fromdense(M, nse=2)
BCOO.fromdense(T, n_batch=2)
m + m
tb + tb
(m + m).sum_duplicates()
(m + m).sum_duplicates(nse=5)
(m + m).sum_duplicates(nse=2)
BCOO((V, I), shape=(5,)).sum_duplicates()
BCOO((V, I), shape=(5,)).sum_duplicates(remove_zeros=False)
BCOO((V, I), shape=(5,)).sort_indices()
m * M
-m
abs(m)
m / 2
m ** 2
m.T
m.T.sort_indices()
m[0]
m[1:3]
m[None]
m[:, None]
m.sum(0)
tb.sum(0)
tb.sum(1)
td.sum(2)
m.reshape(4, 3)
m.reshape(-1)
tb.reshape(2, 12)
td.reshape(6, 4)
m.astype("int32")
sparse.bcoo_extract(m + m, M)
sparse.bcoo_broadcast_in_dim(m, shape=(2, 3, 4), broadcast_dimensions=(1, 2))
sparse.bcoo_concatenate([m, m], dimension=1)
sparse.bcoo_concatenate([tb, tb], dimension=0)
sparse.bcoo_slice(m, start_indices=(0, 1), limit_indices=(3, 4), strides=(2, 2))
sparse.bcoo_dynamic_slice(m, (5, 1), (2, 2))
sparse.bcoo_rev(BCOO.fromdense(M, nse=5), (0,))
sparse.bcoo_squeeze(m[:1], dimensions=(0,))
td.update_layout(n_dense=0)
m.update_layout(n_dense=1, on_inefficient=None)
sparse.eye(3, 4, k=1)
sparse.eye(3, 5, k=-1, n_batch=1)
sparse.eye(3, 4, k=1, n_dense=1)
sparse.eye(3, 4, k=1, n_dense=2)
sparse.eye(3, 4, k=1, n_batch=1, n_dense=1)
sparse.empty((3, 4), nse=2, n_batch=1)
sparse.empty((3, 4), sparse_format="bcsr")
sparse.random_bcoo(random.key(0), (3, 4), nse=0.4)
sparse.random_bcoo(random.key(0), (2, 2, 6), nse=3, n_batch=2)
sparse.random_bcoo(random.key(0), (2, 2, 6), nse=3, n_batch=2, unique_indices=False)
sparse.random_bcoo(random.key(0), (6,), nse=3, generator=random.normal)
sparse.random_bcoo(random.key(0), (3, 4), nse=3, sorted_indices=True)
sparse.grad(lambda x: (x @ V).sum())(m)
sparse.jacfwd(lambda x: x @ V)(m)
sparse.jacrev(lambda x: x @ V)(m)
sparse.sparsify(lambda x: jnp.sin(x) + x.T.reshape(3, 4))(m)
vmap(lambda x: BCOO.fromdense(x, nse=3))(T)
BCSR.fromdense(M, nse=6)
BCSR.fromdense(T, n_batch=1)
BCSR.fromdense(T, n_dense=1)
BCSR.from_bcoo(m.T)
BCSR.fromdense(M, nse=6).to_bcoo()
BCSR.fromdense(M).sum_duplicates(nse=5)
sparse.bcsr_concatenate([BCSR.fromdense(M)] * 2, dimension=0)
sparse.bcsr_concatenate([BCSR.fromdense(M)] * 2, dimension=1)
sparse.bcsr_broadcast_in_dim(BCSR.fromdense(M), shape=(2, 3, 4), broadcast_dimensions=(1, 2))
""".strip().splitlines()


def names(library: Any, sparse: Any) -> dict[str, Any]:
    """The names in the expressions."""
    dense = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
    counts = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    cube = np.where(counts % 3 == 0, counts, np.float32(0))
    of = sparse.BCOO.fromdense
    return {
        **{"sparse": sparse, "BCOO": sparse.BCOO, "BCSR": sparse.BCSR, "jnp": library.numpy, "vmap": library.vmap},
        **{"random": library.random, "M": dense, "T": cube, "m": of(dense), "tb": of(cube, n_batch=1)},
        **{"td": of(cube, n_dense=1), "V": np.array([0.5, 0, 2, 3], np.float32)},
        "I": np.array([[3], [1], [3], [0]], np.int32),
    }


def described(mat: Any) -> dict[str, Any]:
    """An array's layout and its buffers, as JSON."""
    buffers = ("data", "indices", "indptr") if hasattr(mat, "indptr") else ("data", "indices")
    return {"repr": repr(mat), **{name: np.asarray(getattr(mat, name)).ravel().tolist() for name in buffers}}
