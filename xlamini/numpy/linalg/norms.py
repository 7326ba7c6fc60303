"""Norms of vectors and matrices, and condition numbers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapeError
from xlamini.numpy import reductions
from xlamini.numpy.arguments import as_axes
from xlamini.numpy.linalg.arguments import inexact, matrices, shown
from xlamini.numpy.linalg.factorizations import svd
from xlamini.numpy.linalg.solving import inv
from xlamini.numpy.shapes import expand_dims, moveaxis, reshape
from xlamini.primitives import abs, broadcast_to, convert, full, squeeze, stop_gradient, where, zeros
from xlamini.primitives.base.operators import power
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.linalg.euclidean_norm import euclidean_norm
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

Axes = tuple[int, ...]


@composite(static=("ord", "axis", "keepdims"))
def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """The norm of vectors along one axis, of matrices along two, or of all elements.

    Of vectors `ord` is 2 (the default), 1, inf, -inf, 0 (how many elements differ from 0) or any number p, for
    `sum(abs(x) ** p) ** (1 / p)`. Of matrices it is "fro" (the default), "nuc", 1, -1, 2, -2, inf or -inf. ValueError
    for another `ord`, or more than two axes.

    >>> norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    (a,) = inexact("norm", x)
    if axis is None and ord is None:
        return _length(a, tuple(range(a.ndim)), keepdims)
    axes = as_axes("norm", axis, a.ndim)
    if len(axes) == 1:
        return _of_vectors("norm", a, ord, axes, keepdims)
    if len(axes) == 2:
        return _of_matrices("norm", a, ord, axes, keepdims)
    raise ValueError(f"norm: one axis or two are needed, got {axes} for {shown(a)}; with ord=None axis may be None")


@composite(static=("axis", "keepdims", "ord"))
def vector_norm(
    x: ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: int | float | str = 2
) -> Array:
    """The norm of the vectors along an axis, along several (each flattened), or of all elements; see `norm`.

    >>> vector_norm(jnp.array([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    Array([5., 2.], dtype=float32)
    """
    (a,) = inexact("vector_norm", x)
    return _of_vectors("vector_norm", a, ord, as_axes("vector_norm", axis, a.ndim), keepdims)


@composite(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro") -> Array:
    """The norms of matrices of shape [..., m, n]; see `norm`.

    >>> matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)
    """
    a = matrices("matrix_norm", x)
    return _of_matrices("matrix_norm", a, ord, (a.ndim - 2, a.ndim - 1), keepdims)


@composite(static=("p",))
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition numbers `norm(x, p) * norm(inv(x), p)` of matrices of shape [..., n, n]; inf for singular ones.

    For p = 2, the default, it is the largest singular value over the smallest, for p = -2 the inverse of that; then
    matrices need not be square. ShapeError for a shape that does not fit, or without elements.

    >>> cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    Array(2., dtype=float32)
    """
    a = matrices("cond", x)
    if not a.shape[-1] or not a.shape[-2]:
        raise ShapeError(f"cond: the matrices have no elements: {shown(a)}")
    if p in (None, 2, -2):
        s: Any = svd(a, full_matrices=False, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"cond: for p={p!r} square matrices are needed, got {shown(a)}; p=2 takes others too")
    axes = (a.ndim - 2, a.ndim - 1)
    found = _of_matrices("cond", a, p, axes, False) * _of_matrices("cond", inv(a), p, axes, False)
    singular = (found != found) & ~reductions.any(a != a, axes)
    return where(singular, full(found.aval, np.inf), found)


# --- helpers


def _length(x: Any, axes: Axes, keepdims: bool) -> Any:
    """The square root of the sum of squares."""
    found = euclidean_norm(x, axes)
    return expand_dims(found, axes) if keepdims else found


def _of_vectors(name: str, x: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    if ord is None or ord == 2:
        return _length(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"{name}: ord {ord!r} is not a norm of vectors; give a number")
    size = abs(x)
    if ord == np.inf:
        return reductions.max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(convert(x != 0, size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    return _of_powers(size, ord, axes, keepdims)


def _of_powers(size: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    """The root of a sum of powers, of sizes divided by the one that counts most: none overflows.

    A power of 0 has no derivative where `ord` is below 1, nor has a root of 0: the result is 0 there, and constant.
    """
    wide = convert(size, accumulator(size.dtype))
    unit = stop_gradient((reductions.max if ord > 0 else reductions.min)(wide, axes, keepdims=True))
    lost = unit == 0
    unit = where(lost | (unit == np.inf), full(unit.aval, 1), unit)
    shares = where(broadcast_to(lost, wide.shape), full(wide.aval, 1), wide / unit)
    total = reductions.sum(power(shares, ord), axes, keepdims=True)
    found = where(lost, zeros(total.aval), power(total, 1 / ord) * unit)
    return convert(found if keepdims else squeeze(found, axes), size.dtype)


def _of_matrices(name: str, x: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    rows, columns = axes
    if ord is None or ord == "fro":
        return _length(x, axes, keepdims)
    if ord in (1, -1):
        return _of_sums(x, ord, rows, columns, keepdims)
    if ord in (np.inf, -np.inf):
        return _of_sums(x, ord, columns, rows, keepdims)
    if ord not in ("nuc", 2, -2):
        raise ValueError(f"{name}: ord {ord!r} is not a norm of matrices; give 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    s: Any = svd(moveaxis(x, axes, (-2, -1)), full_matrices=False, compute_uv=False)
    reduce = {"nuc": reductions.sum, 2: reductions.max, -2: reductions.min}[ord]
    out = reduce(where(s == 0, zeros(s.aval), s), -1)  # at 0 the smallest of the subgradients
    return expand_dims(out, axes) if keepdims else out


def _of_sums(x: Any, ord: Any, summed: int, other: int, keepdims: bool) -> Any:
    """The largest sum of sizes along an axis, or for negative `ord` the smallest."""
    sums = reductions.sum(abs(x), summed, keepdims=True)
    out = (reductions.max if ord > 0 else reductions.min)(sums, other, keepdims=True)
    return out if keepdims else reshape(out, tuple(n for d, n in enumerate(x.shape) if d not in (summed, other)))
