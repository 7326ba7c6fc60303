"""Arithmetic of sizes: of grids, blocks and their remainders."""
from __future__ import annotations

from typing import Any


def cdiv(a: Any, b: Any) -> Any:
    """`a / b` rounded up: how many blocks of `b` cover `a` elements. An int for ints, else an array.

    >>> cdiv(30, 8)
    4
    """
    return -(-a // b)


def align_to(a: Any, alignment: Any) -> Any:
    """The smallest multiple of `alignment` that is not below `a`.

    >>> align_to(30, 8)
    32
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not below x; ValueError for a negative x.

    >>> next_power_of_2(30)
    32
    """
    if x < 0:
        raise ValueError(f"next_power_of_2: x must be 0 or more, got {x}")
    return 1 << max(x - 1, 0).bit_length()
