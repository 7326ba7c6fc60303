"""Divisors and multiples of integers."""

from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import (
    INTEGER,
    broadcast_in_dim,
    broadcasted_freely,
    check_operands,
    convert,
    kind_of,
    promoted_dtypes,
    where,
)
from xlamini.primitives.base import operators
from xlamini.primitives.elementwise import arithmetic
from xlamini.runtime import Array
from xlamini.transforms.while_loop.api import while_loop
from xlamini.typing import ArrayLike


def _integers(name: str, x: Any, y: Any) -> Any:
    """Integers of one dtype and shape."""
    check_operands(name, (x, y))
    x, y = promoted_dtypes(x, y)
    if kind_of(aval_of(x).dtype) not in INTEGER:
        raise ValueError(f"{name}: integers are needed, got {aval_of(x).dtype}; convert with .astype(int)")
    x, y = broadcasted_freely(name, x, y)
    shape = broadcast_shapes(aval_of(x).shape, aval_of(y).shape)
    return [v if aval_of(v).shape == shape else broadcast_in_dim(v, shape, ()) for v in (x, y)]


def _divisor(x: Any, y: Any) -> Any:
    """Euclid's algorithm on all pairs at once, until no rest is left."""
    aval = aval_of(x)
    start = operators.absolute(x), operators.absolute(y)
    return convert(while_loop(_some_left, _step, start)[0], aval.dtype, aval.weak_type)


def _some_left(pair: Any) -> Any:
    left = operators.not_equal(pair[1], 0)
    return left.any() if left.ndim else left


def _step(pair: Any) -> Any:
    x, y = pair
    done = operators.equal(y, 0)
    rest = arithmetic.rem(x, where(done, operators.in_dtype(1, y.dtype), y))
    return where(done, x, y), where(done, y, rest)


def _multiple(x: Any, y: Any) -> Any:
    x, y = operators.absolute(x), operators.absolute(y)
    divisor = _divisor(x, y)
    safe = where(operators.equal(divisor, 0), operators.in_dtype(1, divisor.dtype), divisor)
    return convert(operators.multiply(x, arithmetic.div(y, safe)), aval_of(x).dtype, aval_of(x).weak_type)


@ufunc(_divisor, _integers)
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of each pair of integers, not negative; of 0 and 0 it is 0.

    >>> gcd(12, jnp.array([8, -9, 0]))
    Array([ 4,  3, 12], dtype=int32)
    """
    ...


@ufunc(_multiple, _integers)
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of each pair of integers, not negative; 0 where one of them is 0.

    >>> lcm(12, jnp.array([8, -9, 0]))
    Array([24, 36,  0], dtype=int32)
    """
    ...
