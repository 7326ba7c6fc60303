"""Rows of lax.linalg without iterations: cholesky, lu, qr, triangular and tridiagonal systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import xlamini.numpy as jnp
from tests.rows.row import COMPLEXES, Arg, Array, Row, random_array
from xlamini.lax import linalg
from xlamini.primitives.linalg.householder import geqp3, geqrf

KERNELS = ("float32", "float64", *COMPLEXES)
REALS = ("float32", "float64")
LOOSE = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-11, "complex128": 1e-11}


def definite(*shape: int) -> Arg:
    """Hermitian positive definite matrices."""

    def values(rng: np.random.Generator, dtype: np.dtype) -> Array:
        x = random_array(shape, (-1, 1), dtype, rng)
        return x @ x.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1])

    return Arg(shape, values=values)


def dominant(*shape: int) -> Arg:
    """Matrices with large diagonals, so that no row is exchanged, and in descending order, so that no column is."""

    def values(rng: np.random.Generator, dtype: np.dtype) -> Array:
        diagonal = np.diag(9.0 - 2 * np.arange(max(shape[-2:])))[: shape[-2], : shape[-1]]
        return random_array(shape, (-1, 1), dtype, rng) + diagonal

    return Arg(shape, values=values)


def away_from_zero(*shape: int) -> Arg:
    return Arg(shape, domain=(3, 5))


def each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of matrices over stacks of them."""

    def stacked(*arrays: Array) -> Any:
        batch = arrays[0].shape[:-2]
        if not batch:
            return function(*arrays)
        flat = [x.reshape(-1, *x.shape[len(batch) :]) for x in arrays]
        outs = np.stack([function(*parts) for parts in zip(*flat, strict=True)])
        return outs.reshape(*batch, *outs.shape[1:])

    return stacked


def solved(lower: bool, trans: int) -> Callable[..., Any]:
    return each(lambda a, b: scipy.linalg.solve_triangular(a, b, lower=lower, trans=trans).astype(b.dtype))


def from_lu(x: Any) -> Any:
    """P^-1 L U, which is x again."""
    factors, _, permutation = linalg.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    lower = jnp.tril(factors[..., :k], -1) + jnp.eye(m, k, dtype=x.dtype)
    product = lower @ jnp.triu(factors[..., :k, :])
    return jnp.take_along_axis(product, jnp.argsort(permutation, axis=-1)[..., None], -2)


def from_qr(x: Any) -> Any:
    q, r = linalg.qr(x, full_matrices=False)
    return q @ r


def from_pivoted(x: Any) -> Any:
    q, r, p = linalg.qr(x, pivoting=True)
    return jnp.take_along_axis(q @ r, jnp.argsort(p, axis=-1)[..., None, :], -1)


def tridiagonal(dl: Array, d: Array, du: Array) -> Array:
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)


def permuted(pivots: Array) -> Array:
    order = np.arange(4)
    for i, p in enumerate(pivots):
        order[[i, p]] = order[[p, i]]
    return order.astype(np.int32)


