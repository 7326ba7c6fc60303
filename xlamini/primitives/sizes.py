"""Sizes and dimensions that a user gives, as ints: TypeError for what is no integer, such as 2.0 or a string."""
from __future__ import annotations

import operator
from collections.abc import Sequence

from xlamini.core import Shape


def as_sizes(given: int | Sequence[int]) -> Shape:
    """A shape or a list of dimensions; one integer stands for a list of it."""
    try:
        return tuple(map(operator.index, given))  # type: ignore[arg-type]
    except TypeError:
        if hasattr(given, "__iter__") and getattr(given, "ndim", 1):
            raise
    return (operator.index(given),)  # type: ignore[arg-type]


def as_dimension(given: int, ndim: int) -> int:
    """A dimension counted from the first, for the caller to check."""
    dimension = operator.index(given)
    return dimension + ndim if -ndim <= dimension < 0 else dimension
