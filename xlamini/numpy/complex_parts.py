"""Parts of complex numbers under NumPy's names; real arrays have them too."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.numpy.creation import zeros_like
from xlamini.numpy.ufuncs.declaration import as_default_floats, ufunc, unpromoted
from xlamini.primitives import COMPLEX, kind_of
from xlamini.primitives.elementwise import complex
from xlamini.primitives.elementwise.trigonometric import atan2
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


def _is_complex(x: Any) -> bool:
    return kind_of(aval_of(x).dtype) in COMPLEX


@ufunc(lambda x: complex.real(x) if _is_complex(x) else x, unpromoted)
def real(val: ArrayLike, /) -> Array:
    """The real part of each element: itself if it is real.

    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    ...


@ufunc(lambda x: complex.imag(x) if _is_complex(x) else zeros_like(x), unpromoted)
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part of each element: 0 if it is real.

    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    ...


@ufunc(lambda x: complex.conj(x) if _is_complex(x) else x, unpromoted)
def conjugate(x: ArrayLike, /) -> Array:
    """Each element with its imaginary part negated: itself if it is real.

    >>> conjugate(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    ...


conj = conjugate


@composite(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of each complex number in the plane, in (-pi, pi], or in degrees.

    >>> angle(1j, deg=True)
    Array(90., dtype=float32, weak_type=True)
    """
    (x,) = as_default_floats("angle", z)
    radians = atan2(imag(x), real(x))
    return radians * (180 / math.pi) if deg else radians