PIVOTS = [[Arg((3,), domain=(0, 4), dtype="int32")]]
FACTORS = [
    Row(
        "cholesky",
        lambda x: linalg.cholesky(x),
        np.linalg.cholesky,
        samples=[[definite(3, 3)], [definite(2, 2, 2)]],
        dtypes=KERNELS,
        tolerance=LOOSE,
    ),
    Row(
        "lu: product",
        from_lu,
        lambda x: x,
        samples=[[Arg((3, 3))], [Arg((2, 3, 2))], [Arg((2, 4))], [Arg((0, 3))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "lu: factors",
        lambda x: linalg.lu(x)[0],
        None,
        samples=[[dominant(3, 3)], [dominant(4, 3)], [dominant(3, 4)]],
        dtypes=KERNELS,
        tolerance=LOOSE,
    ),
    Row("lu_pivots_to_permutation", lambda p: linalg.lu_pivots_to_permutation(p, 4), permuted, PIVOTS, ("int32",)),
    Row(
        "qr: product",
        from_qr,
        lambda x: x,
        samples=[[Arg((3, 3))], [Arg((2, 3, 2))], [Arg((2, 3))], [Arg((3, 0))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "qr: factors",
        lambda x: linalg.qr(x, full_matrices=False),
        None,
        samples=[[dominant(3, 3)], [dominant(4, 3)], [dominant(3, 4)]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "qr: pivoting",
        from_pivoted,
        lambda x: x,
        samples=[[dominant(3, 3)], [dominant(2, 4, 3)]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "geqrf",
        lambda x: jnp.triu(jnp.abs(geqrf(x)[0])),
        lambda x: abs(np.linalg.qr(x, "r")).astype(x.real.dtype),
        samples=[[Arg((3, 3))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        differentiable=False,
    ),
    Row(
        "geqp3",
        lambda x: jnp.abs(jnp.diagonal(geqp3(x)[0])),
        lambda x: abs(np.diag(scipy.linalg.qr(x, pivoting=True)[1])),
        samples=[[Arg((4, 3))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        differentiable=False,
        batched=False,
    ),
    Row(
        "householder_product",
        lambda x: abs(linalg.householder_product(*geqrf(x))),
        lambda x: abs(np.linalg.qr(x)[0]),
        samples=[[Arg((3, 3))], [Arg((2, 4, 3))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        differentiable=False,
    ),
    Row(
        "ormqr",
        lambda x: linalg.ormqr(*geqrf(x), x, transpose=True),
        lambda x: each(lambda y: scipy.linalg.qr(y)[1])(x),
        samples=[[Arg((3, 3))], [Arg((2, 4, 3))]],
        dtypes=KERNELS,
        tolerance={**LOOSE, "float32": 1e-4},
        differentiable=False,
    ),
]

SOLVERS = [
    Row(
        "triangular_solve",
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
        solved(True, 0),
        samples=[[dominant(3, 3), Arg((3, 2))], [dominant(2, 3, 3), Arg((2, 3, 1))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
    ),
    Row(
        "triangular_solve: adjoint",
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, transpose_a=True, conjugate_a=True),
        solved(False, 2),
        samples=[[dominant(3, 3), Arg((3, 2))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "triangular_solve: right",
        lambda a, b: linalg.triangular_solve(a, b, conjugate_a=True, unit_diagonal=True),
        each(lambda a, b: scipy.linalg.solve_triangular(a.conj(), b.T, trans=1, unit_diagonal=True).T.astype(b.dtype)),
        samples=[[Arg((3, 3), domain=(-1, 1)), Arg((2, 3))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "triangular_solve: halves",
        lambda a, b: linalg.triangular_solve(a, b, left_side=True),
        solved(False, 0),
        samples=[[dominant(3, 3), Arg((3, 2))]],
        dtypes=("bfloat16", "float16"),
        tolerance={"bfloat16": 5e-2, "float16": 1e-2},
    ),
    Row(
        "tridiagonal_solve",
        lambda dl, d, du, b: linalg.tridiagonal_solve(dl, d, du, b),
        lambda dl, d, du, b: np.linalg.solve(tridiagonal(dl, d, du), b).astype(b.dtype),
        samples=[[Arg((4,), domain=(-1, 1)), away_from_zero(4), Arg((4,), domain=(-1, 1)), Arg((4, 2))]],
        dtypes=KERNELS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "cholesky_update",
        lambda x, w: linalg.cholesky_update(jnp.swapaxes(linalg.cholesky(x), -1, -2), w),
        lambda x, w: np.linalg.cholesky(x + w[..., :, None] * w[..., None, :]).swapaxes(-1, -2),
        samples=[[definite(2, 2), Arg((2,))]],
        dtypes=REALS,
        tolerance=LOOSE,
        order=1,
    ),
    Row(
        "symmetric_product",
        lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True),
        lambda a, c: (2 * a @ a.swapaxes(-1, -2) + 0.5 * c).astype(a.dtype),
        samples=[[Arg((3, 2)), definite(3, 3)], [Arg((2, 2, 3)), definite(2, 2, 2)]],
        dtypes=REALS,
        tolerance=LOOSE,
        order=1,
    ),
]

ROWS = [
    Row(**{**vars(row), "name": row.name if row.name.startswith("geq") else f"lax.linalg.{row.name}"})
    for row in [*FACTORS, *SOLVERS]
]
