"""Decompositions by eigenvalues and singular values: what does not depend on signs and phases."""
from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.rows.row import COMPLEXES, FLOATS, Arg, Array, Row
from xlamini import numpy as jnp
from xlamini.lax import linalg

FIELDS = (*FLOATS[2:], *COMPLEXES)
LOOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-11, "complex128": 1e-11}


def mH(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(*shape: int) -> Any:
    """A maker of Hermitian matrices whose eigenvalues are well apart."""

    def values(rng: np.random.Generator, dtype: np.dtype) -> Array:
        x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        x = x if dtype.kind == "c" else x.real
        return (x + mH(x)) / 4 + np.diag(3.0 * np.arange(shape[-1]))

    return [Arg(shape, values=values)]


def general(*shape: int) -> Any:
    """A maker of matrices with singular values, and eigenvalues, well apart."""

    def values(rng: np.random.Generator, dtype: np.dtype) -> Array:
        x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        return (x if dtype.kind == "c" else x.real) / 3 + np.eye(*shape[-2:]) * (1 + 2.0 * np.arange(shape[-1]))

    return [Arg(shape, values=values)]


def projectors(vectors: Any) -> Any:
    """What vectors with free signs and phases determine: the first one's projector."""
    first = vectors[..., :, :1]
    return first * jnp.conj(jnp.matrix_transpose(first))


def numpy_projectors(vectors: Array) -> Array:
    return vectors[..., :, :1] * mH(vectors[..., :, :1])


def eigh_both(x: Any) -> Any:
    v, w = linalg.eigh(x)
    return w, projectors(v)


def numpy_eigh_both(x: Array) -> Any:
    w, v = np.linalg.eigh(x)
    return w, numpy_projectors(v)


def svd_both(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    return s, projectors(u), (u * s[..., None, :].astype(u.dtype)) @ vh


def numpy_svd_both(x: Array) -> Any:
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    return s, numpy_projectors(u), x


def in_order(w: Any) -> Any:
    return jnp.take_along_axis(w, jnp.argsort(w.real, axis=-1), -1)


def eig_both(x: Any) -> Any:
    w, left, right = linalg.eig(x, enable_eigvec_derivs=True)
    return in_order(w), (jnp.abs(left) ** 2).sum(-1), x @ right - w[..., None, :] * right


def numpy_eig_both(x: Array) -> Any:
    w, left, _ = scipy.linalg.eig(x, left=True)
    dtype = np.result_type(x, np.complex64)
    return np.sort_complex(w).astype(dtype), (np.abs(left) ** 2).sum(-1).astype(x.real.dtype), np.zeros_like(x, dtype)


def rebuilt_hessenberg(x: Any) -> Any:
    form, taus = linalg.hessenberg(x)
    q = jnp.eye(x.shape[-1], dtype=x.dtype).at[1:, 1:].set(linalg.householder_product(form[1:, :-1], taus))
    return q @ jnp.triu(form, -1) @ jnp.conj(q.T)


def tridiagonal_values(x: Any) -> Any:
    _, d, e, _ = linalg.tridiagonal(x)
    return linalg.eigh(jnp.diag(d) + jnp.diag(e, -1) + jnp.diag(e, 1))[1]


def rebuilt_schur(x: Any) -> Any:
    form, vectors = linalg.schur(x)
    return vectors @ form @ jnp.conj(jnp.matrix_transpose(vectors))


def polar(x: Any) -> Any:
    u, h, *_ = linalg.qdwh(x)
    return u, h


CPU = {"dtypes": FIELDS, "tolerance": LOOSE}
ROWS = [
    Row("lax.linalg.eigh", eigh_both, numpy_eigh_both, samples=[hermitian(3, 3), hermitian(2, 3, 3)], **CPU),
    Row(
        "lax.linalg.eigh: upper", lambda x: linalg.eigh(x, lower=False, symmetrize_input=False)[1],
        lambda x: np.linalg.eigvalsh(x, "U"), samples=[[Arg((3, 3))]], differentiable=False, **CPU,
    ),
    Row(
        "lax.linalg.eigh: subset", lambda x: linalg.eigh(x, subset_by_index=(1, 3))[1],
        lambda x: np.linalg.eigvalsh(x)[..., 1:3], samples=[hermitian(4, 4)], differentiable=False, **CPU,
    ),
    Row("lax.linalg.svd", svd_both, numpy_svd_both, samples=[general(3, 3), general(3, 2)], order=1, **CPU),
    Row(
        "lax.linalg.svd: values", lambda x: linalg.svd(x, compute_uv=False),
        lambda x: np.linalg.svd(x, compute_uv=False), samples=[general(3, 4)], **CPU,
    ),
    Row(
        "lax.linalg.svd: full", lambda x: [y.shape for y in linalg.svd(x)] and jnp.abs(linalg.svd(x)[0] ** 2).sum(-1),
        lambda x: np.ones(x.shape[:-1], x.real.dtype), samples=[general(4, 2)], differentiable=False, **CPU,
    ),
    Row(
        "lax.linalg.svd: QR",
        lambda x: linalg.svd(x, compute_uv=False, algorithm=linalg.SvdAlgorithm.QR, subset_by_index=(0, 1)),
        lambda x: np.linalg.svd(x, compute_uv=False)[..., :1], samples=[general(3, 4)], differentiable=False, **CPU,
    ),
    Row("lax.linalg.eig", eig_both, numpy_eig_both, samples=[general(3, 3)], order=1, **CPU),
    Row(
        "lax.linalg.eig: values",
        lambda x: in_order(
            linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
        ),
        lambda x: np.sort_complex(np.linalg.eigvals(x)).astype(np.result_type(x, np.complex64)),
        samples=[general(3, 3)], **CPU,
    ),
    Row(
        "lax.linalg.schur", rebuilt_schur, lambda x: x,
        samples=[[Arg((3, 3))], [Arg((2, 2, 2))]], differentiable=False, **CPU,
    ),
    Row("lax.linalg.hessenberg", rebuilt_hessenberg, lambda x: x, samples=[[Arg((4, 4))]], differentiable=False, **CPU),
    Row(
        "lax.linalg.tridiagonal", tridiagonal_values, np.linalg.eigvalsh,
        samples=[hermitian(4, 4)], differentiable=False, **CPU,
    ),
    Row("lax.linalg.qdwh", polar, scipy.linalg.polar, samples=[general(3, 3), general(4, 2)], order=1, **CPU),
]
