"""lax.linalg by eigenvalues and singular values, and scipy.linalg: ranks, shapes, options, what has no derivative."""
from __future__ import annotations

import xlamini
from tests.support.error_rows import ones, row
from xlamini import numpy as jnp
from xlamini.errors import ShapeError
from xlamini.lax import linalg as lapack
from xlamini.scipy import linalg

SQUARE, WIDE = ones(3, 3), ones(2, 3)

ROWS = [
    row("eigh shape", lambda: lapack.eigh(WIDE), ShapeError, "eigh", "square", "float32[2,3]"),
    row("eigh rank", lambda: lapack.eigh(ones(3)), ShapeError, "eigh", "float32[3]", "rank 2"),
    row(
        "eigh half", lambda: lapack.eigh(jnp.eye(2, dtype="float16")), NotImplementedError,
        "no kernel for dtype float16", ".astype('float32')",
    ),
    row("eigh list", lambda: lapack.eigh([[1.0]]), TypeError, "eigh: an array is needed, got list", "jnp.asarray"),
    row(
        "eigh subset", lambda: lapack.eigh(SQUARE, subset_by_index=(1, 4)), ShapeError,
        "subset_by_index is (1, 4)", "3 eigenvalues", "end <= 3",
    ),
    row(
        "eigh algorithm", lambda: lapack.eigh(SQUARE, implementation=lapack.EighImplementation.JACOBI),
        NotImplementedError, "JACOBI is not available on cpu; use QR",
    ),
    row(
        "eigh subset derivative", lambda: xlamini.jvp(
            lambda x: lapack.eigh(x, subset_by_index=(0, 1)), (SQUARE,), (SQUARE,)
        ), NotImplementedError, "eigh has no derivative with subset_by_index",
    ),
    row("svd full subset", lambda: lapack.svd(SQUARE, subset_by_index=(0, 1)), ValueError, "pass full_matrices=False"),
    row(
        "svd subset", lambda: lapack.svd(WIDE, full_matrices=False, subset_by_index=(0, 3)), ShapeError,
        "2 singular values", "subset_by_index is (0, 3)",
    ),
    row(
        "svd algorithm", lambda: lapack.svd(WIDE, algorithm=lapack.SvdAlgorithm.POLAR), NotImplementedError,
        "POLAR is not available on cpu", "QR",
    ),
    row(
        "eig derivative", lambda: xlamini.jvp(lapack.eig, (SQUARE,), (SQUARE,)), NotImplementedError,
        "eig: the derivative of eigenvectors", "enable_eigvec_derivs=True",
    ),
    row("schur derivative", lambda: xlamini.grad(lambda x: lapack.schur(x)[0].sum())(SQUARE), NotImplementedError,
        "schur has no derivative"),
    row("schur sorted", lambda: lapack.schur(SQUARE, sort_eig_vals=True), NotImplementedError, "sort_eig_vals"),
    row("qdwh wide", lambda: lapack.qdwh(WIDE), ShapeError, "qdwh", "not wider than tall", "float32[2,3]"),
    row("hankel scalar", lambda: linalg.hankel(1.0), ShapeError, "hankel: `c` must have one dimension"),
    row("companion short", lambda: linalg.companion(ones(1)), ShapeError, "companion: two coefficients", "(1,)"),
    row("leslie", lambda: linalg.leslie(ones(3), ones(3)), ShapeError, "leslie", "(3,)", "one less than f"),
    row("pascal kind", lambda: linalg.pascal(3, "left"), ValueError, "pascal: kind must be", "'left'"),
    row("hadamard", lambda: linalg.hadamard(3), ValueError, "hadamard: n must be a power of 2, got 3"),
    row("hadamard without end", lambda: linalg.hadamard(2**40), ValueError, "hadamard: n must be from 0 to 16384"),
    row("pascal without end", lambda: linalg.pascal(2**40), ValueError, "pascal: n must be from 0 to 10000"),
    row("lu_solve", lambda: linalg.lu_solve([2.0, 2.0], ones(3)), ShapeError, "lu_solve: a matrix", "float32[]"),
    row("helmert", lambda: linalg.helmert(0), ValueError, "helmert: n must be positive, got 0"),
    row("dft scale", lambda: linalg.dft(3, "m"), ValueError, "dft: scale must be", "'m'"),
    row("dft dtype", lambda: linalg.dft(3, dtype=float), ValueError, "dft: dtype must be complex"),
    row("hilbert traced", lambda: xlamini.jit(lambda n: linalg.hilbert(n))(2), TypeError, "integer of a traced value"),
    row("hilbert float", lambda: linalg.hilbert(2.5), TypeError, "hilbert: n must be an integer, got 2.5"),
    row("convolution mode", lambda: linalg.convolution_matrix(ones(3), 2, "half"), ValueError, "mode must", "'half'"),
    row("block_diag rank", lambda: linalg.block_diag(ones(1, 1, 1)), ShapeError, "(1, 1, 1)", "argument 0"),
    row("toeplitz batch", lambda: linalg.toeplitz(ones(2, 3), ones(3, 3)), ShapeError, "toeplitz: leading axes"),
    row("expm shape", lambda: linalg.expm(WIDE), ShapeError, "expm: square matrices", "float32[2,3]"),
    row("expm half", lambda: linalg.expm(jnp.eye(2, dtype="float16")), TypeError, "expm", "float16", "astype"),
    row("frechet shapes", lambda: linalg.expm_frechet(SQUARE, ones(2, 2)), ShapeError, "A and E must have one shape"),
    row("sqrtm blocks", lambda: linalg.sqrtm(SQUARE, 2), NotImplementedError, "leave out blocksize"),
    row("funm rank", lambda: linalg.funm(ones(2, 3, 3), jnp.exp), ShapeError, "funm", "use vmap"),
    row("rsf2csf sizes", lambda: linalg.rsf2csf(SQUARE, ones(2, 2)), ShapeError, "Z must be of the size of T"),
    row("schur output", lambda: linalg.schur(SQUARE, "imaginary"), ValueError, "output must be", "'imaginary'"),
    row("polar side", lambda: linalg.polar(SQUARE, "up"), ValueError, "polar: side must be", "'up'"),
    row("polar method", lambda: linalg.polar(SQUARE, method="lu"), ValueError, "polar: method must be", "'lu'"),
    row("polar wide", lambda: linalg.polar(WIDE), NotImplementedError, "2 x 3 on the right", "method='svd'"),
    row("qr mode", lambda: linalg.qr(SQUARE, mode="raw"), ValueError, "qr: mode must be", "'raw'"),
    row("qr_multiply shape", lambda: linalg.qr_multiply(SQUARE, ones(2)), ShapeError, "qr_multiply: c is float32[2]"),
    row("solve assume", lambda: linalg.solve(SQUARE, ones(3), assume_a="neg"), ValueError, "assume_a must", "'neg'"),
    row("cho_solve shape", lambda: linalg.cho_solve((SQUARE, True), ones(2)), ShapeError, "cho_solve", "float32[2]"),
    row("lu_solve trans", lambda: linalg.lu_solve((SQUARE, jnp.arange(3)), ones(3), 3), ValueError, "trans must be"),
    row("solve_triangular", lambda: linalg.solve_triangular(SQUARE, ones(3), "X"), ValueError, "trans", "'X'"),
    row("sylvester method", lambda: linalg.solve_sylvester(SQUARE, SQUARE, SQUARE, method="qr"), ValueError, "'qr'"),
    row("sylvester shapes", lambda: linalg.solve_sylvester(SQUARE, ones(2, 2), SQUARE), ShapeError, "C is float32[3"),
    row("eigh generalized", lambda: linalg.eigh(SQUARE, SQUARE), NotImplementedError, "generalized problem"),
    row("tridiagonal lengths", lambda: linalg.eigh_tridiagonal(ones(3), ones(3)), ShapeError, "one element less"),
    row(
        "tridiagonal range", lambda: linalg.eigh_tridiagonal(ones(3), ones(2), select="i"), ValueError,
        "eigh_tridiagonal", "select_range must be",
    ),
]
