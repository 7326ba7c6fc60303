"""Floats that are made of gamma distributed ones, whose derivatives they inherit."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapeError, aval_of, literal
from xlamini.primitives import (
    abs as absolute,
    broadcast_to,
    eq,
    exp,
    expand_dims,
    in_dtype,
    max as maximum,
    split_p,
    sqrt,
    stop_gradient,
    where,
)
from xlamini.primitives.base.operators import power
from xlamini.primitives.reductions.reductions import reduce_max, reduce_sum
from xlamini.random.arguments import Method, broadcast_shape, check_method, checked_shape
from xlamini.random.continuous import exponential_noise
from xlamini.random.discrete import signs
from xlamini.random.gamma import gamma_noise
from xlamini.random.narrow import float_sampler
from xlamini.random.normal import standard_normal
from xlamini.random.uniform import halves
from xlamini.runtime import Array


@float_sampler("method")
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, method: Method = "exact") -> Array:
    """Floats from the beta distribution with these parameters; they can be differentiated in both.

    Without `shape` they have the shape that the parameters broadcast to. Where both are 0 a number is 0 or 1, as in
    the limit.
    `method` is "exact", or "approximate", which permits a small bias, of which no sampler makes use.

    >>> xlamini.random.beta(xlamini.random.key(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    check_method("beta", method)
    shape = broadcast_shape("beta", shape, a=a, b=b)
    keys = halves(split_p.bind(key, shape=(2,)))
    first, second = (gamma_noise(k, _positive(x, dtype), shape, dtype) for k, x in zip(keys, (a, b), strict=True))
    greater = maximum(first, second)
    first, second = exp(first - greater), exp(second - greater)
    return first / (first + second)


@float_sampler()
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Vectors from the Dirichlet distribution with parameters `alpha` along the last axis; each sums to 1.

    `shape` is that of the array of vectors, by default that of `alpha` without its last axis. They can be
    differentiated in `alpha`. Where all of `alpha` is 0, one element is 1, as in the limit. Raises ShapeError for an
    `alpha` of rank 0.

    >>> xlamini.random.dirichlet(xlamini.random.key(0), xlamini.numpy.ones(3), (2,)).shape
    (2, 3)
    """
    aval = aval_of(alpha)
    if not aval.shape:
        raise ShapeError("dirichlet: alpha must have an axis of parameters, got a scalar; use [alpha, …]")
    wanted = None if shape is None else (*checked_shape("dirichlet", shape), aval.shape[-1])
    shape = broadcast_shape("dirichlet", wanted, alpha=alpha)
    logs = gamma_noise(key, _positive(alpha, dtype), shape, dtype)
    last = len(shape) - 1
    weights = exp(logs - expand_dims(stop_gradient(reduce_max(logs, (last,))), (last,)))
    return weights / expand_dims(reduce_sum(weights, (last,)), (last,))


def _positive(a: Any, dtype: Any) -> Any:
    """Parameters with a tiny one in place of 0, of which the logarithm of a gamma number is infinite."""
    a = in_dtype(a, dtype)
    return where(eq(a, 0.0), literal(1e-30, dtype), a)


@float_sampler("method")
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, method: Method = "exact") -> Array:
    """Floats from the chi-square distribution with `df` degrees of freedom; they can be differentiated in `df`.

    Without `shape` they have the shape of `df`.
    `method` is "exact", or "approximate", which permits a small bias, of which no sampler makes use.

    >>> xlamini.random.chisquare(xlamini.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    check_method("chisquare", method)
    return _chisquare(key, in_dtype(df, dtype), broadcast_shape("chisquare", shape, df=df), dtype)


def _chisquare(key: Any, df: Any, shape: Any, dtype: Any) -> Any:
    two: Any = literal(2, dtype)
    return exp(gamma_noise(key, df / two, shape, dtype)) * two


@float_sampler()
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Floats from the F distribution with degrees of freedom `dfnum` and `dfden`; differentiable in both.

    Without `shape` they have the shape that the parameters broadcast to.

    >>> xlamini.random.f(xlamini.random.key(0), 3.0, 4.0, (2,)).shape
    (2,)
    """
    shape = broadcast_shape("f", shape, dfnum=dfnum, dfden=dfden)
    for_den, for_num = halves(split_p.bind(key, shape=(2,)))
    dfnum, dfden = in_dtype(dfnum, dtype), in_dtype(dfden, dtype)
    return (_chisquare(for_num, dfnum, shape, dtype) / dfnum) / (_chisquare(for_den, dfden, shape, dtype) / dfden)


@float_sampler()
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Floats from Student's t distribution with `df` degrees of freedom; they can be differentiated in `df`.

    Without `shape` they have the shape of `df`.

    >>> xlamini.random.t(xlamini.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    shape = broadcast_shape("t", shape, df=df)
    for_normal, for_gamma = halves(split_p.bind(key, shape=(2,)))
    half = in_dtype(df, dtype) / literal(2, dtype)
    chi = gamma_noise(for_gamma, half, shape, dtype, log_space=False)
    return standard_normal(for_normal, shape, dtype) * sqrt(half / chi)


@float_sampler()
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Floats whose density is proportional to `exp(-abs(x) ** p)`, for a positive number `p`.

    >>> xlamini.random.generalized_normal(xlamini.random.key(0), 1.5, (2,)).shape
    (2,)
    """
    shape = checked_shape("generalized_normal", shape)
    broadcast_shape("generalized_normal", shape, p=p)
    return _generalized_normal(key, p, shape, dtype)


def _generalized_normal(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    for_size, for_sign = halves(split_p.bind(key, shape=(2,)))
    inverse = literal(1, dtype) / in_dtype(p, dtype)
    size = gamma_noise(for_size, inverse, shape, dtype, log_space=False)
    return signs(for_sign, shape, dtype) * power(size, inverse)


@float_sampler("d")
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None) -> Array:
    """Points of the unit ball of dimension `d` in the norm of order `p`, each as likely as the next.

    The result has a last axis of size `d`. Source: Barthe, Guédon, Mendelson, Naor, "A probabilistic approach to the
    geometry of the l_p^n-ball", 2005.

    >>> xlamini.random.ball(xlamini.random.key(0), 3, shape=(2,)).shape
    (2, 3)
    """
    shape = checked_shape("ball", shape)
    (d,) = checked_shape("ball", d)
    for_direction, for_radius = halves(split_p.bind(key, shape=(2,)))
    points = _generalized_normal(for_direction, p, (*shape, d), dtype)
    exponent = in_dtype(p, dtype)
    total = reduce_sum(power(absolute(points), exponent), (len(shape),)) + exponential_noise(for_radius, shape, dtype)
    norm = power(total, literal(1, dtype) / exponent)
    return points / broadcast_to(expand_dims(norm, (len(shape),)), points.shape)
