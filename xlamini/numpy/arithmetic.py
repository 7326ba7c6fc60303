"""Elementwise arithmetic under NumPy's names: sums, products, quotients, powers, extrema, signs."""

from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.ufuncs.declaration import for_kinds, ufunc, unpromoted
from xlamini.primitives import (
    COMPLEX,
    INTEGER,
    broadcasted_freely,
    check_operands,
    in_dtype,
    kind_of,
    promoted,
    promoted_inexact,
    promoted_inexact_dtypes,
    where,
)
from xlamini.primitives.base import operators
from xlamini.primitives.base.dtype_kinds import REAL
from xlamini.primitives.base.promotion import promoted_numeric
from xlamini.primitives.elementwise import arithmetic
from xlamini.primitives.elementwise.power import integer_pow, pow as _pow, square as _square
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@ufunc(arithmetic.add)
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Sum of each pair of elements: `x + y`; for bools, whether either holds. ShapeError if shapes do not broadcast.

    >>> jnp.add(jnp.array([1, 2]), 0.5)
    Array([1.5, 2.5], dtype=float32, weak_type=True)
    """
    ...


@ufunc(arithmetic.sub)
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Difference of each pair of elements: `x - y`; TypeError for bools.

    >>> jnp.subtract(jnp.array([1, 2]), jnp.array([[1], [2]]))
    Array([[ 0,  1],
           [-1,  0]], dtype=int32)
    """
    ...


@ufunc(arithmetic.mul)
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Product of each pair of elements: `x * y`; for bools, whether both hold.

    >>> jnp.multiply(jnp.array([1, 2, 3]), 2)
    Array([2, 4, 6], dtype=int32)
    >>> jnp.multiply.reduce(jnp.array([1, 2, 3]))
    Array(6, dtype=int32)
    """
    ...


@ufunc(arithmetic.div, promoted_inexact)
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Quotient of each pair of elements: `x1 / x2`, a float even for integers.

    >>> jnp.true_divide(jnp.array([1, 2]), 4)
    Array([0.25, 0.5 ], dtype=float32)
    """
    ...


divide = true_divide


@ufunc(operators.floor_divide, unpromoted)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Quotient of each pair of elements rounded towards minus infinity: `x1 // x2`; TypeError for complex numbers.

    >>> floor_divide(-7, 2)
    Array(-4, dtype=int32, weak_type=True)
    """
    ...


@ufunc(operators.remainder, unpromoted)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of `x1 // x2`, with the sign of x2: `x1 % x2`; TypeError for complex numbers.

    >>> remainder(-7, 2)
    Array(1, dtype=int32, weak_type=True)
    """
    ...


mod = remainder


@ufunc(operators.divmod, unpromoted)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The quotient rounded down, and the remainder: `(x1 // x2, x1 % x2)`.

    >>> jnp.divmod(7, 3)
    (Array(2, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))
    """
    ...


def _fmod(x: Any, y: Any) -> Any:
    rest = arithmetic.rem.bind(x, y)
    aval = aval_of(rest)
    if kind_of(aval.dtype) not in INTEGER:
        return rest
    zero = in_dtype(0, aval.dtype, aval.weak_type)
    return where(operators.equal(y, 0), zero, rest)


@ufunc(_fmod, promoted_numeric)
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of division rounded towards zero, with the sign of x1; 0 for integers and x2 = 0.

    >>> jnp.fmod(-7, 3)
    Array(-1, dtype=int32, weak_type=True)
    """
    ...


@ufunc(arithmetic.neg)
def negative(x: ArrayLike, /) -> Array:
    """The number of the other sign: `-x`; TypeError for bools.

    >>> jnp.negative(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    >>> jnp.negative(jnp.array([1, 2], "uint8"))
    Array([255, 254], dtype=uint8)
    """
    ...


@ufunc(operators.positive, unpromoted)
def positive(x: ArrayLike, /) -> Array:
    """The array itself: `+x`.

    >>> jnp.positive(jnp.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """
    ...


@ufunc(operators.absolute, unpromoted)
def absolute(x: ArrayLike, /) -> Array:
    """Absolute value of each element; a float for complex numbers.

    >>> absolute(3 - 4j)
    Array(5., dtype=float32, weak_type=True)
    """
    ...


