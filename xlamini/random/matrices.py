"""Samplers that use matrix decompositions: correlated normal vectors, orthogonal matrices."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray, ShapeError, aval_of, result_type
from xlamini.numpy.einsum import einsum
from xlamini.numpy.matrices import diagonal
from xlamini.primitives import expand_dims, in_dtype, sign, sqrt
from xlamini.primitives.linalg.cholesky import cholesky
from xlamini.primitives.linalg.eigh import eigh
from xlamini.primitives.linalg.qr import qr
from xlamini.primitives.linalg.stacks import mT
from xlamini.primitives.linalg.svd import svd
from xlamini.random.arguments import broadcast_shape, checked_shape, float_dtype, sampler
from xlamini.random.narrow import float_sampler, rounded, wide
from xlamini.random.normal import normal_dtype, normal_noise, standard_normal
from xlamini.runtime import Array

_METHODS = ("cholesky", "eigh", "svd")


@sampler("shape", "dtype", "method")
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Array:
    """Vectors from the normal distribution with mean `mean` [..., n] and covariance `cov` [..., n, n].

    `shape` is that of the array of vectors, by default what `mean` and `cov` broadcast to without their last axes.
    `method` selects the root of the covariance: 'cholesky', the fastest; 'eigh' and 'svd' also for singular ones.
    Raises ShapeError where mean and covariance do not fit, ValueError for an unknown method.

    >>> xlamini.random.multivariate_normal(xlamini.random.key(0), xlamini.numpy.zeros(2), xlamini.numpy.eye(2)).shape
    (2,)
    """
    name = "multivariate_normal"
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    found = float_dtype(name, dtype if dtype is not None else result_type(mean, cov, float))
    first, second = aval_of(mean), aval_of(cov)
    _check_mean_and_cov(first, second)
    rows, stacks = ShapedArray(first.shape[:-1], found), ShapedArray(second.shape[:-2], found)
    shape = broadcast_shape(name, shape, mean=rows, cov=stacks)
    mean, cov = in_dtype(mean, wide(found)), in_dtype(cov, wide(found))
    noise = standard_normal(key, (*shape, *first.shape[-1:]), wide(found))
    return rounded(_moved(mean, _root(cov, method), noise), found)


def _moved(mean: Any, root: Any, noise: Any) -> Any:
    return mean + einsum("...ij,...j->...i", root, noise)


def _check_mean_and_cov(mean: ShapedArray, cov: ShapedArray) -> None:
    n = mean.shape[-1:]
    if not n or cov.shape[-2:] != n + n:
        raise ShapeError(
            "multivariate_normal: mean must have shape [..., n] and cov [..., n, n], got "
            f"{mean.str_short(short_dtypes=False)} and {cov.str_short(short_dtypes=False)}"
        )


def _root(cov: Any, method: str) -> Any:
    """A matrix that gives the covariance when multiplied by its transpose."""
    if method == "cholesky":
        return cholesky(cov)
    if method == "eigh":
        vectors, variances = eigh(cov)
    else:
        vectors, variances, _ = svd(cov, full_matrices=False)
    return vectors * expand_dims(sqrt(variances), (cov.ndim - 2,))


@float_sampler("n", "m", check=normal_dtype)
def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Array:
    """Orthogonal matrices of size `n` by `m` (by default `n`), or unitary ones, uniform in Haar's measure.

    Where they are not square their rows, or columns, are orthonormal. The result has `shape` followed by the sizes.

    >>> q = xlamini.random.orthogonal(xlamini.random.key(0), 3)
    >>> xlamini.numpy.allclose(q @ q.T, xlamini.numpy.eye(3), atol=1e-6)
    Array(True, dtype=bool)
    """
    # Mezzadri, "How to generate random matrices from the classical compact groups", 2007.
    rows, columns = checked_shape("orthogonal", (n, n if m is None else m))
    tall = (*checked_shape("orthogonal", shape), max(rows, columns), min(rows, columns))
    q, r = qr(normal_noise(key, tall, dtype), full_matrices=False)
    signed = q * expand_dims(sign(diagonal(r, axis1=-2, axis2=-1)), (len(tall) - 2,))
    return signed if rows >= columns else mT(signed)
