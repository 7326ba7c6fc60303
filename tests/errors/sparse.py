"""Sparse arrays: buffers that do not fit, results that would be dense, sizes that are not known."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.error_rows import ones, row
from xlamini import grad, jit, lax, numpy as jnp, vmap
from xlamini.errors import ShapeError
from xlamini.experimental import sparse
from xlamini.experimental.sparse import BCOO, BCSR, SparseEfficiencyError, eye, sparsify


def indices(*shape: int) -> Any:
    return jnp.zeros(shape, "int32")


def batched() -> BCOO:
    return BCOO.fromdense(np.ones((2, 3, 4), np.float32), n_batch=1)


NUMBERS = (((1,), (1,)), ((0,), (0,)))

ROWS = [
    row(
        "data", lambda: BCOO((ones(3), indices(2, 2)), shape=(3, 3)), ValueError,
        "data, indices of shapes (3,), (2, 2) do not fit an array of shape (3, 3)", "(*batch, nse, *dense)",
    ),
    row("rank", lambda: BCOO((ones(2), indices(2, 3)), shape=(3, 3)), ValueError, "do not fit"),
    row("vector", lambda: BCOO((ones(2), indices(2)), shape=(3,)), ValueError, "indices of shapes (2,), (2,)"),
    row("batch", lambda: BCOO((ones(2, 3), indices(4, 3, 1)), shape=(4, 5)), ValueError, "do not fit"),
    row("dtype", lambda: BCOO((ones(2), ones(2, 2)), shape=(3, 3)), ValueError, "must be integers, got float32"),
    row("buffers", lambda: BCOO((ones(2),), shape=(3,)), ValueError, "args must be (data, indices), got 1 arrays"),
    row(
        "indptr", lambda: BCSR((ones(2), indices(2), indices(3)), shape=(3, 3)), ValueError,
        "indptr of shapes (2,), (2,), (3,) do not fit", "(*batch, rows + 1)",
    ),
    row("compressed dtype", lambda: BCSR((ones(2), indices(2), ones(4)), shape=(3, 3)), ValueError, "indptr must be"),
    row("no sparse array", lambda: sparse.bcoo_todense(3), TypeError, "bcoo_todense: mat must be a BCOO, got int"),
    row("other format", lambda: sparse.bcsr_todense(eye(3)), TypeError, "bcsr_todense: mat must be a BCSR, got BCOO"),
    row("no matrix", lambda: sparse.coo_matvec(ones(3, 3), ones(3)), TypeError, "mat must be a COO | CSR"),
    row("dense ones", lambda: sparse.bcoo_concatenate([1.0], dimension=0), TypeError, "member of operands must"),
    row("no list", lambda: sparse.bcoo_concatenate(eye(3), dimension=0), TypeError, "must be a list of BCOO"),
    row("numbers", lambda: sparse.bcoo_gather(eye(3), indices(2, 1), NUMBERS, (1,)), TypeError, "GatherDimension"),
    row("layout", lambda: BCOO.fromdense(ones(3), n_batch=2), ValueError, "n_batch=2 and n_dense=0 do not fit"),
    row("nse", lambda: BCOO.fromdense(ones(3), nse=2.0), TypeError, "nse must be an integer, got 2.0"),  # type: ignore[arg-type]
    row("traced", lambda: jit(BCOO.fromdense)(ones(3)), ValueError, "fromdense: the number of entries", "pass nse"),
    row("traced sum", lambda: jit(lambda m: m.sum_duplicates())(eye(3)), ValueError, "pass nse"),
    row("three sparse", lambda: BCSR.fromdense(ones(2, 3, 4)), ValueError, "must have two sparse dimensions"),
    row("add a number", lambda: eye(3) + 1, NotImplementedError, "a number has a dense result", "sparse.todense(x)"),
    row("divide by", lambda: 1 / eye(3), NotImplementedError, "division by a sparse array has a dense result"),
    row("power", lambda: eye(3) ** -1, NotImplementedError, "exponent -1 has a dense result"),
    row("compare", lambda: eye(3) > 0, NotImplementedError, "comparison > has a dense result"),
    row("exp", lambda: sparsify(jnp.exp)(eye(3)), NotImplementedError, "exp has no rule", "sparse.todense(x)"),
    row(
        "fill", lambda: sparsify(lambda x: x.at[jnp.array([7])].get(mode="fill"))(eye(3)), NotImplementedError,
        "must be 'clip' or",
    ),
    row("operand", lambda: jnp.sin(eye(3)), TypeError, "got BCOO"),  # type: ignore[arg-type]
    row("shapes", lambda: eye(3) + eye(4), ShapeError, "Incompatible shapes for"),
    row("product", lambda: eye(3) @ ones(4), ShapeError, "contracting dimensions differ"),
    row(
        "dot", lambda: sparse.bcoo_dot_general(eye(3), ones(4), dimension_numbers=(((1,), (0,)), ((), ()))),
        ShapeError, "bcoo_dot_general: contracting dimensions differ: float32[3,3] has (3,) at (1,)",
    ),
    row(
        "dot of a scalar", lambda: sparse.bcoo_dot_general(eye(3), ones(), dimension_numbers=(((1,), (0,)), ((), ()))),
        ShapeError, "bcoo_dot_general: contracting (0,)", "rhs of type float32[]; it has no dimensions",
    ),
    row(
        "dot numbers", lambda: sparse.bcoo_dot_general(eye(3), ones(3), dimension_numbers=3), TypeError,
        "bcoo_dot_general: dimension_numbers is 3", "write ((lhs_contracting, rhs_contracting)",
    ),
    row(
        "dot batch", lambda: sparse.bcoo_dot_general(eye(3), ones(3, 3), dimension_numbers=NUMBERS),
        NotImplementedError, "must be batch dimensions of its layout", "update_layout(n_batch=...)",
    ),
    row(
        "dot sparse", lambda: sparse.bcoo_dot_general(eye(3), eye(3), dimension_numbers=NUMBERS), NotImplementedError,
        "must be batch dimensions of its layout",
    ),
    row("layouts", lambda: batched() + batched().update_layout(n_batch=0), ValueError, "same n_batch and n_dense"),
    row("larger", lambda: sparse.bcoo_multiply_dense(eye(3), ones(2, 3, 3)), ShapeError, "cannot be broadcast"),
    row("across", lambda: batched().T, NotImplementedError, "moves a dimension across", "update_layout"),
    row("mixed", lambda: batched().reshape(24), ValueError, "mixes batch, sparse and dense dimensions"),
    row("size", lambda: sparse.bcoo_reshape(eye(3), new_sizes=(4,)), ShapeError, "cannot have the shape (4,)"),
    row("places", lambda: sparse.empty((2**20, 2**20)).reshape(-1), ValueError, "int32 cannot number", "int64"),
    row("squeeze", lambda: sparse.bcoo_squeeze(eye(3), dimensions=(0,)), ShapeError, "must have size 1"),
    row(
        "broadcast", lambda: sparse.bcoo_broadcast_in_dim(eye(3), shape=(3, 4), broadcast_dimensions=(0, 1)),
        ShapeError, "shape (3, 3) cannot become the dimensions (0, 1) of shape (3, 4)",
    ),
    row(
        "concatenate", lambda: sparse.bcoo_concatenate([eye(3), eye(4)], dimension=0), ValueError,
        "one shape but for dimension 0",
    ),
    row(
        "concatenate dense", lambda: sparse.bcoo_concatenate([eye(3, n_dense=1)] * 2, dimension=1), NotImplementedError,
        "dimension 1 is dense",
    ),
    row(
        "slice", lambda: sparse.bcoo_slice(eye(3), start_indices=(0, 0), limit_indices=(4, 3)), ShapeError,
        "do not fit the shape (3, 3)",
    ),
    row("dynamic slice", lambda: sparse.bcoo_dynamic_slice(eye(3), (0, 0), (4, 3)), ShapeError, "slice_sizes (4, 3)"),
    row("axis", lambda: sparse.bcoo_reduce_sum(eye(3), axes=(2,)), ValueError, "axis 2 is out of range"),
    row(
        "efficiency", lambda: eye(3).update_layout(n_batch=1), SparseEfficiencyError,
        "increasing n_batch from 0 to 1 stores 3 times the elements", "on_inefficient",
    ),
    row("option", lambda: eye(3).update_layout(on_inefficient="no"), ValueError, "'error', 'warn' or None, got 'no'"),
    row("too many", lambda: eye(3).update_layout(n_batch=2, n_dense=1), ValueError, "n_batch=2 and n_dense=1"),
    row("format", lambda: eye(3, sparse_format="dok"), ValueError, "must be one of ['bcoo', ", "got 'dok'"),
    row("random", lambda: sparse.random_bcoo(jnp.zeros(2, "uint32"), (3,), nse=4), ValueError, "from 0 to 3, got 4"),
    row("map", lambda: vmap(lambda m: m.sum())(eye(3)), ValueError, "only batch dimensions can be mapped, and"),
    row(
        "map another", lambda: vmap(lambda m: m.sum(), in_axes=1)(batched()), ValueError,
        "in_axes of BCOO(float32[2, 3, 4], nse=12, n_batch=1) must be below 1",
    ),
    row(
        "map out", lambda: vmap(lambda x: BCOO.fromdense(x, nse=2), out_axes=1)(ones(3, 4)), ValueError,
        "out_axes of BCOO(float32[4], nse=2) must be below 1",
    ),
    row(
        "scan", lambda: sparsify(lambda x: lax.scan(lambda c, y: (c, y), 0, x))(eye(3)), NotImplementedError,
        "scan along a sparse dimension", "update_layout(n_batch=1)",
    ),
    row("grad", lambda: grad(lambda m: m.sum())(eye(3)), TypeError, "requires real- or complex-valued inputs"),
    row("jacobian", lambda: sparse.jacrev(lambda m: m * 2)(eye(3)), TypeError, "the result must be dense"),
    row("length", lambda: len(eye(3)[0, 0]), TypeError, "a BCOO of rank 0 has no length"),
]
