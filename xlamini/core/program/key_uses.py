"""What equations do with random keys: the values of `key_uses` in the checks of a primitive.

A key that is consumed (bits are drawn from it, or it is split) must not be consumed again. A result may be a part of an
operand, or all of it: then consuming the one consumes the other. `fold_in` does neither: it makes a new key.
"""
from __future__ import annotations

from typing import Any, NamedTuple

Path = tuple[Any, ...]
"""Which part of an array of keys: the slices that were taken of it, the first one first; empty for all of it."""


class Consumed(NamedTuple):
    """An operand that is consumed, or a part of it."""

    operand: int
    path: Path = ()


class KeyPart(NamedTuple):
    """A result that is a part of an operand, or all of it."""

    result: int
    operand: int
    path: Path = ()


class Reuse(NamedTuple):
    """A key that is consumed by two equations; they are one, if that is a loop which does so in each iteration."""

    first: Any
    second: Any


class KeyUses(NamedTuple):
    """What an equation, or a program, does with the keys among its operands, and the reuses inside of it."""

    consumed: tuple[Consumed, ...] = ()
    parts: tuple[KeyPart, ...] = ()
    reuses: tuple[Reuse, ...] = ()


NO_USES = KeyUses()
CONSUMES = KeyUses(consumed=(Consumed(0),))
FORWARDS = KeyUses(parts=(KeyPart(0, 0),))


def overlap(one: Path, other: Path) -> bool:
    """Whether two parts of one array are known to share keys: they are the same, or one is a part of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]
