"""Polynomials with coefficients from the constant one on."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from xlamini.core import aval_of
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.primitives import broadcast_in_dim, check_operands, expand_dims
from xlamini.primitives.base.promotion import promoted_dtypes
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.scan.api import scan
from xlamini.typing import ArrayLike

_UNROLL = 8


@composite(static=("unroll",))
def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """`coeffs[0] + coeffs[1] * x + coeffs[2] * x ** 2 + ...`, elementwise, by Horner's rule; 0 without coefficients.

    Coefficients that are arrays broadcast with `x`. More than `unroll` of them (8 by default) are taken in a loop.

    >>> lax.polynomial(3.0, [1.0, 5.0, 2.0])
    Array(34., dtype=float32, weak_type=True)
    """
    at, *terms = promoted_dtypes(*check_operands("polynomial", (x, *coeffs)))
    if not terms:
        return zeros(aval_of(at))
    shape = broadcast_shapes(*(aval_of(each).shape for each in (at, *terms)))
    value, *rest = (_in_shape(term, shape) for term in terms[::-1])

    def step(y: Any, term: Any) -> Any:
        return y * at + term

    if len(terms) <= (_UNROLL if unroll is None else unroll):
        return functools.reduce(step, rest, value)
    rows = concatenate([expand_dims(term, (0,)) for term in rest], 0)
    return scan(lambda y, term: (step(y, term), None), value, rows)[0]


def _in_shape(term: Any, shape: tuple[int, ...]) -> Any:
    own = aval_of(term).shape
    return broadcast_in_dim(term, shape, range(len(shape) - len(own), len(shape)))
