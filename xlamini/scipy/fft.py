"""Discrete cosine transforms of the types 1 to 4, each by one Fourier transform of real numbers.

Type 2 goes by Makhoul's reordering ("A fast cosine transform in one and two dimensions", 1980): of the elements with
even index and, backwards, those with odd index, the spectrum turned by a quarter of a step has the result as its parts.
Type 3 goes the same way back.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of, issubdtype
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.sizes.expression import is_less
from xlamini.lax import cos, sin
from xlamini.numpy.arguments import as_axes, as_index, as_operand
from xlamini.numpy.fft import irfft, rfft
from xlamini.numpy.joining import concatenate
from xlamini.numpy.padding import pad
from xlamini.numpy.selection import where
from xlamini.numpy.shapes import moveaxis
from xlamini.primitives import convert, promoted_inexact
from xlamini.primitives.elementwise.complex import complex
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

__all__ = ["dct", "dctn", "idct", "idctn"]

Norm = str | None
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


@composite(static=("type", "n", "axis", "norm"))
def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The cosine transform of a type from 1 to 4 along `axis`, cut off or filled with zeros to the length `n`.

    Of type 2: `2 sum_j x[j] cos(pi k (2 j + 1) / (2 n))` for each k. With `norm="ortho"` the matrix of the transform
    is orthogonal; "forward" divides by the factor that otherwise the inverse divides by. ValueError for other words.

    >>> dct(jnp.array([1.0, 2.0, 1.0]))[0]
    Array(8., dtype=float32)
    """
    return _along("dct", x, type, None if n is None else (n,), (axis,), norm)


