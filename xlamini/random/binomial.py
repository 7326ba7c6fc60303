"""Binomial counts: by waiting times where few are expected, else by rejection; multinomial ones made of them."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import Shape, ShapedArray, ShapeError, aval_of
from xlamini.numpy.indexing.take import take
from xlamini.primitives import (
    abs as absolute,
    clamp,
    convert,
    eq,
    floor,
    ge,
    gt,
    in_dtype,
    le,
    log,
    log1p,
    lt,
    moveaxis,
    split_p,
    sqrt,
    where,
)
from xlamini.primitives.elementwise.rounding import ceil
from xlamini.primitives.random.random_keys import clone_p
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.primitives.shape.shape import broadcast_in_dim_p
from xlamini.random.arguments import any_of, broadcast_scalar_to, broadcast_shape, checked_shape, float_dtype, sampler
from xlamini.random.narrow import drawn_wide, float_sampler
from xlamini.random.rejection import goes_on, until_accepted
from xlamini.random.uniform import halves, uniform_between
from xlamini.runtime import Array
from xlamini.transforms.scan.api import scan
from xlamini.transforms.while_loop.api import while_loop

_FEW = 10.0
_INT32 = np.dtype(np.int32)


@float_sampler()
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Counts, as floats, of successes in `n` trials of probability `p`; NaN where these are negative or NaN.

    Without `shape` they have the shape that the parameters broadcast to.

    >>> xlamini.random.binomial(xlamini.random.key(0), 10, 0.3, (2,)).shape
    (2,)
    """
    shape = broadcast_shape("binomial", shape, n=n, p=p)
    return _binomial(key, *(broadcast_scalar_to(in_dtype(x, dtype), shape) for x in (n, p)))


def _binomial(key: Any, n: Any, p: Any) -> Any:
    """Counts of the rarer outcome are drawn; `n` and `p` are arrays of the shape of the result."""
    rare = lt(p, 0.5)
    q = where(rare, p, 1.0 - p)
    bad_q, bad_n = _bad(q), _bad(n)
    q = where(bad_q, 0.01, q)
    few = bad_n | le(n * q, _FEW)
    whole = floor(n)
    waited = _by_waiting(key, where(few, whole, 0.0), q)
    # Each element is one of the two, so that both may draw from one key.
    drawn = _by_rejection(clone_p.bind(key), where(few, 10000.0, whole), where(few, 0.5, q), any_of(~few))
    count = where(bad_q | bad_n, math.nan, where(few, waited, drawn))
    endless = eq(absolute(n), math.inf)
    count = where(endless & ~(bad_q | bad_n), math.inf, count)
    return where(rare | bad_n | (p != p) | endless, count, whole - count)


def _bad(x: Any) -> Any:
    return (x != x) | lt(x, 0.0)


def _by_waiting(key: Any, n: Any, q: Any) -> Any:
    """The number of geometric waiting times that fit into `n` trials."""
    dtype, log_failure = n.dtype, log1p(-q)

    def turn(state: Any) -> Any:
        turns, count, waited, key = state
        now, key = halves(split_p.bind(key, shape=(2,)))
        u = uniform_between(now, n.shape, dtype, 0.0, 1.0)
        return turns + 1, where(le(waited, n), count + 1.0, count), waited + ceil(log(u) / log_failure), key

    zeros = broadcast_scalar_to(dtype.type(0), n.shape)
    last = while_loop(
        lambda state: any_of(le(state[2], n)) & goes_on(state[0], dtype), turn, (np.int32(0), zeros, zeros, key)
    )
    return last[1] - 1.0


def _by_rejection(key: Any, n: Any, q: Any, needed: Any) -> Any:
    """Hörmann's BTRS ("The generation of binomial random variates", 1993)."""
    dtype = n.dtype
    spread = sqrt(n * q * (1.0 - q))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q
    c = n * q + 0.5
    v_r = 0.92 - 4.2 / b
    ratio = q / (1.0 - q)
    alpha = (2.83 + 5.1 / b) * spread
    mode = floor((n + 1.0) * q)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        edge = 0.5 - absolute(u)
        inside = ge(edge, 0.07) & le(v, v_r)
        k = floor((2.0 * a / edge + b) * u + c)
        outside = lt(k, 0.0) | gt(k, n)
        bound = log(v * alpha / (a / (edge * edge) + b))
        return k, inside | (~outside & le(bound, _log_density(k, n, mode, ratio)))

    return until_accepted(propose, key, n.shape, dtype, needed, dtype)


