"""Floats that are made of normal ones: Maxwell's distribution, on one side and on both, and Wald's."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import Shape, literal
from xlamini.primitives import broadcast_to, in_dtype, le, split_p, sqrt, where
from xlamini.primitives.elementwise.power import square
from xlamini.primitives.reductions.reductions import reduce_sum
from xlamini.random.arguments import broadcast_shape, checked_shape
from xlamini.random.discrete import signs
from xlamini.random.narrow import float_sampler
from xlamini.random.normal import standard_normal
from xlamini.random.uniform import halves, uniform_between
from xlamini.runtime import Array


@float_sampler()
def maxwell(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats from Maxwell's distribution with scale 1: the length of a vector of three normal numbers.

    >>> xlamini.random.maxwell(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    return _lengths(key, checked_shape("maxwell", shape), dtype)


@float_sampler()
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats `loc + scale * m` where m is from Maxwell's distribution with a random sign.

    Their shape is `shape` followed by the shape that `loc` and `scale` broadcast to.

    >>> xlamini.random.double_sided_maxwell(xlamini.random.key(0), 0.0, 2.0, (2,)).shape
    (2,)
    """
    name = "double_sided_maxwell"
    shape = (*checked_shape(name, shape), *broadcast_shape(name, None, loc=loc, scale=scale))
    for_length, for_sign = halves(split_p.bind(key, shape=(2,)))
    standard = signs(for_sign, shape, dtype) * _lengths(for_length, shape, dtype)
    loc, scale = (broadcast_to(in_dtype(x, dtype), shape) for x in (loc, scale))
    return standard * scale + loc


def _lengths(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    vectors = standard_normal(key, (*shape, 3), dtype)
    return sqrt(reduce_sum(vectors * vectors, (len(shape),)))


@float_sampler()
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Floats from Wald's distribution, the inverse Gaussian one, with this mean and scale 1.

    Without `shape` they have the shape of `mean`.

    >>> xlamini.random.wald(xlamini.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    # Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots", 1976.
    shape = broadcast_shape("wald", shape, mean=mean)
    mean = broadcast_to(in_dtype(mean, dtype), shape)
    for_normal, for_choice = halves(split_p.bind(key, shape=(2,)))
    y = square(standard_normal(for_normal, shape, dtype))
    u = uniform_between(for_choice, shape, dtype, 0.0, 1.0)
    two: Any = literal(2, dtype)
    root = sqrt(literal(4, dtype) * mean * y + square(mean) * square(y))
    smaller = mean + square(mean) * y / two - mean / two * root
    return where(le(u, mean / (mean + smaller)), smaller, square(mean) / smaller)
