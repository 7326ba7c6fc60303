"""Discrete Fourier transforms over any number of axes.

A transform over several axes is done three axes at a time, which is what XLA has. `norm` says where the factor 1/n
goes: "backward" (the default) to the inverse transforms, "forward" to the others, "ortho" in halves to both.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of, issubdtype, literal
from xlamini.core.sizes.expression import max_size, min_size
from xlamini.core.wrapping import named_as
from xlamini.numpy.arguments import as_axes, as_index, as_operand
from xlamini.numpy.shapes import moveaxis
from xlamini.primitives import conj, convert, mul
from xlamini.primitives.base.promotion import float_of
from xlamini.primitives.fft import FftType, fft as transform
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.slice import slice
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

Norm = str | None
Axes = Sequence[int] | None

FFT, IFFT, RFFT, IRFFT = FftType


# --- one axis


def _along_axis(kind: FftType):
    """Decorator of a declaration: the transform along one axis."""

    def declare(declaration: Callable[[], None]):
        name = declaration.__name__

        @composite(static=("n", "axis", "norm"))
        @named_as(declaration)
        def transform(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
            return _along_one(name, kind, a, n, axis, norm)

        return transform

    return declare


@_along_axis(FFT)
def fft() -> None:
    """The transform along `axis`: `sum_j a[j] exp(-2 pi i j k / n)` for each k.

    Along the axis `a` is cut off or filled with zeros to the length `n`. The result is complex.

    >>> fft(jnp.array([1.0, 2.0]))
    Array([ 3.+0.j, -1.+0.j], dtype=complex64)
    """


@_along_axis(IFFT)
def ifft() -> None:
    """The inverse of `fft`, with the same arguments.

    >>> ifft(jnp.array([3.0, -1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """


@_along_axis(RFFT)
def rfft() -> None:
    """The first `n // 2 + 1` elements of `fft` of real numbers; the others are their conjugates.

    >>> rfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 6. +0.j       , -1.5+0.8660254j], dtype=complex64)
    """


@_along_axis(IRFFT)
def irfft() -> None:
    """The inverse of `rfft`: `n` real numbers, by default `2 * (m - 1)` for m elements along the axis.

    >>> irfft(rfft(jnp.array([1.0, 2.0, 3.0])), n=3)
    Array([1., 2., 3.], dtype=float32)
    """


@composite(static=("n", "axis", "norm"))
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The real `fft` of numbers of which `a` holds the first half, and the other half is the conjugate.

    >>> hfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    return _along_one("hfft", IRFFT, _conjugate("hfft", a), n, axis, _swapped(norm))


@composite(static=("n", "axis", "norm"))
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `hfft`, of real numbers.

    >>> ihfft(jnp.array([8.0, -2.0, 0.0, -2.0]))
    Array([1.-0.j, 2.-0.j, 3.-0.j], dtype=complex64)
    """
    return conj(_along_one("ihfft", RFFT, a, n, axis, _swapped(norm)))


# --- two axes, or any number


def _along_axes(kind: FftType, default: Axes = None):
    """Decorator of a declaration: the transform along several axes, whose number is that of the default ones."""

    def declare(declaration: Callable[[], None]):
        name = declaration.__name__

        @composite(static=("s", "axes", "norm"))
        @named_as(declaration)
        def transform(a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = default, norm: Norm = None) -> Array:
            return _along(name, kind, a, s, _two(name, axes) if default else axes, norm)

        return transform

    return declare


@_along_axes(FFT, (-2, -1))
def fft2() -> None:
    """`fft` along two axes, which are cut off or filled with zeros to the lengths `s`; ValueError unless there are two.

    The result is complex64, or complex128 for an operand of 64 bits.

    >>> fft2(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]], dtype=complex64)
    """


@_along_axes(IFFT, (-2, -1))
def ifft2() -> None:
    """The inverse of `fft2`, with the same arguments.

    >>> ifft2(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """


@_along_axes(RFFT, (-2, -1))
def rfft2() -> None:
    """`fft2` of real numbers; of the last axis, the first half. ValueError for complex numbers.

    >>> rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    >>> rfft2(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]], dtype=complex64)
    """


@_along_axes(IRFFT, (-2, -1))
def irfft2() -> None:
    """The inverse of `rfft2`; `s` are the lengths of the result.

    >>> irfft2(rfft2(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """


@_along_axes(FFT)
def fftn() -> None:
    """`fft` along several axes: those given, the last ones that `s` has lengths for, or all.

    >>> fftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """


@_along_axes(IFFT)
def ifftn() -> None:
    """The inverse of `fftn`, with the same arguments.

    >>> ifftn(fftn(jnp.array([1.0, 2.0])))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """


@_along_axes(RFFT)
def rfftn() -> None:
    """`fftn` of real numbers; of the last of the axes, the first half.

    >>> rfftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """


@_along_axes(IRFFT)
def irfftn() -> None:
    """The inverse of `rfftn`; `s` are the lengths of the result.

    >>> irfftn(rfftn(jnp.ones((2, 3))), s=(2, 3)).shape
    (2, 3)
    >>> irfftn(jnp.array([6.0, 0.0]))
    Array([3., 3.], dtype=float32)
    """


# --- helpers


def _along_one(name: str, kind: FftType, a: Any, n: int | None, axis: int, norm: Norm) -> Any:
    return _along(name, kind, a, None if n is None else (n,), (as_index(name, "axis", axis),), norm)


def _two(name: str, axes: Any) -> Sequence[int]:
    if len(axes) != 2:
        raise ValueError(f"{name}: two axes are needed, got {axes}; {name.replace('2', 'n')} takes any number")
    return axes


def _along(name: str, kind: FftType, a: Any, s: Sequence[int] | None, axes: Axes, norm: Norm) -> Any:
    x = _numbers(name, kind, as_operand(name, a))
    ndim = aval_of(x).ndim
    chosen = as_axes(name, range(ndim - len(s), ndim) if axes is None and s is not None else axes, ndim)
    if not chosen:
        return transform(x, kind, ())
    end = range(ndim - len(chosen), ndim)
    x = moveaxis(x, chosen, end)
    lengths = _lengths(name, kind, aval_of(x).shape[ndim - len(chosen) :], s)
    result = _transformed(kind, _fitted(kind, x, lengths), lengths)
    return moveaxis(_scaled(name, kind, result, lengths, norm), end, chosen)


def _numbers(name: str, kind: FftType, x: Any) -> Any:
    """The array, in a dtype that XLA transforms."""
    dtype = aval_of(x).dtype
    if kind is not RFFT:
        return x
    if issubdtype(dtype, np.complexfloating):
        raise ValueError(f"{name}: real numbers are needed, got {aval_of(x).str_short()}; take their .real, or use fft")
    return convert(x, float_of(dtype))


def _lengths(name: str, kind: FftType, found: Sequence[int], s: Sequence[int] | None) -> tuple[int, ...]:
    """The lengths of the transform: those asked for, or the array's."""
    if s is None:
        return (*found[:-1], max_size(2 * (found[-1] - 1), 0)) if kind is IRFFT else tuple(found)
    asked = tuple(as_index(name, "a length", n) for n in s)
    if len(asked) != len(found):
        raise ValueError(f"{name}: {len(asked)} lengths {asked} for {len(found)} axes; give one for each axis")
    if any(n < 1 for n in asked):
        raise ValueError(f"{name}: lengths must be positive, got {asked}")
    return asked


def _fitted(kind: FftType, x: Any, lengths: Sequence[int]) -> Any:
    """The array cut off or filled with zeros to the size that a transform of these lengths takes."""
    aval = aval_of(x)
    outer = aval.shape[: aval.ndim - len(lengths)]
    wanted = (*outer, *lengths[:-1], lengths[-1] // 2 + 1 if kind is IRFFT else lengths[-1])
    if wanted == aval.shape:
        return x
    x = slice(x, [0] * aval.ndim, [min_size(a, b) for a, b in zip(wanted, aval.shape, strict=True)])
    missing = [(0, n - m, 0) for n, m in zip(wanted, aval_of(x).shape, strict=True)]
    return pad(x, literal(0, aval.dtype), missing)


def _transformed(kind: FftType, x: Any, lengths: tuple[int, ...]) -> Any:
    """The transform over the last axes, at most three at a time.

    `rfft` starts with the last axes, as its input is real; `irfft` ends with them, as its output is.
    """
    if len(lengths) <= 3:
        return transform(x, kind, lengths)
    others = {RFFT: FFT, IRFFT: IFFT}.get(kind, kind)
    if kind is IRFFT:
        return transform(_over_others(others, x, lengths), kind, lengths[-3:])
    return _over_others(others, transform(x, kind, lengths[-3:]), lengths)


def _over_others(kind: FftType, x: Any, lengths: tuple[int, ...]) -> Any:
    ndim, outer = aval_of(x).ndim, lengths[:-3]
    first = ndim - len(lengths)
    here, end = range(first, first + len(outer)), range(ndim - len(outer), ndim)
    return moveaxis(_transformed(kind, moveaxis(x, here, end), outer), end, here)


def _scaled(name: str, kind: FftType, x: Any, lengths: Sequence[int], norm: Norm) -> Any:
    """Scale by the factor for `norm`; XLA's inverse transforms have 1/n already."""
    inverse = kind in (IFFT, IRFFT)
    n = math.prod(lengths)
    factors = {None: 1.0, "backward": 1.0, "forward": n if inverse else 1 / max(n, 1), "ortho": math.sqrt(n)}
    if norm not in factors:
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    factor = 1 / max(factors[norm], 1.0) if norm == "ortho" and not inverse else factors[norm]
    return x if factor == 1 else mul(x, literal(factor, aval_of(x).dtype))


def _swapped(norm: Norm) -> Norm:
    """hfft is the transform there, done by the one back."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def _conjugate(name: str, a: Any) -> Any:
    array = as_operand(name, a)
    return conj(array) if issubdtype(aval_of(array).dtype, np.complexfloating) else array