abs = absolute


@ufunc(arithmetic.abs, for_kinds(REAL, promoted_inexact))
def fabs(x: ArrayLike, /) -> Array:
    """Absolute value of each element, as a float; TypeError for complex numbers.

    >>> jnp.fabs(-2)
    Array(2., dtype=float32, weak_type=True)
    """
    ...


@ufunc(arithmetic.sign)
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 for each element, in its dtype; for complex numbers, the one of modulus 1 in the same direction.

    >>> jnp.sign(jnp.array([-3.0, 0.0, 2.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    ...


@ufunc(_square, promoted_numeric)
def square(x: ArrayLike, /) -> Array:
    """Square of each element: `x * x`.

    >>> jnp.square(jnp.array([1, -2]))
    Array([1, 4], dtype=int32)
    """
    ...


@ufunc(lambda x: integer_pow(x, -1), promoted_inexact)
def reciprocal(x: ArrayLike, /) -> Array:
    """`1 / x` of each element, as a float.

    >>> jnp.reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    ...


_general_power = composite()(operators.general_power)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Each element of x1 to the power of that of x2: `x1 ** x2`.

    A Python integer as x2 is part of the program, which then multiplies; it may be negative for floats only
    (TypeError).

    >>> power(2.0, -1), power(9, 0.5)
    (Array(0.5, dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    if operators.is_static_integer(x2):
        return operators.power(as_operand("power", x1), x2)
    return _general_power(x1, x2)


pow = power


@ufunc(_pow, promoted_inexact)
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Each element of x to the power of that of y, as a float.

    >>> jnp.float_power(2, 3)
    Array(8., dtype=float32, weak_type=True)
    """
    ...


@ufunc(arithmetic.max)
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of each pair of elements; NaN where one of them is NaN.

    >>> jnp.maximum(jnp.array([1.0, jnp.nan, 3.0]), 2.0)
    Array([ 2., nan,  3.], dtype=float32)
    """
    ...


@ufunc(arithmetic.min)
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of each pair of elements; NaN where one of them is NaN.

    >>> jnp.minimum(jnp.array([1.0, jnp.nan, 3.0]), 2.0)
    Array([ 1., nan,  2.], dtype=float32)
    """
    ...


def _fmax(x: Any, y: Any) -> Any:
    return where(operators.bitwise_or(operators.greater(x, y), operators.not_equal(y, y)), x, y)


def _fmin(x: Any, y: Any) -> Any:
    return where(operators.bitwise_or(operators.less(x, y), operators.not_equal(y, y)), x, y)


@ufunc(_fmax)
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of each pair of elements; where one of them is NaN, the other.

    >>> jnp.fmax(jnp.nan, 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    ...


@ufunc(_fmin)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of each pair of elements; where one of them is NaN, the other.

    >>> jnp.fmin(jnp.nan, 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    ...


@composite()
def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Limit each element to the bounds; `max` wins where the bounds cross. ValueError for complex numbers.

    >>> clip(xlamini.numpy.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    x = as_operand("clip", arr)
    for bound, limit in ((min, arithmetic.max), (max, arithmetic.min)):
        if bound is not None:
            operands = promoted("clip", x, bound)
            if kind_of(aval_of(operands[0]).dtype) in COMPLEX:
                raise ValueError("clip: the array and its bounds must be real; clip the real and imaginary parts apart")
            x = limit.bind(*operands)
    return x


def _of_any_rank(name: str, *operands: Any) -> Any:
    return broadcasted_freely(name, *promoted_inexact_dtypes(*check_operands(name, operands)))


def _heaviside(x: Any, y: Any) -> Any:
    aval = aval_of(x)
    zero, one = (operators.in_dtype(v, aval.dtype, aval.weak_type) for v in (0, 1))
    at_zero = where(operators.equal(x, 0), y, x)
    return where(operators.less(x, 0), zero, where(operators.greater(x, 0), one, at_zero))


@ufunc(_heaviside, for_kinds(REAL, _of_any_rank))
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The step function: 0 where x1 is negative, 1 where it is positive, x2 where it is 0.

    >>> heaviside(xlamini.numpy.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    ...
