"""Draws of bfloat16 and float16 are those of float32, rounded once; noise is compared in float32."""

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import random

N = 4096
KEY = random.key(3)
SAMPLERS = {
    "normal": lambda d: random.normal(KEY, (N,), d),
    "exponential": lambda d: random.exponential(KEY, (N,), d),
    "laplace": lambda d: random.laplace(KEY, (N,), d),
    "logistic": lambda d: random.logistic(KEY, (N,), d),
    "cauchy": lambda d: random.cauchy(KEY, (N,), d),
    "pareto": lambda d: random.pareto(KEY, 2.5, (N,), d),
    "rayleigh": lambda d: random.rayleigh(KEY, 2.0, (N,), d),
    "weibull_min": lambda d: random.weibull_min(KEY, 1.0, 2.0, (N,), d),
    "triangular": lambda d: random.triangular(KEY, 0.0, 1.0, 3.0, (N,), d),
    "gumbel": lambda d: random.gumbel(KEY, (N,), d),
    "fine gumbel": lambda d: random.gumbel(KEY, (N,), d, mode="high"),
    "lognormal": lambda d: random.lognormal(KEY, 0.5, (N,), d),
    "maxwell": lambda d: random.maxwell(KEY, (N,), d),
    "double_sided_maxwell": lambda d: random.double_sided_maxwell(KEY, 0.0, 2.0, (N,), d),
    "wald": lambda d: random.wald(KEY, 2.0, (N,), d),
    "gamma": lambda d: random.gamma(KEY, 0.75, (N,), d),
    "loggamma": lambda d: random.loggamma(KEY, 0.75, (N,), d),
    "beta": lambda d: random.beta(KEY, 0.5, 0.75, (N,), d),
    "dirichlet": lambda d: random.dirichlet(KEY, jnp.array([0.5, 2, 3]), (N,), d),
    "chisquare": lambda d: random.chisquare(KEY, 3.0, (N,), d),
    "f": lambda d: random.f(KEY, 5.0, 9.0, (N,), d),
    "t": lambda d: random.t(KEY, 5.0, (N,), d),
    "generalized_normal": lambda d: random.generalized_normal(KEY, 1.5, (N,), d),
    "ball": lambda d: random.ball(KEY, 3, shape=(N,), dtype=d),
    "binomial": lambda d: random.binomial(KEY, 40, 0.25, (N,), d),
    "multinomial": lambda d: random.multinomial(KEY, 100, jnp.array([0.25, 0.75]), shape=(50, 2), dtype=d),
    "multivariate_normal": lambda d: random.multivariate_normal(KEY, jnp.ones(2), jnp.eye(2), (N,), d),
    "orthogonal": lambda d: random.orthogonal(KEY, 3, (50,), d),
}
HALVES = ("bfloat16", "float16")


@pytest.mark.full
@pytest.mark.sample(12, full=4)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_numbers_are_those_of_float32(name, dtype):
    single, half = SAMPLERS[name]("float32"), SAMPLERS[name](dtype)
    assert half.dtype == dtype and np.isfinite(np.asarray(half, np.float32)).all()
    np.testing.assert_array_equal(half, single.astype(dtype))


def test_in_traced_functions():
    keys = random.split(KEY, 3)
    draws = xlamini.jit(xlamini.vmap(lambda key: random.gumbel(key, (8,), "bfloat16")))(keys)
    np.testing.assert_array_equal(draws, [random.gumbel(key, (8,)).astype("bfloat16") for key in keys])


def test_what_float16_does_not_hold_is_its_largest_number():
    drawn = np.asarray(random.pareto(KEY, 0.1, (N,), "float16"), np.float32)
    assert drawn.max() == 65504 and np.isfinite(drawn).all()
    assert np.isfinite(np.asarray(random.t(KEY, 0.1, (N,), "float16"), np.float32)).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_a_truncated_normal_number_is_inside_of_its_bounds(dtype):
    drawn = np.asarray(random.truncated_normal(KEY, -2.0, 1.0, (N,), dtype), np.float32)
    assert drawn.min() > -2 and drawn.max() < 1
    single = np.asarray(random.truncated_normal(KEY, -2.0, 1.0, (N,)))
    np.testing.assert_allclose(drawn, single, atol=0.01)


@pytest.mark.parametrize("dtype", [*HALVES, "float32"])
@pytest.mark.parametrize("size", [100, 3000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_categories_of_equal_weight(dtype, size):
    places = np.asarray(random.categorical(KEY, jnp.zeros(size, dtype), shape=(600,)))
    assert abs((places < size // 2).mean() - 0.5) < 0.1 and abs(places.mean() / size - 0.5) < 0.06
    for mode in ("low", "high"):
        again = random.categorical(KEY, jnp.zeros(size, dtype), shape=(600,), mode=mode)
        np.testing.assert_array_equal(again, random.categorical(KEY, jnp.zeros(size), shape=(600,), mode=mode))


@pytest.mark.parametrize("dtype", HALVES)
def test_draws_with_probabilities_of_half_precision(dtype):
    p = jnp.full(2**12, 2.0**-12, dtype)
    for replace in (True, False):
        places = np.asarray(random.choice(KEY, 2**12, (1000,), replace, p))
        assert abs(places.mean() / 2**12 - 0.5) < 0.04
        np.testing.assert_array_equal(places, random.choice(KEY, 2**12, (1000,), replace, p.astype("float32")))
    rare = random.bernoulli(KEY, jnp.array(2.0**-10, dtype), (2**16,))
    assert 30 < rare.sum() < 110
    trials = np.asarray(random.geometric(KEY, jnp.array(2.0**-5, dtype), (N,)))
    assert abs(trials.mean() - 32) < 3


@pytest.mark.full
def test_parameters_that_are_all_zero_give_one_outcome():
    vectors = np.asarray(random.dirichlet(KEY, jnp.zeros(3), (600,)))
    assert set(np.unique(vectors)) == {0, 1} and (vectors.sum(1) == 1).all()
    assert (abs(vectors.mean(0) - 1 / 3) < 0.08).all()
    coins = np.asarray(random.beta(KEY, 0.0, 0.0, (600,)))
    assert set(np.unique(coins)) == {0, 1} and abs(coins.mean() - 0.5) < 0.08
    mixed = random.dirichlet(KEY, jnp.array([0.0, 2.0, 3.0]))
    assert mixed[0] == 0 and abs(mixed.sum() - 1) < 1e-6
    assert random.beta(KEY, 0.0, 1.0) == 0 and random.beta(KEY, 1.0, 0.0) == 1
