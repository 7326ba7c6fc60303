"""The lanes of batched control flow: examples, of which some take part while others only run along.

A program may have no finite value for an example that does not take part. So that is given the values of one that does.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.primitives import broadcast_in_dim, convert, reshape
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.indexing.dynamic_slice import dynamic_index_in_dim
from xlamini.primitives.reductions.arg_extrema import argmax

_INT32 = np.dtype(np.int32)


def replace_idle(active: Any, x: Any) -> Any:
    """The values, with those of the first active lane in place of those of idle ones; lanes are leading dimensions."""
    dims, shape = aval_of(active).shape, aval_of(x).shape
    if not math.prod(dims):
        return x
    first = argmax(reshape(convert(active, _INT32), (math.prod(dims),)), 0, _INT32)
    row = dynamic_index_in_dim(reshape(x, (math.prod(dims), *shape[len(dims) :])), first, 0, keepdims=False)
    return select_lanes(active, x, broadcast_in_dim(row, shape, tuple(range(len(dims), len(shape)))))


def select_lanes(active: Any, x: Any, y: Any) -> Any:
    """`x` for the active lanes, `y` for the idle ones."""
    if x is y:
        return x
    spread = broadcast_in_dim(active, aval_of(x).shape, tuple(range(aval_of(active).ndim)))
    return select_n(spread, y, x)
