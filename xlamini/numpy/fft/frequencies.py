"""The frequencies of a discrete Fourier transform, and their order along an axis."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import aval_of, canonicalize_dtype, check_user_dtype
from xlamini.numpy.arguments import as_axes, as_index, as_operand
from xlamini.numpy.arithmetic import multiply, true_divide
from xlamini.numpy.flipping import roll
from xlamini.primitives import gt, sub, where
from xlamini.primitives.complex import part_dtype
from xlamini.primitives.iota import iota
from xlamini.runtime import Array
from xlamini.transforms.sharding.device_put import device_put
from xlamini.typing import ArrayLike, DTypeLike


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the n elements of `fft` for sample spacing `d`: 0, 1, ... up to the half, then negative ones.

    >>> fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = _count("fftfreq", n)
    k = iota(_float(dtype, "fftfreq"), n)
    return _frequencies(where(gt(k, (n - 1) // 2), sub(k, n), k), n, d, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the `n // 2 + 1` elements of `rfft` for n samples of spacing `d`.

    >>> rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = _count("rfftfreq", n)
    return _frequencies(iota(_float(dtype, "rfftfreq"), n // 2 + 1), n, d, device)


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
    count = as_index(name, "n", n)
    if count < 0:
        raise ValueError(f"{name}: n must not be negative, got {count}")
    return count


def _float(dtype: Any, name: str) -> Any:
    return canonicalize_dtype(float) if dtype is None else part_dtype(check_user_dtype(dtype, name))


def _frequencies(k: Any, n: int, d: Any, device: Any) -> Any:
    found = true_divide(k, multiply(float(n), d))
    return found if device is None else device_put(found, device)


def _shifted(name: str, x: Any, axes: Any, direction: int) -> Any:
    x = as_operand(name, x)
    shape = aval_of(x).shape
    chosen = as_axes(name, axes, len(shape))
    return roll(x, [direction * (shape[a] // 2) for a in chosen], chosen)
