"""Operations on the bits of integers under NumPy's names; on bools they are logic. TypeError for floats."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of, canonicalize_dtype
from xlamini.numpy.ufuncs.declaration import for_kinds, ufunc, unpromoted
from xlamini.primitives import BOOL, INTEGER, convert, kind_of, promoted
from xlamini.primitives.base import operators
from xlamini.primitives.base.dtype_kinds import SIGNED
from xlamini.primitives.elementwise import bitwise
from xlamini.runtime import Array
from xlamini.typing import ArrayLike


@ufunc(bitwise.bitwise_and)
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits that are set in both of each pair: `x & y`; TypeError for floats.

    >>> jnp.bitwise_and(0b1100, jnp.array([0b1010, 0b0011]))
    Array([8, 0], dtype=int32)
    """
    ...


@ufunc(bitwise.bitwise_or)
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits that are set in either of each pair: `x | y`; TypeError for floats.

    >>> jnp.bitwise_or(0b1100, jnp.array([0b1010, 0b0011]))
    Array([14, 15], dtype=int32)
    """
    ...


@ufunc(bitwise.bitwise_xor)
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits that are set in exactly one of each pair: `x ^ y`; TypeError for floats.

    >>> jnp.bitwise_xor(0b1100, jnp.array([0b1010, 0b0011]))
    Array([ 6, 15], dtype=int32)
    """
    ...


@ufunc(bitwise.bitwise_not)
def bitwise_not(x: ArrayLike, /) -> Array:
    """The bitwise complement of each element: `~x`.

    >>> jnp.bitwise_not(6)
    Array(-7, dtype=int32, weak_type=True)
    """
    ...


invert: Callable[[ArrayLike], Array]
bitwise_invert = invert = bitwise_not


def _integers(name: str, *operands: Any) -> Sequence[Any]:
    """Promoted integers; booleans count as 0 and 1, as Python's `True << 1` has it."""
    ready = promoted(name, *operands)
    if kind_of(aval_of(ready[0]).dtype) is BOOL:
        ready = [convert(x, canonicalize_dtype(int)) for x in ready]
    return for_kinds(INTEGER, unpromoted)(name, *ready)


@ufunc(bitwise.shift_left, _integers)
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of each x moved up by y places: `x << y`.

    >>> jnp.left_shift(3, 2)
    Array(12, dtype=int32, weak_type=True)
    """
    ...


bitwise_left_shift = left_shift


@ufunc(operators.right_shift, _integers)
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of each x1 moved down by x2 places: `x1 >> x2`; the sign stays.

    >>> right_shift(-8, 1)
    Array(-4, dtype=int32, weak_type=True)
    """
    ...


bitwise_right_shift = right_shift


def _count(x: Any) -> Any:
    magnitude = operators.absolute(x) if kind_of(aval_of(x).dtype) in SIGNED else x
    return convert(bitwise.population_count(magnitude), np.dtype("uint8"))


@ufunc(_count, _integers)
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits set in the absolute value of each element, as uint8.

    >>> jnp.bitwise_count(jnp.array([6, 7]))
    Array([2, 3], dtype=uint8)
    """
    ...
