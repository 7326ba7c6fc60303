"""Convolutions over runs of places in one dimension of space, the one in which the window is longest.

Their arrays have features last and before them that dimension, of which a place is a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Params, ShapedArray, aval_of
from xlamini.primitives.shape.shape import transpose
from xlamini.primitives.windows.conv_numbers import OF_SPACE, features_last, result_space

_LEAST_PRODUCTS = 2**22
"""Fewer take XLA less than 10 ms, and both forms take some 0.2 s longer to compile than XLA's own alone."""


def pays(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> bool:
    """Whether there are so many products that runs are worth their compilation."""
    images = lhs.shape[params["dimension_numbers"].lhs_spec[0]]
    return images * math.prod(result_space(lhs, rhs, **params)) * rhs.size >= _LEAST_PRODUCTS


def longest(window: Sequence[int]) -> int:
    """The dimension of space of the runs, the first of equals."""
    return max(range(len(window)), key=lambda d: window[d])


def without_runs(window: Sequence[int]) -> list[int]:
    """The dimensions of space that have no runs."""
    return [d for d in range(len(window)) if d != longest(window)]


def convolved(bind: Callable[..., Any], x: Any, kernel: Any, outer: Sequence[int], params: Params) -> Any:
    """The convolution of (N, outer…, runs, features) by (outer…, runs, features, outputs), in NHWC and HWIO order.

    `outer` lists the dimensions of space that have no runs, whose strides, padding and dilation are those of `params`.
    """
    of_space = {name: (*(params[name][d] for d in outer), one) for name, one in OF_SPACE.items()}
    return bind(x, kernel, **params | of_space | {"dimension_numbers": features_last(aval_of(x).ndim)})


def moved(x: Any, spec: Sequence[int], order: Sequence[int]) -> Any:
    """An array of these dimension numbers with its dimensions, such as 0 for the batch, in this order."""
    return transpose(x, [spec[d] for d in order])


def moved_back(x: Any, spec: Sequence[int], order: Sequence[int]) -> Any:
    """An array in this order with these dimension numbers."""
    return transpose(x, np.argsort([spec[d] for d in order]).tolist())
