"""Operations on the bits of integers; logic on bools.

Shifts by a negative number of places, or by the width of the dtype or more, shift everything out.
"""
from __future__ import annotations

from typing import Any

from xlamini.primitives.base.dtype_kinds import BOOL, INTEGER
from xlamini.primitives.base.elementwise import elementwise


@elementwise(hlo="stablehlo.and", accepts=INTEGER | BOOL)
def bitwise_and(x: Any, y: Any) -> Any:
    """The bits set in both, elementwise: `x & y`; for bools, whether both hold.

    >>> lax.bitwise_and(6, 3)
    Array(2, dtype=int32, weak_type=True)
    """


@elementwise(hlo="stablehlo.or", accepts=INTEGER | BOOL)
def bitwise_or(x: Any, y: Any) -> Any:
    """The bits set in either, elementwise: `x | y`; for bools, whether one holds.

    >>> lax.bitwise_or(6, 3)
    Array(7, dtype=int32, weak_type=True)
    """


@elementwise(hlo="stablehlo.xor", accepts=INTEGER | BOOL)
def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits set in exactly one, elementwise: `x ^ y`; for bools, whether they differ.

    >>> lax.bitwise_xor(6, 3)
    Array(5, dtype=int32, weak_type=True)
    """


@elementwise(hlo="stablehlo.not", accepts=INTEGER | BOOL)
def bitwise_not(x: Any) -> Any:
    """The elementwise bitwise complement: `~x`; for bools the logical not.

    >>> lax.bitwise_not(6)
    Array(-7, dtype=int32, weak_type=True)
    """


# In programs they are called and, or, xor, not, which Python has as keywords.
for _operation in (bitwise_and, bitwise_or, bitwise_xor, bitwise_not):
    _operation.name = _operation.name.removeprefix("bitwise_")


@elementwise(hlo="stablehlo.shift_left", accepts=INTEGER)
def shift_left(x: Any, y: Any) -> Any:
    """The bits of x moved up by y places, elementwise: `x << y`.

    >>> lax.shift_left(3, 2)
    Array(12, dtype=int32, weak_type=True)
    """


@elementwise(hlo="stablehlo.shift_right_logical", accepts=INTEGER)
def shift_right_logical(x: Any, y: Any) -> Any:
    """The bits of x moved down by y places, elementwise; zeros come in at the top.

    >>> shift_right_logical(-1, 28)
    Array(15, dtype=int32, weak_type=True)
    """


@elementwise(hlo="stablehlo.shift_right_arithmetic", accepts=INTEGER)
def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """The bits of x moved down by y places, elementwise: `x >> y`; copies of the sign come in at the top.

    >>> lax.shift_right_arithmetic(-8, 1)
    Array(-4, dtype=int32, weak_type=True)
    """


@elementwise(hlo="stablehlo.popcnt", accepts=INTEGER)
def population_count(x: Any) -> Any:
    """The number of bits that are set, elementwise.

    >>> lax.population_count(jnp.int32(7))
    Array(3, dtype=int32)
    """


@elementwise(hlo="stablehlo.count_leading_zeros", accepts=INTEGER)
def clz(x: Any) -> Any:
    """The number of zero bits above the highest bit that is set, elementwise.

    >>> lax.clz(jnp.int32(1))
    Array(31, dtype=int32)
    """
