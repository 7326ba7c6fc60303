"""Floats from distributions whose inverse distribution function is elementary: uniform floats go through it."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core.avals import Shape
from xlamini.core.dtypes import finfo
from xlamini.core.tracer import literal
from xlamini.primitives.arithmetic import abs as absolute
from xlamini.primitives.arithmetic import sign
from xlamini.primitives.comparison import ge
from xlamini.primitives.exponential import log, log1p
from xlamini.primitives.select import where
from xlamini.primitives.trigonometric import tan
from xlamini.random.arguments import checked_shape, float_dtype, sampler
from xlamini.random.uniform import halves, uniform_between


@sampler("shape", "dtype")
def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Floats from the exponential distribution with rate 1.

    >>> xlamini.random.exponential(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    found = float_dtype("exponential", dtype)
    u = uniform_between(key, checked_shape("exponential", shape), found, 0.0, 1.0)
    return -log1p(-u)


@sampler("shape", "dtype")
def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Floats from the Laplace distribution with location 0 and scale 1.

    >>> xlamini.random.laplace(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    found = float_dtype("laplace", dtype)
    smallest = float(finfo(found).epsneg) - 1.0
    u = uniform_between(key, checked_shape("laplace", shape), found, smallest, 1.0)
    return sign(u) * log1p(-absolute(u))


@sampler("shape", "dtype")
def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Floats from the logistic distribution with location 0 and scale 1.

    >>> xlamini.random.logistic(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    found = float_dtype("logistic", dtype)
    u = uniform_between(key, checked_shape("logistic", shape), found, float(finfo(found).tiny), 1.0)
    return log(u) - log1p(-u)


@sampler("shape", "dtype")
def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Floats from the Cauchy distribution with location 0 and scale 1.

    >>> xlamini.random.cauchy(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    found = float_dtype("cauchy", dtype)
    u = uniform_between(key, checked_shape("cauchy", shape), found, float(finfo(found).eps), 1.0)
    return tan(literal(math.pi, found) * (u - literal(0.5, found)))


@sampler("shape", "dtype", "mode")
def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None) -> Any:
    """Floats from the Gumbel distribution with location 0 and scale 1.

    >>> xlamini.random.gumbel(xlamini.random.key(0), (2,)).shape
    (2,)
    """
    return gumbel_noise(key, checked_shape("gumbel", shape), float_dtype("gumbel", dtype), checked_mode("gumbel", mode))


def checked_mode(name: str, mode: str | None) -> bool:
    """Whether draws near 0 and 1 are to be finer than one uniform float can make them."""
    if mode not in (None, "low", "high"):
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
