"""Floats from distributions whose inverse distribution function is elementary: uniform floats go through it."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import Shape, finfo, literal
from xlamini.core.flags.jax_flags import high_dynamic_range_gumbel
from xlamini.primitives import abs as absolute, broadcast_to, exp, ge, in_dtype, log, log1p, lt, sign, sqrt, where
from xlamini.primitives.base.operators import power
from xlamini.primitives.elementwise.trigonometric import tan
from xlamini.random.arguments import broadcast_shape, checked_shape
from xlamini.random.narrow import float_sampler
from xlamini.random.uniform import halves, uniform_between
from xlamini.runtime import Array


@float_sampler()
def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats from the exponential distribution with rate 1.

    >>> xlamini.random.exponential(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    return exponential_noise(key, checked_shape("exponential", shape), dtype)


@float_sampler()
def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats from the Laplace distribution with location 0 and scale 1.

    >>> xlamini.random.laplace(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    smallest = float(finfo(dtype).epsneg) - 1.0
    u = uniform_between(key, checked_shape("laplace", shape), dtype, smallest, 1.0)
    return sign(u) * log1p(-absolute(u))


@float_sampler()
def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats from the logistic distribution with location 0 and scale 1.

    >>> xlamini.random.logistic(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    u = uniform_between(key, checked_shape("logistic", shape), dtype, float(finfo(dtype).tiny), 1.0)
    return log(u) - log1p(-u)


@float_sampler()
def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats from the Cauchy distribution with location 0 and scale 1.

    >>> xlamini.random.cauchy(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    u = uniform_between(key, checked_shape("cauchy", shape), dtype, float(finfo(dtype).eps), 1.0)
    return tan(literal(math.pi, dtype) * (u - literal(0.5, dtype)))


@float_sampler()
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Floats from the Pareto distribution with shape parameter `b` and least value 1.

    Without `shape` they have the shape of `b`.

    >>> xlamini.random.pareto(xlamini.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    shape = broadcast_shape("pareto", shape, b=b)
    return exp(exponential_noise(key, shape, dtype) / broadcast_to(in_dtype(b, dtype), shape))


@float_sampler()
def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Floats from the Rayleigh distribution with this scale.

    Without `shape` they have the shape of `scale`.

    >>> xlamini.random.rayleigh(xlamini.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    shape = broadcast_shape("rayleigh", shape, scale=scale)
    u = uniform_between(key, shape, dtype, float(finfo(dtype).tiny), 1.0)  # the logarithm of 0 is infinite
    return in_dtype(scale, dtype) * sqrt(log(u) * literal(-2, dtype))


@float_sampler()
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats from the Weibull distribution of minima with this scale and concentration.

    `shape` is that of the uniform numbers drawn, each of which serves for all parameters that it broadcasts with.

    >>> xlamini.random.weibull_min(xlamini.random.key(0), 1.0, 2.0, (2,)).shape
    (2,)
    """
    scale, concentration = in_dtype(scale, dtype), in_dtype(concentration, dtype)
    standard = exponential_noise(key, checked_shape("weibull_min", shape), dtype)
    return power(standard, literal(1, dtype) / concentration) * scale


@float_sampler()
def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Floats from the triangular distribution on [left, right], whose density is greatest at `mode`.

    Without `shape` they have the shape that the parameters broadcast to.

    >>> xlamini.random.triangular(xlamini.random.key(0), 0.0, 1.0, 3.0, (2,)).shape
    (2,)
    """
    shape = broadcast_shape("triangular", shape, left=left, mode=mode, right=right)
    left, mode, right = (broadcast_to(in_dtype(x, dtype), shape) for x in (left, mode, right))
    u = uniform_between(key, shape, dtype, 0.0, 1.0)
    width, one = right - left, literal(1, dtype)
    rising = left + sqrt(u * width * (mode - left))
    falling = right - sqrt((one - u) * width * (right - mode))
    return where(lt(u, (mode - left) / width), rising, falling)


@float_sampler("mode")
def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None) -> Array:
    """Floats from the Gumbel distribution with location 0 and scale 1.

    >>> xlamini.random.gumbel(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    return gumbel_noise(key, checked_shape("gumbel", shape), dtype, checked_mode("gumbel", mode))


def checked_mode(name: str, mode: str | None) -> bool:
    """True for draws that resolve values near 0 and 1 more finely than one uniform float can; None: as a flag says."""
    if mode is None:
        return high_dynamic_range_gumbel.value
    if mode not in ("low", "high"):
        raise ValueError(f"{name}: mode must be 'low' or 'high', got {mode!r}")
    return mode == "high"


def gumbel_noise(key: Any, shape: Shape, dtype: np.dtype, fine: bool = False) -> Any:
    """Gumbel floats for arguments that have been checked."""
    tiny = float(finfo(dtype).tiny)
    if not fine:
        return -log(-log(uniform_between(key, shape, dtype, tiny, 1.0)))
    coarse, rest = halves(uniform_between(key, (2, *shape), dtype, 0.0, 1.0))
    finer = coarse + literal(finfo(dtype).eps, dtype) * rest + literal(tiny, dtype)
    return -log(-log1p(-where(ge(coarse, 0.5), coarse, finer)))


def exponential_noise(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Exponential floats for arguments that have been checked."""
    return -log1p(-uniform_between(key, shape, dtype, 0.0, 1.0))
