"""Draws of floats narrower than float32: they are made in float32, and rounded once.

A uniform number of bfloat16 has 128 values. Noise that is made of so few is biased, has short tails or infinite ones,
and is equal so often that a comparison decides by order.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from xlamini.core import check_user_dtype, finfo, issubdtype, literal
from xlamini.primitives import convert, max as maximum, min as minimum

F = TypeVar("F", bound=Callable[..., Any])

_SINGLE = np.dtype(np.float32)


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which numbers of a dtype are drawn."""
    return _SINGLE if issubdtype(dtype, np.floating) and dtype.itemsize < _SINGLE.itemsize else dtype


def rounded(x: Any, dtype: np.dtype) -> Any:
    """Numbers that were drawn in `wide(dtype)`, in the dtype; what it cannot hold is its largest number."""
    if x.dtype == dtype:
        return x
    largest = float(finfo(dtype).max)
    if largest < float(finfo(x.dtype).max) / 2:
        x = minimum(maximum(x, literal(-largest, x.dtype)), literal(largest, x.dtype))
    return convert(x, dtype)


def drawn_wide(fun: F) -> F:
    """Decorator for a sampler: it is asked for float32 where its argument `dtype` is narrower."""
    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def draw(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        asked = bound.arguments.get("dtype")
        found = None if asked is None else check_user_dtype(asked, fun.__name__)
        if found is None or wide(found) == found:
            return fun(*args, **kwargs)
        bound.arguments["dtype"] = wide(found)
        return rounded(fun(*bound.args, **bound.kwargs), found)

    return draw  # type: ignore[return-value]
