"""Comparison and logic under NumPy's names; the results are bool."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import aval_of, issubdtype
from xlamini.core.dtypes import extended
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_operand, refuse_out
from xlamini.numpy.construction import asarray
from xlamini.numpy.ufuncs.declaration import for_kinds, ufunc, unpromoted
from xlamini.primitives import (
    BOOL,
    COMPLEX,
    FLOAT,
    abs,
    bitcast_convert_type,
    broadcasted_freely,
    check_operands,
    convert,
    full,
    kind_of,
    promoted_inexact,
)
from xlamini.primitives.base import operators
from xlamini.primitives.base.dtype_kinds import REAL
from xlamini.primitives.base.operators import bitwise_and, bitwise_not, bitwise_or
from xlamini.primitives.base.promotion import check_dtypes, check_ranks
from xlamini.primitives.elementwise import bitwise, complex
from xlamini.primitives.elementwise.rounding import is_finite
from xlamini.primitives.reductions.reductions import reduce_and
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@ufunc(operators.equal, unpromoted)
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether `x == y`.

    >>> jnp.equal(jnp.array([1, 2]), 1)
    Array([ True, False], dtype=bool)
    """
    ...


@ufunc(operators.not_equal, unpromoted)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether `x != y`.

    >>> jnp.not_equal(jnp.array([1, 2]), 1)
    Array([False,  True], dtype=bool)
    """
    ...


@ufunc(operators.less, unpromoted)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether `x < y`; complex numbers compare by real, then imaginary part.

    >>> jnp.less(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    ...


@ufunc(operators.less_equal, unpromoted)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether `x <= y`.

    >>> jnp.less_equal(jnp.array([1, 2]), 1)
    Array([ True, False], dtype=bool)
    """
    ...


@ufunc(operators.greater, unpromoted)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether `x > y`.

    >>> jnp.greater(jnp.array([1, 2]), 1)
    Array([False,  True], dtype=bool)
    """
    ...


@ufunc(operators.greater_equal, unpromoted)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether `x >= y`.

    >>> jnp.greater_equal(jnp.array([1, 2]), 1)
    Array([ True,  True], dtype=bool)
    """
    ...


# --- logic


def _truths(name: str, *operands: Any) -> Any:
    """Operands as bools: whether they differ from 0."""
    found = check_operands(name, operands)
    check_dtypes(*found)
    check_ranks(name, found)
    return broadcasted_freely(name, *[convert(x, np.dtype(bool)) for x in found])


@ufunc(bitwise.bitwise_and, _truths)
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether both operands differ from 0.

    >>> jnp.logical_and(jnp.array([0.0, 0.5, 2.0]), jnp.array([True, False, True]))
    Array([False, False,  True], dtype=bool)
    """
    ...


@ufunc(bitwise.bitwise_or, _truths)
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether at least one operand differs from 0.

    >>> jnp.logical_or(jnp.array([0.0, 0.5, 2.0]), jnp.array([False, False, True]))
    Array([False,  True,  True], dtype=bool)
    """
    ...


