"""Samplers as functions of their parameters: where they are reparameterised, samples can be differentiated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rows.row import Arg, Row
from xlamini import numpy as jnp, random
from xlamini.nn import initializers

_POSITIVE = [[Arg((3,), domain=(0.6, 3))]]
_TWO = [[Arg((3,), domain=(0.6, 3)), Arg((3,), domain=(0.6, 3))]]
_CHANCE = [[Arg((3,), domain=(0.1, 0.9))]]
_FLOATS = ("float32", "float64")
_MADE = {
    name: getattr(initializers, name)
    for name in initializers.__all__
    if name not in ("Initializer", "constant", "variance_scaling", "zeros", "ones")
}


def key(seed: int = 0) -> Any:
    return random.key(seed)


def moving(name: str, op: Any, samples: Any = _POSITIVE, **options: Any) -> Row:
    """A sampler whose samples move smoothly with its parameters."""
    return Row(f"random.{name}", op, None, samples=samples, dtypes=_FLOATS, order=1, **options)


def fixed(name: str, op: Any, samples: Any = _CHANCE) -> Row:
    """A sampler by rejection, whose samples jump; derivatives at fixed probability: test_random_statistics.py."""
    return Row(f"random.{name}", op, None, samples=samples, dtypes=_FLOATS, differentiable=False)


def of_key(name: str, draw: Any) -> Row:
    """A function of the seed alone."""
    seeds = [[Arg((), domain=(0, 9), dtype="int32")]]
    op = lambda seed: draw(random.key(seed)).astype("float32")
    return Row(f"random.{name}", op, None, samples=seeds, dtypes=("int32",), differentiable=False)


def words(keys: Any) -> Any:
    return random.key_data(keys)


def weights(name: str, initialize: Any) -> Row:
    """An initializer as a function of the seed."""
    return replace(of_key("", lambda k: initialize(k, (3, 2, 2))), name=f"nn.initializers.{name}")


def covariance(x: Any) -> Any:
    return jnp.diag(x) + 0.1


ROWS = [
    fixed("gamma", lambda a: random.gamma(key(), a, dtype=a.dtype), _POSITIVE),
    fixed("loggamma", lambda a: random.loggamma(key(), a, dtype=a.dtype), _POSITIVE),
    fixed("beta", lambda a, b: random.beta(key(), a, b, dtype=a.dtype), _TWO),
    fixed("dirichlet", lambda a: random.dirichlet(key(), a, dtype=a.dtype), _POSITIVE),
    fixed("chisquare", lambda a: random.chisquare(key(), a, dtype=a.dtype), _POSITIVE),
    fixed("t", lambda a: random.t(key(), a, dtype=a.dtype), _POSITIVE),
    fixed("f", lambda a, b: random.f(key(), a, b, dtype=a.dtype), _TWO),
    moving("pareto", lambda a: random.pareto(key(), a, dtype=a.dtype)),
    moving("rayleigh", lambda a: random.rayleigh(key(), a, dtype=a.dtype)),
    moving("wald", lambda a: random.wald(key(), a, dtype=a.dtype)),
    moving("weibull_min", lambda a, b: random.weibull_min(key(), a, b, dtype=a.dtype), _TWO),
    moving("triangular", lambda a: random.triangular(key(), 0.0, a, 4.0, dtype=a.dtype)),
    moving("double_sided_maxwell", lambda a, b: random.double_sided_maxwell(key(), a, b, dtype=a.dtype), _TWO),
    moving("lognormal", lambda a: random.lognormal(key(), a, dtype=a.dtype)),
    moving("uniform", lambda a, b: random.uniform(key(), (3,), a.dtype, -a, b), _TWO),
    moving("truncated_normal", lambda a: random.truncated_normal(key(), -1.0, a, dtype=a.dtype)),
    moving(
        "multivariate_normal",
        lambda mean, x: random.multivariate_normal(key(), mean, covariance(x), dtype=mean.dtype),
        _TWO,
        tolerance={"float32": 1e-5},
    ),
    fixed("poisson", lambda a: random.poisson(key(), 20 * a), _POSITIVE),
    fixed("binomial", lambda p: random.binomial(key(), 30.0, p)),
    fixed("multinomial", lambda p: random.multinomial(key(), 30.0, p / p.sum())),
    fixed("geometric", lambda p: random.geometric(key(), p)),
    fixed("bernoulli", lambda p: random.bernoulli(key(), p)),
    fixed("categorical", lambda p: random.categorical(key(), p)),
    fixed("choice", lambda p: random.choice(key(), 3, (4,), p=p)),
    fixed("permutation", lambda x: random.permutation(key(), x)),
    of_key("normal", lambda k: random.normal(k, (3,))),
    of_key("exponential", lambda k: random.exponential(k, (3,))),
    of_key("laplace", lambda k: random.laplace(k, (3,))),
    of_key("logistic", lambda k: random.logistic(k, (3,))),
    of_key("cauchy", lambda k: random.cauchy(k, (3,))),
    of_key("gumbel", lambda k: random.gumbel(k, (3,))),
    of_key("maxwell", lambda k: random.maxwell(k, (3,))),
    of_key("generalized_normal", lambda k: random.generalized_normal(k, 1.5, (3,))),
    of_key("ball", lambda k: random.ball(k, 3)),
    of_key("orthogonal", lambda k: random.orthogonal(k, 3)),
    of_key("rademacher", lambda k: random.rademacher(k, (3,))),
    of_key("randint", lambda k: random.randint(k, (3,), 0, 99)),
    of_key("bits", lambda k: random.bits(k, (3,))),
    of_key("key", words),
    of_key("PRNGKey", lambda k: random.PRNGKey(words(k)[1])),
    of_key("split", lambda k: words(random.split(k))),
    of_key("fold_in", lambda k: words(random.fold_in(k, 3))),
    of_key("clone", lambda k: words(random.clone(k))),
    of_key("key_data", lambda k: random.key_data(k)),
    of_key("wrap_key_data", lambda k: words(random.wrap_key_data(words(k)))),
    *(weights(name, make()) for name, make in _MADE.items()),
    weights("constant", initializers.constant(2.5)),
    weights("variance_scaling", initializers.variance_scaling(1.0, "fan_geo_avg", "normal")),
    weights("zeros", initializers.zeros),
    weights("ones", initializers.ones),
    of_key("key_impl", lambda k: jnp.full(2, len(random.key_impl(k)))),
]
