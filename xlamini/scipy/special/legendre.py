"""Associated Legendre functions of all degrees and orders up to given ones, with Condon's and Shortley's phase."""
from __future__ import annotations

import math
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.numpy.arguments import as_count, as_operand
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_MOST = 1000


@composite(static=("m", "n"))
def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The functions of orders 0 to m and degrees 0 to n at each z, and their derivatives: shape (m + 1, n + 1, len(z)).

    Zero where the order is above the degree. The derivatives are not finite at 1 and -1. ShapeError unless z has one
    axis, ValueError for an order or degree below 0 or above 1,000.

    >>> lpmn(1, 1, jnp.array([0.5]))[0][:, 1]
    Array([[ 0.5      ],
           [-0.8660254]], dtype=float32)
    """
    points: Any = _checked("lpmn", m, n, z)
    values = _values(m, n, points)
    before = jnp.pad(values, [(0, 0), (1, 0), (0, 0)])[:, :-1]
    degree, order = (jnp.arange(k + 1, dtype=points.dtype)[:, None] for k in (n, m))
    order, points = order[:, None], points[None]
    slopes = (degree * points * values - (degree + order) * before) / (points * points - 1)  # DLMF 14.10.5
    return values, jnp.where(order > degree, 0, slopes)


@composite(static=("m", "n", "is_normalized"))
def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The functions of orders 0 to m and degrees 0 to n at each z, of shape (m + 1, n + 1, len(z)).

    Normalised, they are those that spherical harmonics are made of. Errors as for `lpmn`.

    >>> lpmn_values(0, 1, jnp.array([0.5]), False)
    Array([[[1. ],
            [0.5]]], dtype=float32)
    """
    values = _values(m, n, _checked("lpmn_values", m, n, z))
    if not is_normalized:
        return values
    factors = [[_factor(order, degree) for degree in range(n + 1)] for order in range(m + 1)]
    return values * jnp.array(factors, values.dtype)[..., None]


def _factor(order: int, degree: int) -> float:
    """The factor that normalizes a spherical harmonic: the integral of its square is 1."""
    if order > degree:
        return 0.0
    share = math.exp(math.lgamma(degree - order + 1) - math.lgamma(degree + order + 1))
    return math.sqrt((2 * degree + 1) / (4 * math.pi) * share)


def _checked(name: str, m: int, n: int, z: Any) -> Any:
    as_count(name, "m", m, _MOST)
    as_count(name, "n", n, _MOST)
    z = as_operand(name, z)
    if z.ndim != 1:
        raise ShapeError(f"{name}: z must have one axis, got shape {z.shape}; use vmap for more")
    return z if jnp.issubdtype(z.dtype, jnp.floating) else z.astype(float)


def _values(m: int, n: int, z: Any) -> Any:
    """Order by order: the first function by its closed form, the others by the recurrence in the degree."""
    zero, first = jnp.zeros_like(z), jnp.ones_like(z)
    rows = []
    for order in range(m + 1):
        row = [zero] * min(order, n + 1)
        before, value = zero, first
        for degree in range(order, n + 1):  # DLMF 14.10.3
            row.append(value)
            rest = (degree + order) * before
            before, value = value, ((2 * degree + 1) * z * value - rest) / (degree - order + 1)
        rows.append(jnp.stack(row))
        first = -(2 * order + 1) * jnp.sqrt(1 - z * z) * first
    return jnp.stack(rows)