@composite(static=("type", "n", "axis", "norm"))
def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `dct`, with the same arguments.

    >>> idct(dct(jnp.array([1.0, 2.0, 4.0]))).round()
    Array([1., 2., 4.], dtype=float32)
    """
    return _along("idct", x, type, None if n is None else (n,), (axis,), norm)


@composite(static=("type", "s", "axes", "norm"))
def dctn(
    x: ArrayLike, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = None
) -> Array:
    """`dct` along several axes: those given, the last ones that `s` has lengths for, or all.

    >>> dctn(jnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _along("dctn", x, type, s, axes, norm)


@composite(static=("type", "s", "axes", "norm"))
def idctn(
    x: ArrayLike, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = None
) -> Array:
    """The inverse of `dctn`, with the same arguments and errors; the result has the shape and inexact dtype of `x`.

    >>> idctn(jnp.array([[16.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _along("idctn", x, type, s, axes, norm)


# --- one axis after the other


def _along(name: str, x: Any, kind: int, s: Any, axes: Any, norm: Norm) -> Any:
    (x,) = promoted_inexact(name, as_operand(name, x))
    x = convert(x, np.promote_types(aval_of(x).dtype, np.float32))  # no narrower floats make complex numbers
    if as_index(name, "type", kind) not in _INVERSE:
        raise ValueError(f"{name}: type must be 1, 2, 3 or 4, got {kind}")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    axes, lengths = _axes_and_lengths(name, aval_of(x), s, axes)
    for axis, n in zip(axes, lengths, strict=True):
        x = moveaxis(_one(name, _fitted(moveaxis(x, axis, -1), n), kind, n, norm), -1, axis)
    return x


def _axes_and_lengths(name: str, aval: Any, s: Any, axes: Any) -> tuple[Sequence[int], Sequence[int]]:
    chosen = as_axes(name, range(aval.ndim - len(s), aval.ndim) if axes is None and s is not None else axes, aval.ndim)
    lengths = [aval.shape[a] for a in chosen] if s is None else [as_index(name, "a length", n) for n in s]
    if len(lengths) != len(chosen):
        raise ValueError(f"{name}: {len(lengths)} lengths {tuple(lengths)} for {len(chosen)} axes; give one for each")
    if any(n < 1 for n in lengths):
        raise ValueError(f"{name}: lengths must be positive, got {tuple(lengths)}")
    return chosen, lengths


def _fitted(x: Any, n: int) -> Any:
    """The array with n elements along its last axis."""
    size = aval_of(x).shape[-1]
    if is_less(n - 1, size):
        return x[..., :n]
    x = x if is_less(size, n) else x[..., :n]
    return pad(x, [(0, 0)] * (aval_of(x).ndim - 1) + [(0, n - aval_of(x).shape[-1])])


def _one(name: str, x: Any, kind: int, n: int, norm: Norm) -> Any:
    """A transform along the last axis, of numbers of any kind."""
    if issubdtype(aval_of(x).dtype, np.complexfloating):
        return complex(_one(name, x.real, kind, n, norm), _one(name, x.imag, kind, n, norm))
    inverse = name.startswith("i")
    kind = _INVERSE[kind] if inverse else kind
    transform, whole = _TYPES[kind], 2 * (n - 1) if kind == 1 else 2 * n
    if kind == 1 and n < 2:
        raise ValueError(f"{name}: type 1 needs at least 2 elements along an axis, got {n}")
    if norm == "ortho":
        return _orthogonal(transform, kind, x, n) / math.sqrt(whole)
    return transform(x, n) / whole if inverse == (norm != "forward") else transform(x, n)


def _orthogonal(transform: Callable[..., Any], kind: int, x: Any, n: int) -> Any:
    """A transform with columns of one length: the first element (for type 1 the last one too) is special."""
    if kind == 1:
        return _ends_times(transform(_ends_times(x, n, math.sqrt(2)), n), n, math.sqrt(0.5))
    if kind == 2:
        return _first_times(transform(x, n), n, math.sqrt(0.5))
    return transform(_first_times(x, n, math.sqrt(2)) if kind == 3 else x, n)


def _first_times(x: Any, n: int, factor: float) -> Any:
    k = iota(np.int32, n)
    return x * where(k == 0, factor, 1)


def _ends_times(x: Any, n: int, factor: float) -> Any:
    k = iota(np.int32, n)
    return x * where(k % (n - 1) == 0, factor, 1)


# --- the four types, along the last axis


def _first(x: Any, n: int) -> Any:
    return rfft(concatenate([x, x[..., -2:0:-1]], -1)).real


def _second(x: Any, n: int) -> Any:
    spectrum = rfft(concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1))
    turned = spectrum * _turn(-1, n, aval_of(spectrum).dtype) * 2
    return concatenate([turned.real, -turned.imag[..., 1 : (n + 1) // 2][..., ::-1]], -1)


def _third(x: Any, n: int) -> Any:
    half = n // 2 + 1
    mirrored = pad(x[..., 1:], [(0, 0)] * (aval_of(x).ndim - 1) + [(0, 1)])[..., ::-1]
    parts = complex(*promoted_inexact("dct", x[..., :half], -mirrored[..., :half]))
    reordered = irfft(parts * _turn(1, n, aval_of(parts).dtype), n) * n
    middle = (n + 1) // 2
    return _interleaved(reordered[..., :middle], reordered[..., middle:][..., ::-1], n)


def _fourth(x: Any, n: int) -> Any:
    return _second(pad(x, [(0, 0)] * (aval_of(x).ndim - 1) + [(0, n)]), 2 * n)[..., 1::2]


_TYPES = {1: _first, 2: _second, 3: _third, 4: _fourth}


def _turn(sign: int, n: int, dtype: Any) -> Any:
    """`exp(i sign pi k / (2 n))` for each k of half a spectrum."""
    angle = iota(np.zeros((), dtype).real.dtype, n // 2 + 1) * (sign * math.pi / (2 * n))
    return complex(cos(angle), sin(angle))


def _interleaved(even: Any, odd: Any, n: int) -> Any:
    """The elements of two arrays, interleaved."""
    width = [(0, 0)] * (aval_of(even).ndim - 1)
    odd = pad(odd, [*width, (0, aval_of(even).shape[-1] - aval_of(odd).shape[-1])])
    both = concatenate([even[..., None], odd[..., None]], -1)
    return both.reshape(*both.shape[:-2], -1)[..., :n]


_edge_of_face(globals())
