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

from xlamini.core import finfo, issubdtype, literal
from xlamini.primitives import convert, max as maximum, min as minimum
from xlamini.random.arguments import float_dtype, sampler

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


def float_sampler(*static: str, check: Callable[[str, Any], np.dtype] = float_dtype) -> Callable[[F], F]:
    """`sampler` for a function that draws floats: it is given a dtype that was checked, float32 for a narrower one."""
    return lambda fun: sampler("shape", "dtype", *static)(drawn_wide(fun, check))


def drawn_wide(fun: Any, check: Callable[[str, Any], np.dtype] = float_dtype) -> Any:
    """A function that is given its argument `dtype` checked, and float32 where that is narrower."""
    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def draw(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        found = check(fun.__name__, bound.arguments.get("dtype"))
        bound.arguments["dtype"] = wide(found)
        return rounded(fun(*bound.args, **bound.kwargs), found)

    return draw
