"""The objects `jnp.float32`, `jnp.int8`, ...: each names a dtype, and a call converts to an array of it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xlamini.core.errors.api_boundary  # which needs this module
from xlamini.core import hooks
from xlamini.core.dtypes.table import scalar_types


class ScalarConstructor:
    """`jnp.float32`: usable wherever a dtype is, equal to NumPy's scalar type, and callable.

    >>> float32 = constructors["float32"]
    >>> np.zeros(2, float32).dtype, float32 == np.float32, isinstance(np.float32(1), float32)
    (dtype('float32'), True, True)
    """

    dtype: np.dtype
    type: type[Any]

    def __init__(self, dtype: np.dtype):
        self.dtype, self.type = dtype, dtype.type
        self.__name__ = self.__qualname__ = dtype.name
        self.__module__ = "xlamini.numpy"

    def __call__(self, x: Any) -> Any:
        """An array of this dtype with the value of `x`."""
        try:
            return hooks.make_array(x, self.dtype)
        except Exception as error:
            xlamini.core.errors.api_boundary.trim(error)
            raise

    def __eq__(self, other: object) -> bool:
        return self is other or self.type is other or self.dtype == other

    def __hash__(self) -> int:
        return hash(self.type)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.type)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        """The base of a class derived from `jnp.int8`: a call of it makes an array, as one of `jnp.int8` does."""
        return (type(self.__name__, (), {"__new__": lambda cls, x: self(x), "dtype": self.dtype}),)

    def __repr__(self) -> str:
        return f"<class 'xlamini.numpy.{self.__name__}'>"

    def __reduce__(self) -> tuple[Callable[[str], ScalarConstructor], tuple[str]]:
        return _by_name, (self.__name__,)


constructors: dict[str, ScalarConstructor] = {
    dtype.name: ScalarConstructor(dtype) for dtype in scalar_types
}
"""Every constructor by its dtype's name."""


def _by_name(name: str) -> ScalarConstructor:
    return constructors[name]
