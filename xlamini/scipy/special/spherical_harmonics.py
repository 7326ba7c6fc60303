"""Spherical harmonics, by the recurrence of normalised associated Legendre functions in the degree."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_index, as_operand
from xlamini.primitives import abs, broadcasted, convert, eq, exp, log, max, min, promoted_inexact, sqrt, where
from xlamini.primitives.base.broadcasting import spread
from xlamini.primitives.base.operators import power
from xlamini.primitives.elementwise import complex as complex_ops
from xlamini.primitives.elementwise.special.gamma import lgamma
from xlamini.primitives.elementwise.trigonometric import cos, sin
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.typing import ArrayLike


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """The spherical harmonics of degree n and order m, whole numbers, at the polar angle theta and the azimuth phi.

    The arguments broadcast. Degrees above `n_max` are taken for it; it must be given where n is traced. With `diff_n`
    other than None NotImplementedError: `xlamini.jvp` has the derivatives.

    >>> sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0]))
    Array([0.48860252+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; differentiate with xlamini.jvp")
    degrees, orders = as_operand("sph_harm_y", n), as_operand("sph_harm_y", m)
    last = int(np.max(np.asarray(degrees), initial=0)) if n_max is None else as_index("sph_harm_y", "n_max", n_max)
    return _sph_harm_y(degrees, orders, theta, phi, n_max=last)


@composite(static=("n_max",))
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, n_max: int) -> Any:
    theta, phi = promoted_inexact("sph_harm_y", theta, phi)
    dtype = aval_of(theta).dtype
    degree, order = convert(min(n, n_max), dtype), convert(m, dtype)
    degree, order, theta, phi = broadcasted("sph_harm_y", degree, order, theta, phi)
    avals = [aval_of(v) for v in (degree, order, theta, phi)]
    whole = avals[0].update(shape=broadcast_shapes(*(a.shape for a in avals)))
    degree, order, theta, phi = (spread(v, whole) for v in (degree, order, theta, phi))
    size = abs(order)
    value = _legendre(degree, size, theta, n_max)
    odd = eq(size - 2 * convert(convert(size / 2, np.dtype(np.int32)), dtype), 1)
    value = where(order < 0, where(odd, -value, value), value)
    return complex_ops.complex(value * cos(order * phi), value * sin(order * phi))


def _legendre(degree: Any, order: Any, theta: Any, n_max: int) -> Any:
    """The normalised function with Condon's and Shortley's phase: DLMF 14.10.3, from degree = order upwards."""
    x, start = cos(theta), _first(order, theta)

    def step(l: Any, state: Any) -> Any:  # noqa: E741
        l = convert(l, aval_of(x).dtype)  # noqa: E741
        before, last, found = state
        rising = max(l * l - order * order, 1.0)
        back = max((l - 1) * (l - 1) - order * order, 0.0) / max(4 * (l - 1) * (l - 1) - 1, 1.0)
        value = sqrt((4 * l * l - 1) / rising) * (x * last - _root(back) * before)
        value = where(eq(l, order), start, where(l < order, 0.0, value))
        return last, value, where(eq(l, degree), value, found)

    first = where(eq(order, 0), start, 0.0)
    return fori_loop(1, n_max + 1, step, (0 * x, first, first))[2]


def _root(x: Any) -> Any:
    """The square root, with a derivative at 0."""
    return where(eq(x, 0), 0.0, sqrt(where(eq(x, 0), 1.0, x)))


def _first(order: Any, theta: Any) -> Any:
    """The function whose degree is the order."""
    scale = exp((log((2 * order + 1) / (4 * math.pi)) + lgamma(order + 0.5) - lgamma(order + 1)) / 2)
    whole = convert(order, np.dtype(np.int32))
    return scale * math.pi**-0.25 * power(-sin(theta), whole)
