"""The frequencies of a discrete Fourier transform, and their order along an axis."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of, canonicalize_dtype, check_user_dtype, issubdtype, literal
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.numpy.arguments import as_axes, as_operand, as_whole
from xlamini.numpy.arithmetic import multiply, true_divide
from xlamini.numpy.flipping import roll
from xlamini.primitives import convert, gt, sub, where
from xlamini.primitives.elementwise.complex import part_dtype
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.transforms.sharding.device_put import device_put
from xlamini.typing import ArrayLike, DTypeLike


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the n elements of `fft` for sample spacing `d`: 0, 1, ... up to the half, then negative ones.

    In a `dtype` of integers they are rounded towards 0.

    >>> fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n, wanted = _count("fftfreq", n), _dtype("fftfreq", dtype)
    kind = _counting(wanted)
    k = iota(kind, n)
    return _frequencies(where(gt(k, literal((n - 1) // 2, kind)), sub(k, literal(n, kind)), k), n, d, wanted, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the `n // 2 + 1` elements of `rfft` for n samples of spacing `d`; floats for integer dtypes.

    >>> rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n, wanted = _count("rfftfreq", n), _dtype("rfftfreq", dtype)
    k = iota(_counting(wanted), n // 2 + 1)
    return _frequencies(k, n, d, wanted if issubdtype(wanted, np.inexact) else aval_of(k).dtype, device)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Frequency 0 in the middle of each axis, instead of at its start.

    >>> fftshift(jnp.arange(5))
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`.

    >>> ifftshift(jnp.array([3, 4, 0, 1, 2]))
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, -1)


# --- helpers


def _count(name: str, n: Any) -> int:
    count = as_whole(name, "n", n)
    if count < 0:
        raise ValueError(f"{name}: n must not be negative, got {count}")
    return count


def _dtype(name: str, dtype: Any) -> Any:
    return canonicalize_dtype(float) if dtype is None else check_user_dtype(dtype, name)


def _counting(dtype: Any) -> Any:
    """The float dtype in which the frequencies of this dtype are computed."""
    return part_dtype(dtype) if issubdtype(dtype, np.inexact) else canonicalize_dtype(float)


def _frequencies(k: Any, n: int, d: Any, dtype: Any, device: Any) -> Any:
    found = true_divide(k, multiply(literal(n, aval_of(k).dtype) if type(n) is SymbolicSize else float(n), d))
    if not issubdtype(dtype, np.floating):
        found = convert(found, dtype)
    return found if device is None else device_put(found, device)


def _shifted(name: str, x: Any, axes: Any, direction: int) -> Any:
    x = as_operand(name, x)
    shape = aval_of(x).shape
    chosen = as_axes(name, axes, len(shape))
    return roll(x, [direction * (shape[a] // 2) for a in chosen], chosen)
