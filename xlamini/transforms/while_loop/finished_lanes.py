"""The examples of a batched loop that are finished while others go on: the body runs on them too.

It may have no finite value at their last carry. So they are given the carry of an example that goes on.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.primitives import broadcast_in_dim, convert, reshape
from xlamini.primitives.arg_extrema import argmax
from xlamini.primitives.dynamic_slice import dynamic_index_in_dim
from xlamini.primitives.select import select_n

_INT32 = np.dtype(np.int32)


def replace_finished(going: Any, x: Any) -> Any:
    """The carry, with the first continuing example in place of examples whose predicate is false."""
    dims, shape = aval_of(going).shape, aval_of(x).shape
    if not math.prod(dims):
        return x
    first = argmax(reshape(convert(going, _INT32), (math.prod(dims),)), 0, _INT32)
    row = dynamic_index_in_dim(reshape(x, (math.prod(dims), *shape[len(dims) :])), first, 0, keepdims=False)
    return select_lanes(going, x, broadcast_in_dim(row, shape, tuple(range(len(dims), len(shape)))))


def select_lanes(going: Any, x: Any, y: Any) -> Any:
    """`x` for the examples whose predicate is true, `y` for the others."""
    if x is y:
        return x
    spread = broadcast_in_dim(going, aval_of(x).shape, tuple(range(aval_of(going).ndim)))
    return select_n(spread, y, x)