def _log_density(k: Any, n: Any, mode: Any, ratio: Any) -> Any:
    """The logarithm of the density at `k`, less that at the mode."""
    total = (mode + 0.5) * log((mode + 1.0) / (ratio * (n - mode + 1.0)))
    total = total + (n + 1.0) * log((n - mode + 1.0) / (n - k + 1.0))
    total = total + (k + 0.5) * log(ratio * (n - k + 1.0) / (k + 1.0))
    return total + _stirling_rest(mode) + _stirling_rest(n - mode) - _stirling_rest(k) - _stirling_rest(n - k)


def _rest(k: int) -> float:
    """The remainder of Stirling's formula for log(k!)."""
    return math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))


_RESTS = np.array([_rest(k) for k in range(10)])


def _stirling_rest(k: Any) -> Any:
    """The rest for a whole number `k`; one beyond 9 counts as 9, of which the series is used, as JAX has it."""
    small = le(k, 9.0)
    k = clamp(0.0, k, 9.0)
    square = (k + 1.0) * (k + 1.0)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1.0)
    return where(small, take(_RESTS.astype(k.dtype), convert(k, _INT32), mode="clip"), series)


def multinomial(
    key: Any,
    n: Any,
    p: Any,
    *,
    shape: Any = None,
    dtype: Any = None,
    unroll: int | bool = 1,
) -> Array:
    """Counts, as floats, of each outcome in `n` trials; the outcomes' probabilities `p` lie along its last axis.

    `shape` is that of the result, with the outcomes last; by default what `n` and `p` without its last axis broadcast
    to, followed by that axis. `unroll` is that of the `scan` over outcomes. Raises ShapeError for a `p` of rank 0.

    >>> xlamini.random.multinomial(xlamini.random.key(0), 10, xlamini.numpy.array([0.2, 0.8])).sum()
    Array(10., dtype=float32)
    """
    aval, wanted = aval_of(p), None if shape is None else checked_shape("multinomial", shape)
    if not aval.shape:
        raise ShapeError("multinomial: p must have an axis of probabilities, got a scalar; use [p, 1 - p]")
    probabilities = ShapedArray(aval.shape[:-1], aval.dtype)
    if wanted is not None and wanted[-1:] != aval.shape[-1:]:
        raise ShapeError(
            f"multinomial: shape must end with the number of outcomes, {aval.shape[-1]}, as p does, got {wanted}"
        )
    rows = broadcast_shape("multinomial", None if wanted is None else wanted[:-1], n=n, p=probabilities)
    return _multinomial(key, n, p, rows, float_dtype("multinomial", dtype), unroll)


@sampler("rows", "dtype", "unroll", name="multinomial")
@drawn_wide
def _multinomial(key: Any, n: Any, p: Any, rows: Shape, dtype: np.dtype, unroll: int | bool) -> Any:
    outcomes, last = p.shape[-1], len(rows)
    n = broadcast_scalar_to(in_dtype(n, dtype), rows)
    n = broadcast_in_dim_p.bind(n, shape=rows, broadcast_dimensions=tuple(range(last)))  # a number becomes an array
    p = broadcast_scalar_to(in_dtype(p, dtype), (*rows, outcomes))
    left = cumsum(p, last, reverse=True)
    ratios = moveaxis(p / where(eq(left, 0.0), 1.0, left), last, 0)
    keys = split_p.bind(key, shape=(outcomes,))

    def outcome(rest: Any, now: Any) -> Any:
        ratio, key = now
        count = _binomial(key, rest, clamp(0.0, ratio, 1.0))
        return rest - count, count

    return moveaxis(scan(outcome, n, (ratios, keys), unroll=unroll)[1], 0, last)
