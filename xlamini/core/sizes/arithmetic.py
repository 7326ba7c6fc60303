"""Arithmetic of sizes that a program computes: Python's, by operations that round a quotient towards zero."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self


class SizeValue(ABC):
    """A size as an int32 of a program, with the operators by which sizes are evaluated."""

    value: Any

    @abstractmethod
    def number(self, x: Any) -> Self:
        """A number, or another value, as a value of this program."""

    @abstractmethod
    def operation(self, name: str, other: Self) -> Self:
        """What StableHLO's operation of this name, such as "subtract", makes of two values."""

    def _with(self, name: str, other: Any) -> Self:
        return self.operation(name, self.number(other))

    def __add__(self, other: Any) -> Self:
        return self._with("add", other)

    def __sub__(self, other: Any) -> Self:
        return self._with("subtract", other)

    def __mul__(self, other: Any) -> Self:
        return self._with("multiply", other)

    def __floordiv__(self, other: Any) -> Self:
        """x // y, by a division without a rest, because the operation rounds towards zero."""
        return (self - self % other)._with("divide", other)

    def __mod__(self, other: Any) -> Self:
        """x % y, by two remainders, because the operation's has the sign of x."""
        divisor = self.number(other)
        return (self.operation("remainder", divisor) + divisor).operation("remainder", divisor)

    def __rfloordiv__(self, other: Any) -> Self:
        return self.number(other) // self

    def __rmod__(self, other: Any) -> Self:
        return self.number(other) % self

    def maximum(self, other: Any) -> Self:
        return self._with("maximum", other)

    def minimum(self, other: Any) -> Self:
        return self._with("minimum", other)

    def __radd__(self, other: Any) -> Self:
        return self + other

    def __rmul__(self, other: Any) -> Self:
        return self * other
