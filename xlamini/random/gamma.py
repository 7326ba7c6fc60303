"""Gamma distributed floats, and samplers built on them: beta, dirichlet, chisquare, t, f, generalised normal.

Marsaglia and Tsang's rejection ("A simple method for generating gamma variables", ACM TOMS 26, 2000): `d v` with
`v = (1 + c x) ** 3` for a normal number x has nearly the distribution sought; a uniform number decides whether it
stays. Each element draws with keys of its own. Derivatives are implicit (Figurnov, Mohamed, Mnih 2018): at fixed
probability F(x, a) the sample moves by `dx/da = -(dF/da) / (dF/dx)`.
"""
from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Jaxpr,
    Shape,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    finfo,
    is_zero,
    literal,
    memoised,
    tangent_aval,
)
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.physical import physical
from xlamini.primitives import (
    eq,
    exp,
    ge,
    in_dtype,
    index_in_dim,
    le,
    log,
    log1p,
    mul,
    reshape,
    split_p,
    sqrt,
    where,
    with_batch_first,
)
from xlamini.primitives.elementwise.power import pow as power
from xlamini.primitives.elementwise.special.incomplete_gamma_derivative import random_gamma_grad
from xlamini.primitives.random.random_keys import Generated
from xlamini.random.arguments import (
    Method,
    any_of,
    broadcast_scalar_to,
    broadcast_shape,
    check_method,
)
from xlamini.random.narrow import float_sampler
from xlamini.random.normal import standard_normal
from xlamini.random.uniform import uniform_between
from xlamini.runtime import Array
from xlamini.transforms.while_loop.api import while_loop

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


@float_sampler("method")
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, method: Method = "exact") -> Array:
    """Floats from the gamma distribution with shape parameter `a` and scale 1; they can be differentiated in `a`.

    Without `shape` they have the shape of `a`.
    `method` is "exact", or "approximate", which permits a small bias, of which no sampler makes use.

    >>> xlamini.random.gamma(xlamini.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    check_method("gamma", method)
    return gamma_noise(key, a, broadcast_shape("gamma", shape, a=a), dtype, log_space=False)


@float_sampler("method")
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, method: Method = "exact") -> Array:
    """The logarithm of gamma distributed floats, exact also where these are too small for a float.

    Without `shape` they have the shape of `a`.
    `method` is "exact", or "approximate", which permits a small bias, of which no sampler makes use.

    >>> xlamini.random.loggamma(xlamini.random.key(0), 0.001, (3,)).shape
    (3,)
    """
    check_method("loggamma", method)
    return gamma_noise(key, a, broadcast_shape("loggamma", shape, a=a), dtype, log_space=True)


def gamma_noise(key: Any, a: Any, shape: Shape, dtype: np.dtype, log_space: bool = True) -> Any:
    """Gamma floats, or their logarithms, for arguments that have been checked."""
    return random_gamma_p.bind(key, broadcast_scalar_to(in_dtype(a, dtype), shape), log_space=log_space)


class RandomGamma(Generated):
    """Gamma samples for each key: `a` has the shape of the keys, and more dimensions."""

    name = "random_gamma"
    sharding: Sharding = same_dimensions()

    def shape_rule(self, keys: ShapedArray, a: ShapedArray, *, log_space: bool) -> ShapedArray:
        return a.update(weak_type=False)

    def jvp(self, primals: Values, tangents: Values, *, log_space: bool) -> Any:
        sample = self.bind(*primals, log_space=log_space)
        tangent = tangents[1]
        if is_zero(tangent):
            return sample, Zero(tangent_aval(aval_of(sample)))
        return sample, mul(tangent, _slope(primals[1], sample, log_space))

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, log_space: bool) -> Any:
        return self.bind(*with_batch_first(operands, dims, axis.size), log_space=log_space), 0

    def physical(self, operands: Values, avals: Avals, *, log_space: bool) -> Any:
        keys, a = avals
        return evaluate(_sampling(keys, a, log_space), operands)[0]


random_gamma_p: Final = RandomGamma()


def _slope(a: Any, sample: Any, log_space: bool) -> Any:
    """The derivative of a sample, or of a sample's logarithm, in `a`."""
    if not log_space:
        return random_gamma_grad(a, sample)
    found = exp(sample)
    found = where(eq(found, 0.0), literal(finfo(found.dtype).tiny, found.dtype), found)
    return random_gamma_grad(a, found) / found


@memoised("call: gamma samplers", 1024)
def _sampling(keys: ShapedArray, a: ShapedArray, log_space: bool) -> Jaxpr:
    """The program that draws, on the words of keys."""
    return physical(build(functools.partial(_drawn, log_space=log_space), [keys, a], "gamma")[0])


def _drawn(keys: Any, a: Any, log_space: bool) -> list[Any]:
    own = split_p.bind(keys, shape=(math.prod(a.shape[keys.ndim :]),))
    own, for_boost = _parts(reshape(own, a.shape), 2)
    large = ge(a, 1.0)
    d = where(large, a, a + 1.0) - literal(1 / 3, a.dtype)
    v = _accepted(own, d)
    u = uniform_between(for_boost, (), a.dtype, 0.0, 1.0)
    if not log_space:
        return [d * v * where(large, 1.0, power(1.0 - u, 1.0 / a))]
    boost = log1p(-u)
    return [log(d) + log(v) + where(large | eq(boost, 0.0), 0.0, boost * (1.0 / a))]


def _accepted(keys: Any, d: Any) -> Any:
    """The cube `v` that each element keeps.

    Both rejections, of negative numbers and of Marsaglia and Tsang, happen in one loop, so that an element does not
    wait for the slowest one twice.
    """
    c = literal(1 / 3, d.dtype) / sqrt(d)

    def turn(state: Any) -> Any:
        key, for_x, for_u, kept, done = state
        next_x, now = _parts(for_x, 2)
        x = standard_normal(now, (), d.dtype)
        root = 1.0 + x * c
        v = root * root * root
        u = uniform_between(for_u, (), d.dtype, 0.0, 1.0)
        negative = le(root, 0.0)
        refused = ~negative & _refused(x * x, v, u, d)
        fresh = _parts(key, 3)
        # Those that are done go on too: some generators draw everybody's numbers from the first key.
        again, old = refused | done, (key, next_x, for_u)
        key, for_x, for_u = (where(again, new, kept_key) for new, kept_key in zip(fresh, old, strict=True))
        return key, for_x, for_u, where(done, kept, v), done | ~(negative | refused)

    start = (*_parts(keys, 3), broadcast_scalar_to(d.dtype.type(1), d.shape), broadcast_scalar_to(np.False_, d.shape))
    return while_loop(lambda state: any_of(~state[-1]), turn, start)[3]


def _refused(square: Any, v: Any, u: Any, d: Any) -> Any:
    """The mask of values `v` that Marsaglia and Tsang's test rejects: a cheap bound first, then the log density."""
    quick = u >= 1.0 - literal(0.0331, d.dtype) * (square * square)
    return quick & (log(u) >= square * 0.5 + d * ((1.0 - v) + log(v)))


def _parts(keys: Any, count: int) -> list[Any]:
    """New keys from each key, as `count` arrays."""
    split = split_p.bind(keys, shape=(count,))
    return [index_in_dim(split, i, axis=-1, keepdims=False) for i in range(count)]
