"""Windows: weights that fade out towards both ends of a row of samples."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import aval_of, canonicalize_dtype
from xlamini.core.sizes.expression import NumberNeeded
from xlamini.numpy.arguments import as_operand
from xlamini.primitives import abs, convert, exp, sqrt
from xlamini.primitives.elementwise.special.bessel import bessel_i0e
from xlamini.runtime import Array, device_put_value
from xlamini.staging import composite
from xlamini.typing import ArrayLike


def bartlett(M: int) -> Array:
    """The triangular window of `M` samples.

    >>> bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", np.bartlett, M)


def blackman(M: int) -> Array:
    """The Blackman window of `M` samples: a sum of three cosines.

    >>> blackman(3).round(3)
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _window("blackman", np.blackman, M)


def hamming(M: int) -> Array:
    """The Hamming window of `M` samples: a raised cosine that does not quite reach 0.

    >>> hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window("hamming", np.hamming, M)


def hanning(M: int) -> Array:
    """The Hann window of `M` samples: a raised cosine.

    >>> hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window("hanning", np.hanning, M)


@composite(static=("M",))
def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window of `M` samples, a ratio of Bessel functions; the larger `beta`, the narrower.

    >>> kaiser(3, 2.0).round(3)
    Array([0.439, 1.   , 0.439], dtype=float32)
    """
    count = _length("kaiser", M)
    dtype = canonicalize_dtype(float)
    if count < 2:
        return device_put_value(np.ones(count, dtype))
    place = device_put_value(np.linspace(-1, 1, count).astype(dtype))
    width = convert(as_operand("kaiser", beta), dtype)
    if aval_of(width).ndim:
        raise ValueError(f"kaiser: beta must be a number, got shape {aval_of(width).shape}")
    inner = width * sqrt(1 - place * place)
    return exp(abs(inner) - abs(width)) * bessel_i0e(inner) / bessel_i0e(width)


def _length(name: str, M: Any) -> int:
    try:
        count = int(M) if isinstance(M, float) and M.is_integer() else operator.index(M)  # type: ignore[arg-type]
    except NumberNeeded:
        raise
    except TypeError:
        raise TypeError(f"{name}: M must be an integer, got {M!r}") from None
    if count < 0:
        raise ValueError(f"{name}: M must be 0 or more, got {count}")
    return count


def _window(name: str, window: Callable[[int], Any], M: Any) -> Any:
    return device_put_value(window(_length(name, M)).astype(canonicalize_dtype(float)))
