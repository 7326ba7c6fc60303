"""Constants in programs as JAX writes them: NumPy arrays and Python numbers that know their type, weak ones too."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core.program.avals import ShapedArray
from xlamini.core.program.jaxpr import Literal


class TypedNdArray(np.ndarray):
    """A NumPy array whose dtype no flag changes, and which may be weakly typed."""

    _aval: ShapedArray | None

    def __new__(cls, val: Any, aval: ShapedArray | None = None) -> TypedNdArray:
        made = np.asarray(val, None if aval is None else aval.dtype).view(cls)
        made._aval = aval
        return made

    def __array_finalize__(self, obj: Any) -> None:
        self._aval = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What NumPy computes of it is an array like any other."""
        return array[()] if return_scalar else np.asarray(array)

    @property
    def aval(self) -> ShapedArray:
        """The type."""
        return ShapedArray(self.shape, self.dtype) if self._aval is None else self._aval

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def as_literal(self) -> Literal | None:
        """A scalar as a literal again, where a program is rebuilt; None for an array."""
        return None if self.ndim else Literal(self.val[()], self.aval)

    @property
    def val(self) -> np.ndarray:
        """The array alone."""
        return np.asarray(self)


class TypedInt(int):
    """A Python integer with a dtype."""

    def __new__(cls, value: int, dtype: Any) -> TypedInt:
        return _typed(super().__new__(cls, value), dtype)


class TypedFloat(float):
    """A Python float with a dtype."""

    def __new__(cls, value: float, dtype: Any) -> TypedFloat:
        return _typed(super().__new__(cls, value), dtype)


class TypedComplex(complex):
    """A Python complex number with a dtype."""

    def __new__(cls, value: complex, dtype: Any) -> TypedComplex:
        return _typed(super().__new__(cls, value), dtype)


def _typed(number: Any, dtype: Any) -> Any:
    number.dtype, number.shape = np.dtype(dtype), ()
    number.aval = ShapedArray((), number.dtype, True)
    return number


def typed_literal(literal: Literal) -> Literal:
    """A literal whose value has the type that the program states."""
    aval = literal.aval
    return literal if isinstance(literal.val, TypedNdArray) else Literal(TypedNdArray(literal.val, aval), aval)


def typed_const(value: Any, aval: Any) -> Any:
    """A captured value in the dtype of its variable: a NumPy array keeps the user's until it is used."""
    return TypedNdArray(value, aval) if isinstance(value, np.ndarray | np.generic | int | float | complex) else value


def hash_of(literal: Literal) -> int | None:
    """The hash of a literal's value and dtype; None for what has none."""
    try:
        return hash((np.asarray(literal.val).item(), literal.aval.dtype))
    except (TypeError, ValueError):
        return None
