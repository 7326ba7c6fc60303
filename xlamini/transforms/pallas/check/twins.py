"""Values that depend on undefined memory: such a value is a `Twin`, computed for two contents of that memory.

What is the same for both does not depend on it: a mask, a `where` or a product with an int 0 makes a value defined
again. So every dtype is checked, and no value that the kernel drops is a mistake.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from xlamini.core import Literal
from xlamini.core.dtypes import issubdtype


class UndefinedCause(NamedTuple):
    """Undefined memory that a program has read: the name of the ref, what the memory is, and the user's line."""

    ref: str
    what: str
    place: str

    def __str__(self) -> str:
        return f"{self.ref} {self.what} (read at {self.place})"


class Twin(NamedTuple):
    """A value for either content of undefined memory, and where it may come from."""

    first: Any
    second: Any
    origins: frozenset[UndefinedCause]


def first(x: Any) -> Any:
    """The value for the first content of undefined memory."""
    return x.first if type(x) is Twin else x


def second(x: Any) -> Any:
    """The value for the second content."""
    return x.second if type(x) is Twin else x


def origins(values: Sequence[Any]) -> frozenset[UndefinedCause]:
    """The undefined memory that values may depend on."""
    return frozenset().union(*(x.origins for x in values if type(x) is Twin))


def host(x: Any) -> np.ndarray:
    """A value as an ndarray."""
    return np.asarray(x.val, x.aval.dtype) if type(x) is Literal else np.asarray(x)


def differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The mask of elements that are not the same; NaN is the same as NaN."""
    if a.dtype.kind in "biu":
        return a != b
    return (a != b) & ~((a != a) & (b != b))


def twin(a: Any, b: Any, found: frozenset[UndefinedCause]) -> Any:
    """One value if both are the same."""
    return Twin(a, b, found) if differs(host(a), host(b)).any() else a


def on_both(fun: Callable[[Sequence[Any]], Sequence[Any]], values: Sequence[Any]) -> list[Any]:
    """The results of a function for both contents of undefined memory."""
    found = origins(values)
    outs = fun([first(x) for x in values])
    if not found:
        return list(outs)
    return [twin(a, b, found) for a, b in zip(outs, fun([second(x) for x in values]), strict=True)]


def contents(shape: Sequence[int], dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two contents of undefined memory.

    For floats NaN, which spreads, and numbers of both signs, which comparisons tell apart; else the extremes.
    """
    a, b = np.zeros(shape, dtype), np.zeros(shape, dtype)
    if a.dtype == np.bool_:
        a[...] = True
    elif issubdtype(dtype, np.integer):
        limits = ml_dtypes.iinfo(dtype)
        a[...], b[...] = limits.max, limits.min
    else:
        a[...] = np.nan
        b[...] = (np.where(np.arange(b.size) % 2, -3.0, 2.5).reshape(shape)).astype(dtype)
    return a, b
