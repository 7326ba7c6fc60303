"""Covariances and correlations of variables over joint observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import aval_of, check_user_dtype, issubdtype
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.creation import full
from xlamini.numpy.joining import concatenate
from xlamini.numpy.linear_algebra import dot
from xlamini.numpy.shapes import atleast_2d, squeeze
from xlamini.primitives import clamp, convert, in_dtype, promoted_inexact_dtypes
from xlamini.primitives.base import operators
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.elementwise import complex as complex_parts
from xlamini.primitives.linalg.euclidean_norm import euclidean_norm
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike


@composite(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of the rows of `m`, each a variable (the columns unless `rowvar`), and of those of `y`.

    Sums are divided by the number of observations minus `ddof`, which is 1, or 0 with `bias`. `fweights` (integers)
    say how often each observation was made, `aweights` how much it counts. A scalar for one variable. ValueError for
    more than two dimensions.

    >>> cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    given: Any = _observations("cov", m, y, rowvar, dtype)
    x: Any = convert(given, accumulator(given.dtype))
    counts = _weights("cov", x, (fweights, aweights))
    counts = counts if x.shape[1] else None
    x, factor = _centred(x, counts, int(not bias) if ddof is None else ddof, aweights)
    return squeeze(convert(_products(x, x if counts is None else x * counts[None]) / factor, given.dtype))


@composite(static=("rowvar", "dtype"))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The correlations of the rows of `x` and `y`: their covariances divided by both standard deviations.

    NaN for a variable that is constant. The arguments are those of `cov`.

    >>> corrcoef(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).round(3)
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    given: Any = _observations("corrcoef", x, y, rowvar, dtype)
    dtype = given.dtype
    centred, _ = _centred(convert(given, accumulator(dtype)), None, 0, None)
    # No square is out of range, unlike a covariance.
    unit = centred / convert(euclidean_norm(centred, (1,)), centred.dtype)[:, None]
    c = _products(unit, unit)
    if c.shape[0] == 1:
        return squeeze(convert(c / c, dtype))
    if not issubdtype(dtype, np.complexfloating):
        return _clipped(convert(c, dtype))
    return complex_parts.complex(_clipped(complex_parts.real(c)), _clipped(complex_parts.imag(c)))


# --- helpers


def _clipped(x: Any) -> Any:
    dtype = aval_of(x).dtype
    return clamp(in_dtype(-1.0, dtype), x, in_dtype(1.0, dtype))


def _centred(x: Any, counts: Any, ddof: int | float, weights: Any) -> tuple[Any, Any]:
    """The distances of observations from their mean, and the number of them minus `ddof`; NaN if there is none."""
    rows, length = x.shape
    if not length:
        return full((rows, 1), np.nan, x.dtype), 1
    if counts is None:
        return x - x.sum(1, keepdims=True) / length, length - ddof
    total = counts.sum()
    lost = ddof if weights is None else ddof * (counts * convert(weights, counts.dtype)).sum() / total
    return x - (x * counts[None]).sum(1, keepdims=True) / total, total - lost


def _products(x: Any, y: Any) -> Any:
    return dot(x, (complex_parts.conj(y) if issubdtype(y.dtype, np.complexfloating) else y).T)


def _observations(name: str, m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """The variables as rows, in one float or complex dtype."""
    if dtype is not None and not issubdtype(dtype, np.inexact):
        raise ValueError(f"{name}: dtype must be a float or complex one, got {dtype!r}")
    arrays = [as_operand(name, v) for v in (m, y) if v is not None]
    for array in arrays:
        if array.ndim > 2:
            raise ValueError(f"{name}: at most two dimensions are taken, got shape {array.shape}; reshape it")
    arrays = promoted_inexact_dtypes(*arrays)
    if dtype is not None:
        arrays = [convert(v, check_user_dtype(dtype, name)) for v in arrays]
    rows = [v.T if not rowvar and aval_of(v).ndim == 2 else atleast_2d(v) for v in arrays]
    return rows[0] if len(rows) == 1 else concatenate(rows)


def _weights(name: str, x: Any, given: tuple[Any, Any]) -> Any:
    """The weight of each observation in the real dtype of x, or None."""
    product, length = None, aval_of(x).shape[1]
    dtype = np.zeros((), aval_of(x).dtype).real.dtype if issubdtype(aval_of(x).dtype, np.complexfloating) else x.dtype
    for what, weights in zip(("fweights", "aweights"), given, strict=True):
        if weights is None:
            continue
        weights = as_operand(name, weights)
        if what == "fweights" and not issubdtype(weights.dtype, np.integer):
            raise TypeError(f"{name}: fweights must be integers, got {weights.dtype}; they say how often")
        if weights.shape != (length,):
            raise RuntimeError(f"{name}: {what} of shape {weights.shape} for {length} observations; give one for each")
        weights = convert(weights, dtype)
        product = weights if product is None else operators.multiply(product, weights)
    return product
