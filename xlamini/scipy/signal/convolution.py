"""Convolution and correlation of arrays of any rank, directly or through Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapeError, aval_of
from xlamini.core.sizes.expression import is_less, max_size, min_size
from xlamini.numpy.arguments import as_axes, as_operand
from xlamini.numpy.convolution import check_mode, slid
from xlamini.numpy.fft import fftn, ifftn, irfftn, rfftn
from xlamini.primitives import COMPLEX, conj, kind_of, promoted_inexact_dtypes, rev
from xlamini.primitives.shape.slice import slice
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@composite(static=("mode", "method", "precision"))
def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The convolution of two arrays of one rank: element k is the sum of `in1[j] * in2[k - j]`.

    `mode` is "full" (wherever they overlap), "same" (the middle, in the shape of `in1`) or "valid" (where one lies
    within the other). `method` is "direct" (so is "auto") or "fft". Integers give floats. ShapeError for ranks that
    differ or empty arrays, ValueError for another mode or method.

    >>> convolve(jnp.array([[1.0, 2.0]]), jnp.array([[1.0, 1.0]]))
    Array([[1., 3., 2.]], dtype=float32)
    """
    return _joined("convolve", in1, in2, mode, method, precision)


@composite(static=("mode", "method", "precision"))
def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The correlation of two arrays of one rank: element k is the sum of `in1[j + k] * conj(in2[j])`.

    Arguments and errors are those of `convolve`.

    >>> correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]), mode="valid")
    Array([2., 3.], dtype=float32)
    """
    return _joined("correlate", in1, _turned("correlate", in2), mode, method, precision)


@composite(static=("mode", "boundary", "fillvalue", "precision"))
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """`convolve` of two matrices; NotImplementedError unless `boundary` is "fill" and `fillvalue` 0.

    >>> convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="same")
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _joined("convolve2d", in1, in2, mode, "direct", precision)


@composite(static=("mode", "boundary", "fillvalue", "precision"))
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """`correlate` of two matrices; the middle that "same" takes is, of two, the later one, as in SciPy.

    NotImplementedError unless `boundary` is "fill" and `fillvalue` 0.

    >>> correlate2d(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="same")
    Array([[4., 2.],
           [2., 1.]], dtype=float32)
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    turned = _turned("correlate2d", in2)
    return _joined("correlate2d", in1, turned, mode, "direct", precision, late=True)


@composite(static=("mode", "axes"))
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None) -> Array:
    """`convolve` through Fourier transforms, along `axes` (all by default); the other dimensions broadcast.

    >>> fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round()
    Array([1., 3., 2.], dtype=float32)
    """
    name = "fftconvolve"
    check_mode(name, mode)
    x, y = _of_one_rank(name, in1, in2)
    shapes = aval_of(x).shape, aval_of(y).shape
    along = as_axes(name, axes, len(shapes[0]))
    for d, (n, m) in enumerate(zip(*shapes, strict=True)):
        if d not in along and n != m and 1 not in (n, m):
            raise ShapeError(
                f"{name}: dimensions that are not among axes {along} must be equal or 1, got shapes {shapes[0]} and "
                f"{shapes[1]}"
            )
    return _by_transforms(name, x, y, mode, along)


# --- helpers


def _joined(
    name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any, late: bool = False
) -> Any:
    check_mode(name, mode)
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{name}: method must be 'auto', 'direct' or 'fft', got {method!r}")
    x, y = _of_one_rank(name, in1, in2)
    if method == "fft":
        return _by_transforms(name, x, y, mode, tuple(range(aval_of(x).ndim)))
    starts, sizes = _kept(name, aval_of(x).shape, aval_of(y).shape, mode, late)
    if is_less(aval_of(x).size, aval_of(y).size):
        x, y = y, x
    return slid(x, rev(y, range(aval_of(y).ndim)), starts, sizes, precision)


def _of_one_rank(name: str, in1: Any, in2: Any) -> Sequence[Any]:
    x, y = as_operand(name, in1), as_operand(name, in2)
    shapes = aval_of(x).shape, aval_of(y).shape
    if len(shapes[0]) != len(shapes[1]) or 0 in shapes[0] + shapes[1]:
        raise ShapeError(
            f"{name}: two arrays of one rank without empty dimensions are needed, got shapes {shapes[0]} and "
            f"{shapes[1]}; insert dimensions of size 1 where one has fewer"
        )
    return promoted_inexact_dtypes(x, y)


def _turned(name: str, in2: Any) -> Any:
    y = as_operand(name, in2)
    y = conj(y) if kind_of(aval_of(y).dtype) is COMPLEX else y
    return rev(y, range(aval_of(y).ndim))


def _check_matrices(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    ranks = [aval_of(as_operand(name, x)).ndim for x in (in1, in2)]
    if ranks != [2, 2]:
        raise ShapeError(f"{name}: two matrices are needed, got arrays of rank {ranks[0]} and {ranks[1]}")
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}: only boundary='fill' with fillvalue=0 is there, got {boundary!r} and {fillvalue!r}; pad in1 with "
            "jnp.pad first"
        )


def _kept(
    name: str, first: Sequence[int], second: Sequence[int], mode: str, late: bool = False
) -> tuple[list[int], list[int]]:
    """The start and the sizes of the part of the full result that `mode` selects."""
    pairs = list(zip(first, second, strict=True))
    if mode == "full":
        return [0] * len(pairs), [n + m - 1 for n, m in pairs]
    if mode == "same":
        return [(m - 1 + late) // 2 for _, m in pairs], list(first)
    if len(pairs) > 1 and not (all(n >= m for n, m in pairs) or all(n <= m for n, m in pairs)):
        raise ShapeError(
            f"{name}: for mode 'valid' one array must be the smaller one in every dimension, got shapes "
            f"{tuple(first)} and {tuple(second)}"
        )
    return [min_size(n, m) - 1 for n, m in pairs], [max_size(n, m) - min_size(n, m) + 1 for n, m in pairs]


def _by_transforms(name: str, x: Any, y: Any, mode: str, axes: tuple[int, ...]) -> Any:
    shapes = aval_of(x).shape, aval_of(y).shape
    first, second = ([shape[d] for d in axes] for shape in shapes)
    starts, sizes = _kept(name, first, second, mode)
    if not math.prod(sizes) or not axes:
        return x * y
    whole = tuple(n + m - 1 for n, m in zip(first, second, strict=True))
    if kind_of(aval_of(x).dtype) is COMPLEX:
        full = ifftn(fftn(x, whole, axes) * fftn(y, whole, axes), whole, axes)
    else:
        full = irfftn(rfftn(x, whole, axes) * rfftn(y, whole, axes), whole, axes)
    low, high = [0] * len(shapes[0]), list(aval_of(full).shape)
    for d, start, size in zip(axes, starts, sizes, strict=True):
        low[d], high[d] = start, start + size
    return slice(full, low, high)
