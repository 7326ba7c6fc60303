"""Failing programs of numpy.linalg and lax.linalg."""

from __future__ import annotations

import xlamini
from tests.support.error_rows import ones, row
from xlamini import lax, numpy as jnp
from xlamini.errors import ShapeError

HALF = ones(2, 2, dtype="bfloat16")

ROWS = [
    row("inv of a rectangle", lambda: jnp.linalg.inv(ones(2, 3)), ShapeError, "inv: square matrices", "float32[2,3]"),
    row("det of a vector", lambda: jnp.linalg.det(ones(3)), ShapeError, "det: a matrix", "float32[3]", "rank 2"),
    row("det of a list", lambda: jnp.linalg.det([[1.0]]), TypeError, "det", "list", "jnp.asarray"),
    row("slogdet: method", lambda: jnp.linalg.slogdet(ones(2, 2), method="x"), ValueError, "'x'", "'lu' or 'qr'"),
    row("solve: rows", lambda: jnp.linalg.solve(ones(2, 2), ones(3)), ShapeError, "float32[2,2]", "float32[3]"),
    row("solve: stack of vectors", lambda: jnp.linalg.solve(ones(4, 2, 2), ones(4, 2)), ShapeError, "b[..., None]"),
    row("solve: stacks", lambda: jnp.linalg.solve(ones(4, 2, 2), ones(3, 2, 1)), ShapeError, "do not broadcast"),
    row("lstsq: rows", lambda: jnp.linalg.lstsq(ones(2, 2), ones(3)), ShapeError, "lstsq", "as many rows"),
    row("pinv: both tolerances", lambda: jnp.linalg.pinv(ones(2, 2), 0.1, rcond=0.1), ValueError, "rtol and rcond"),
    row("matrix_rank: both", lambda: jnp.linalg.matrix_rank(ones(2, 2), 0.1, tol=0.1), ValueError, "rtol and tol"),
    row("cond: empty", lambda: jnp.linalg.cond(ones(0, 3)), ShapeError, "no elements"),
    row("cond: not square", lambda: jnp.linalg.cond(ones(2, 3), 1), ShapeError, "p=1", "p=2 takes others"),
    row("qr: mode", lambda: jnp.linalg.qr(ones(2, 2), "thin"), ValueError, "'thin'", "'reduced'"),
    row("eigh: UPLO", lambda: jnp.linalg.eigh(ones(2, 2), "X"), ValueError, "UPLO is 'X'", "'L' or 'U'"),
    row("norm: vector ord", lambda: jnp.linalg.norm(ones(2), "fro"), ValueError, "'fro' is not a norm of vectors"),
    row("norm: matrix ord", lambda: jnp.linalg.norm(ones(2, 2), 3), ValueError, "3 is not a norm of matrices"),
    row("norm: axes", lambda: jnp.linalg.norm(ones(2, 2, 2), 1), ValueError, "one axis or two", "(0, 1, 2)"),
    row("norm: axis", lambda: jnp.linalg.norm(ones(2), axis=2), ValueError, "axis 2 is out of range"),
    row("matrix_power: n", lambda: jnp.linalg.matrix_power(ones(2, 2), 2.0), TypeError, "n must be an integer", "2.0"),
    row("multi_dot: one", lambda: jnp.linalg.multi_dot([ones(2, 2)]), ValueError, "two matrices at least", "got 1"),
    row("multi_dot: sizes", lambda: jnp.linalg.multi_dot([ones(2, 3), ones(2, 3)]), ShapeError, "first of the next"),
    row("tensorinv: ind", lambda: jnp.linalg.tensorinv(ones(2, 2), ind=0), ValueError, "ind must be positive"),
    row("tensorsolve", lambda: jnp.linalg.tensorsolve(ones(2, 3), ones(2)), ShapeError, "as many elements"),
    row("cross: length", lambda: jnp.cross(ones(4), ones(3)), ShapeError, "2 or 3 elements", "4 and 3"),
    row("linalg.cross: plane", lambda: jnp.linalg.cross(ones(2), ones(2)), ShapeError, "3 elements along axis -1"),
    row("linalg.outer", lambda: jnp.linalg.outer(ones(2, 2), ones(2)), ShapeError, "two vectors", "ravel"),
    row("cholesky of halves", lambda: jnp.linalg.cholesky(HALF), NotImplementedError, "bfloat16", ".astype"),
    row("lax cholesky", lambda: lax.linalg.cholesky(ones(2, 3)), ShapeError, "cholesky takes square", "float32[2,3]"),
    row("lax lu of ints", lambda: lax.linalg.lu(ones(2, 2, dtype="int32")), TypeError, "lu does not accept", "int32"),
    row("lax qr of a vector", lambda: lax.linalg.qr(ones(2)), ShapeError, "qr takes a matrix", "float32[2]"),
    row(
        "triangular_solve: dtypes",
        lambda: lax.linalg.triangular_solve(ones(2, 2), ones(2, 2, dtype="complex64")),
        TypeError,
        "float32[2,2], complex64[2,2]",
        ".astype",
    ),
    row(
        "triangular_solve: sizes",
        lambda: lax.linalg.triangular_solve(ones(2, 2), ones(3, 3), left_side=True),
        ShapeError,
        "as many rows",
    ),
    row(
        "triangular_solve: batches",
        lambda: lax.linalg.triangular_solve(ones(2, 2), ones(3, 2, 2)),
        ShapeError,
        "same batch dimensions",
    ),
    row(
        "householder_product: wide",
        lambda: lax.linalg.householder_product(ones(2, 3), ones(2)),
        ShapeError,
        "no fewer rows than columns",
    ),
    row(
        "householder_product has no derivative",
        lambda: xlamini.grad(lambda x: lax.linalg.householder_product(x, ones(2)).sum())(ones(2, 2)),
        xlamini.errors.MissingRule,
        "householder_product",
        "jvp",
    ),
    row("ormqr: sizes", lambda: lax.linalg.ormqr(ones(3, 2), ones(2), ones(2, 2)), ShapeError, "as many rows"),
    row(
        "tridiagonal: shapes",
        lambda: lax.linalg.tridiagonal_solve(ones(2), ones(3), ones(3), ones(3, 1)),
        ShapeError,
        "dl is",
    ),
    row("cholesky_update", lambda: lax.linalg.cholesky_update(ones(2, 2), ones(3)), ShapeError, "sizes must agree"),
    row("symmetric_product", lambda: lax.linalg.symmetric_product(ones(2, 3), ones(3, 3)), ShapeError, "c_matrix"),
    row("pivots", lambda: lax.linalg.lu_pivots_to_permutation(jnp.arange(3), 2), ShapeError, "permutation of 2"),
    row(
        "lstsq: traced residuals",
        lambda: xlamini.jit(lambda a, b: jnp.linalg.lstsq(a, b, numpy_resid=True))(ones(3, 2), ones(3)),
        xlamini.errors.TracerBoolConversionError,
        "depends on",
    ),
]
