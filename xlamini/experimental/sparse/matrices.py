"""COO, CSR and CSC: matrices in the formats of SciPy, without batch and dense dimensions, and their functions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import api_boundary_methods
from xlamini.core.pytree import register_pytree_with_keys_class
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from xlamini.experimental.sparse.bcsr import BCSR
from xlamini.experimental.sparse.operators import SparseOperators
from xlamini.runtime import Array
from xlamini.typing import ArrayLike, DTypeLike


class Matrix(SparseOperators):
    """A sparse matrix; operations other than on the data alone return a BCOO."""

    shapes = "vectors of one length, with an indptr of one more than its dimension"
    index_rank = 1
    n_sparse = 2

    pointers: int | None = None
    """The dimension whose rows, or columns, `indptr` delimits; None for coordinates."""

    def _own_shapes(self, sizes: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
        last = self.nse if self.pointers is None else sizes[self.pointers] + 1
        return (self.nse, *sizes[2:]), (self.nse,), (last,)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> Self:
        """The matrix of a BCOO without batch and dense dimensions."""
        raise NotImplementedError

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> Self:
        """The matrix with the nonzero elements of a dense one, as `bcoo_fromdense`."""
        return cls.from_bcoo(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype))


@register_pytree_with_keys_class
class COO(Matrix):
    """A sparse matrix of coordinates: `COO((data, row, col), shape=shape)`, with vectors of one length.

    >>> COO((jnp.array([2.0, 3.0]), jnp.array([0, 1]), jnp.array([1, 0])), shape=(2, 2)).todense()
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """

    buffers: ClassVar[tuple[str, str, str]] = ("data", "row", "col")
    row: Array
    col: Array
    indices: Array = property(lambda self: self.row)  # type: ignore[assignment]

    def __init__(self, args: Any, *, shape: Any, rows_sorted: bool = False, cols_sorted: bool = False):
        super().__init__(args, shape=shape)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> COO:
        return cls((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        return BCOO((self.data, jnp.stack([self.row, self.col], -1)), shape=self.shape)


class _Compressed(Matrix):
    """A matrix whose entries are listed by row, or by column: a BCSR of the matrix, or of its transpose."""

    buffers: ClassVar[tuple[str, ...]] = ("data", "indices", "indptr")
    indptr: Array

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> Self:
        rows = BCSR.from_bcoo(mat.T if cls.pointers else mat)
        return cls((rows.data, rows.indices, rows.indptr), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        *batch, n, m = range(self.ndim)  # derivatives have batch dimensions
        order = (*batch, m, n) if self.pointers else (*batch, n, m)
        mat = BCSR((self.data, self.indices, self.indptr), shape=[self.shape[d] for d in order]).to_bcoo()
        return mat.transpose(order) if self.pointers else mat


@register_pytree_with_keys_class
class CSR(_Compressed):
    """A sparse matrix with compressed rows: `CSR((data, indices, indptr), shape=shape)`, a BCSR of rank 2.

    >>> CSR((jnp.array([2.0, 3.0]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2)).todense()
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """

    pointers: int | None = 0


@register_pytree_with_keys_class
class CSC(_Compressed):
    """A sparse matrix with compressed columns: `CSC((data, indices, indptr), shape=shape)`.

    >>> CSC((jnp.array([2.0, 3.0]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2)).todense()
    Array([[0., 3.],
           [2., 0.]], dtype=float32)
    """

    pointers: int | None = 1


for _format in (Matrix, COO, _Compressed):
    api_boundary_methods(_format)


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
    """The COO matrix of a dense one.

    >>> coo_fromdense(jnp.eye(2)).row
    Array([0, 1], dtype=int32)
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The CSR matrix of a dense one.

    >>> csr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


@takes_sparse
def coo_todense(mat: COO | CSR) -> Array:
    """The dense matrix of a COO or CSR one.

    >>> coo_todense(coo_fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()


@takes_sparse
def coo_matmat(mat: COO | CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a COO or CSR matrix, or of its transpose, with a dense matrix.

    >>> coo_matmat(coo_fromdense(jnp.eye(2)), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return (mat.T if transpose else mat) @ B


@takes_sparse
def coo_matvec(mat: COO | CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a COO or CSR matrix, or of its transpose, with a vector.

    >>> coo_matvec(coo_fromdense(jnp.eye(2)), jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return (mat.T if transpose else mat) @ v


csr_todense: Final = coo_todense
csr_matmat: Final = coo_matmat
csr_matvec: Final = coo_matvec