@ufunc(bitwise.bitwise_xor, _truths)
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Test elementwise whether exactly one operand differs from 0.

    >>> jnp.logical_xor(jnp.array([0.0, 0.5, 2.0]), jnp.array([True, False, True]))
    Array([ True,  True, False], dtype=bool)
    """
    ...


@ufunc(bitwise.bitwise_not, _truths)
def logical_not(x: ArrayLike, /) -> Array:
    """Test elementwise whether x is 0.

    >>> jnp.logical_not(jnp.array([True, False]))
    Array([False,  True], dtype=bool)
    """
    ...


# --- kinds of numbers


def _everywhere(x: Any, truth: bool) -> Any:
    """One truth for each element, which need not be there for it."""
    return full(aval_of(x).update(dtype=np.dtype(bool), weak_type=False), truth)


def _isfinite(x: Any) -> Any:
    kind = kind_of(aval_of(x).dtype)
    if kind in COMPLEX:
        return bitwise_and(is_finite(complex.real(x)), is_finite(complex.imag(x)))
    return is_finite(x) if kind in FLOAT else _everywhere(x, True)


def _isinf(x: Any) -> Any:
    kind = kind_of(aval_of(x).dtype)
    if kind in COMPLEX:
        return bitwise_or(_isinf(complex.real(x)), _isinf(complex.imag(x)))
    return operators.equal(abs(x), math.inf) if kind in FLOAT else _everywhere(x, False)


@ufunc(lambda x: operators.not_equal(x, x), unpromoted)
def isnan(x: ArrayLike, /) -> Array:
    """Test elementwise whether x is NaN.

    >>> jnp.isnan(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([False, False,  True], dtype=bool)
    """
    ...


@ufunc(_isfinite, unpromoted)
def isfinite(x: ArrayLike, /) -> Array:
    """Test elementwise whether x is neither infinite nor NaN.

    >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    ...


@ufunc(_isinf, unpromoted)
def isinf(x: ArrayLike, /) -> Array:
    """Test elementwise whether x is infinite; a complex number is if one of its parts is.

    >>> jnp.isinf(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """
    ...


_real = for_kinds(REAL | BOOL)


def _equals(x: Any, number: float) -> Any:
    return operators.equal(x, number) if kind_of(aval_of(x).dtype) in FLOAT else _everywhere(x, False)


@composite()
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Test elementwise whether x is plus infinity; TypeError for complex numbers.

    >>> jnp.isposinf(jnp.array([-jnp.inf, jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    refuse_out("isposinf", out)
    return _equals(_real("isposinf", x)[0], math.inf)


@composite()
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Test elementwise whether x is minus infinity; TypeError for complex numbers.

    >>> jnp.isneginf(jnp.array([-jnp.inf, jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    refuse_out("isneginf", out)
    return _equals(_real("isneginf", x)[0], -math.inf)


def _isreal(x: Any) -> Any:
    aval = aval_of(x)
    return operators.equal(complex.imag(x) if kind_of(aval.dtype) in COMPLEX else full(aval, 0), 0)


@ufunc(_isreal, unpromoted)
def isreal(x: ArrayLike) -> Array:
    """Test elementwise whether the imaginary part is 0.

    >>> jnp.isreal(jnp.array([1 + 1j, 1 + 0j]))
    Array([False,  True], dtype=bool)
    """
    ...


@ufunc(lambda x: bitwise_not(_isreal(x)), unpromoted)
def iscomplex(x: ArrayLike) -> Array:
    """Test elementwise whether the imaginary part is not 0.

    >>> jnp.iscomplex(jnp.array([1 + 1j, 1 + 0j]))
    Array([ True, False], dtype=bool)
    """
    ...


def _signbit(x: Any) -> Any:
    dtype = aval_of(x).dtype
    if kind_of(dtype) not in FLOAT:
        return operators.less(x, 0)
    return operators.less(bitcast_convert_type(x, np.dtype(f"int{8 * dtype.itemsize}")), 0)


@ufunc(_signbit, for_kinds(REAL | BOOL))
def signbit(x: ArrayLike, /) -> Array:
    """Test elementwise whether the sign bit is set; -0.0 has one. TypeError for complex numbers.

    >>> jnp.signbit(jnp.array([-1.0, 0.0]))
    Array([ True, False], dtype=bool)
    """
    ...


# --- whole arrays


def _is_close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    a, b = check_operands("isclose", (a, b))
    if issubdtype(aval_of(a).dtype, extended):  # random keys, which have no distance
        return operators.equal(a, b)
    a, b = promoted_inexact("isclose", a, b)
    near = operators.less_equal(operators.absolute(a - b), atol + rtol * operators.absolute(b))
    close = bitwise_or(operators.equal(a, b), bitwise_and(_isfinite(b), near))
    if not equal_nan:
        return close
    return bitwise_or(close, bitwise_and(operators.not_equal(a, a), operators.not_equal(b, b)))


@composite(static=("equal_nan",))
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Test elementwise whether `|a - b| <= atol + rtol * |b|`; NaN is close to NaN only if `equal_nan`.

    Random keys are close to those that they are equal to.

    >>> isclose(1.0, 1.000001)
    Array(True, dtype=bool)
    """
    return _is_close(a, b, rtol, atol, equal_nan)


@composite(static=("equal_nan",))
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Test whether all pairs of elements are close to each other, as `isclose` defines it.

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0 + 1e-6]))
    Array(True, dtype=bool)
    """
    return _all(_is_close(a, b, rtol, atol, equal_nan))


@composite(static=("equal_nan",))
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Test whether two arrays have equal shapes and equal elements; NaN equals NaN only if `equal_nan`.

    >>> array_equal(xlamini.numpy.ones(2), xlamini.numpy.ones(3))
    Array(False, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if aval_of(a1).shape != aval_of(a2).shape:
        return as_operand("array_equal", False)
    same = operators.equal(a1, a2)
    if equal_nan:
        same = bitwise_or(same, bitwise_and(operators.not_equal(a1, a1), operators.not_equal(a2, a2)))
    return _all(same)


@composite()
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Test whether two arrays have equal elements after broadcasting; False where they cannot broadcast.

    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        broadcast_shapes(aval_of(a1).shape, aval_of(a2).shape)
    except ValueError:
        return as_operand("array_equiv", False)
    return _all(operators.equal(*broadcasted_freely("array_equiv", a1, a2)))


def _all(truths: Any) -> Any:
    return reduce_and(truths, range(aval_of(truths).ndim))
