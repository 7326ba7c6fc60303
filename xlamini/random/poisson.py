"""Poisson distributed integers: by waiting times where few are expected, else by rejection."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.primitives import abs as absolute, convert, floor, ge, gt, in_dtype, le, log, lt, split_p, sqrt, where
from xlamini.primitives.elementwise.special.gamma import lgamma
from xlamini.primitives.random.random_keys import clone_p
from xlamini.random.arguments import (
    Method,
    any_of,
    broadcast_scalar_to,
    broadcast_shape,
    check_method,
    checked_dtype,
    sampler,
)
from xlamini.random.rejection import goes_on, until_accepted
from xlamini.random.uniform import halves, uniform_between
from xlamini.runtime import Array
from xlamini.transforms.while_loop.api import while_loop

_FLOAT32 = np.dtype(np.float32)
_FEW = 10.0
_MANY = 1e5


@sampler("shape", "dtype", "method")
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, method: Method = "exact") -> Array:
    """Integers from the Poisson distribution with mean `lam`; -1 where it is NaN.

    Without `shape` they have the shape of `lam`. Raises ValueError for a dtype that is no integer.
    `method` is "exact", or "approximate", which permits a small bias, of which no sampler makes use.

    >>> xlamini.random.poisson(xlamini.random.key(0), 3.5, (3,)).shape
    (3,)
    """
    check_method("poisson", method)
    found = checked_dtype("poisson", dtype, int, np.integer, "an integer dtype such as 'int32'")
    shape = broadcast_shape("poisson", shape, lam=lam)
    lam = broadcast_scalar_to(in_dtype(lam, _FLOAT32), shape)
    few = (lam != lam) | lt(lam, _FEW)
    waited = _by_waiting(key, where(few, lam, 0.0), found)
    # Each element is one of the two, so that both may draw from one key.
    drawn = _by_rejection(clone_p.bind(key), where(few, _MANY, lam), found, any_of(~few))
    return where(lam == 0.0, np.zeros((), found), where(few, waited, drawn))


def _by_waiting(key: Any, lam: Any, dtype: np.dtype) -> Any:
    """The number of exponential waiting times that fit into `lam` (Knuth, The Art of Computer Programming 2, 3.4.1)."""

    def turn(state: Any) -> Any:
        turns, count, key, logs = state
        key, now = halves(split_p.bind(key, shape=(2,)))
        u = uniform_between(now, lam.shape, _FLOAT32, 0.0, 1.0)
        return turns + 1, where(gt(logs, -lam), count + 1, count), key, logs + log(u)

    start = (
        np.int32(0),
        broadcast_scalar_to(dtype.type(0), lam.shape),
        key,
        broadcast_scalar_to(np.float32(0), lam.shape),
    )
    last = while_loop(lambda state: any_of(gt(state[3], -lam)) & goes_on(state[0], dtype), turn, start)
    return last[1] - 1


def _by_rejection(key: Any, lam: Any, dtype: np.dtype, needed: Any) -> Any:
    """Hörmann's PTRS ("The transformed rejection method for generating Poisson random variables", 1993)."""
    log_lam = log(lam)
    b = 0.931 + 2.53 * sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2.0)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        edge = 0.5 - absolute(u)
        k = floor((2.0 * a / edge + b) * u + lam + 0.43)
        s = log(v * inverse_alpha / (a / (edge * edge) + b))
        density = -lam + k * log_lam - lgamma(k + 1.0)
        inside = ge(edge, 0.07) & le(v, v_r)
        outside = lt(k, 0.0) | (lt(edge, 0.013) & gt(v, edge))
        return k, inside | (~outside & le(s, density))

    return convert(until_accepted(propose, key, lam.shape, _FLOAT32, needed, dtype), dtype)
