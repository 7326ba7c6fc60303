"""Normally distributed floats: the inverse of the normal distribution function, applied to uniform ones."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import Shape, issubdtype, literal
from xlamini.primitives import exp, in_dtype, max as maximum, min as minimum, split_p, stop_gradient
from xlamini.primitives.elementwise.complex import complex as from_parts, part_dtype
from xlamini.primitives.elementwise.rounding import nextafter
from xlamini.primitives.elementwise.special import erf, erf_inv
from xlamini.random.arguments import (
    broadcast_scalar_to,
    broadcast_shape,
    checked_dtype,
    checked_shape,
    float_dtype,
    sampler,
)
from xlamini.random.narrow import float_sampler, rounded, wide
from xlamini.random.uniform import halves, uniform_between
from xlamini.runtime import Array


def normal_dtype(name: str, dtype: Any) -> np.dtype:
    """The dtype of a draw of floats or complex numbers, by default Python's `float`; ValueError for another."""
    wanted = "a float or complex dtype such as 'float32'"
    return checked_dtype(name, dtype, float, (np.floating, np.complexfloating), wanted)


@float_sampler(check=normal_dtype)
def normal(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats, or complex numbers, from the normal distribution with mean 0 and variance 1.

    >>> xlamini.random.normal(xlamini.random.key(0), (3,))
    Array([ 1.6226422 ,  2.0252647 , -0.43359444], dtype=float32)
    """
    return normal_noise(key, checked_shape("normal", shape), dtype)


def normal_noise(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Normal floats or complex numbers for arguments that have been checked."""
    return _complex(key, shape, dtype) if issubdtype(dtype, np.complexfloating) else standard_normal(key, shape, dtype)


def standard_normal(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Normal floats for arguments that have been checked."""
    one = dtype.type(1)
    u = uniform_between(key, shape, dtype, np.nextafter(-one, one), one)
    return literal(math.sqrt(2), dtype) * erf_inv(u)


def _complex(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Real and imaginary part have half the variance each."""
    keys = halves(split_p.bind(key, shape=(2,)))
    real, imaginary = (standard_normal(k, shape, part_dtype(dtype)) for k in keys)
    return from_parts(real, imaginary) / literal(math.sqrt(2), dtype)


@sampler("shape", "dtype")
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Floats from the standard normal distribution cut to the open interval (lower, upper).

    Without `shape` they have the shape that the bounds broadcast to.

    >>> xlamini.random.truncated_normal(xlamini.random.key(0), -2, 2, (2,)).shape
    (2,)
    """
    found = float_dtype("truncated_normal", dtype)
    shape = broadcast_shape("truncated_normal", shape, lower=lower, upper=upper)
    lower, upper = in_dtype(lower, found), in_dtype(upper, found)
    drawn = rounded(_between(key, in_dtype(lower, wide(found)), in_dtype(upper, wide(found)), shape), found)
    infinity: Any = literal(math.inf, found)
    first = nextafter(stop_gradient(lower), infinity)
    last = nextafter(stop_gradient(upper), -infinity)
    first, last = (broadcast_scalar_to(x, shape) if np.ndim(x) else x for x in (first, last))
    return minimum(maximum(drawn, first), last)


def _between(key: Any, lower: Any, upper: Any, shape: Shape) -> Any:
    """Normal floats between bounds, but for rounding."""
    root = literal(math.sqrt(2), lower.dtype)
    return root * erf_inv(uniform_between(key, shape, lower.dtype, erf(lower / root), erf(upper / root)))


@float_sampler()
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Array:
    """The exponential of normal floats with mean 0 and standard deviation `sigma`.

    >>> xlamini.random.lognormal(xlamini.random.key(0), 0.5, (2,)).shape
    (2,)
    """
    shape = broadcast_shape("lognormal", shape, sigma=sigma)
    return exp(standard_normal(key, shape, dtype) * in_dtype(sigma, dtype))
