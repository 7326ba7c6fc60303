"""Random numbers have the distributions that they claim: Kolmogorov-Smirnov for floats, chi-square for counts.

Keys are fixed, so that a test which passes once passes always; p-values below one in ten thousand fail.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import xlamini.numpy as jnp
from xlamini import enable_x64, grad, jacfwd, jacrev, jit, jvp, random

COUNT = 4000
LEAST = 1e-4


def drawn(name, *args, **kwargs):
    return np.asarray(getattr(random, name)(random.key(len(name)), *args, **kwargs))


CONTINUOUS = {
    "uniform": (lambda n: drawn("uniform", (n,), None, -1.0, 3.0), stats.uniform(-1, 4)),
    "normal": (lambda n: drawn("normal", (n,)), stats.norm),
    "complex normal": (lambda n: drawn("normal", (n,), "complex64").imag, stats.norm(0, 0.5**0.5)),
    "truncated_normal": (lambda n: drawn("truncated_normal", -1.0, 2.0, (n,)), stats.truncnorm(-1, 2)),
    "lognormal": (lambda n: drawn("lognormal", 0.5, (n,)), stats.lognorm(0.5)),
    "exponential": (lambda n: drawn("exponential", (n,)), stats.expon),
    "laplace": (lambda n: drawn("laplace", (n,)), stats.laplace),
    "logistic": (lambda n: drawn("logistic", (n,)), stats.logistic),
    "cauchy": (lambda n: drawn("cauchy", (n,)), stats.cauchy),
    "gumbel": (lambda n: drawn("gumbel", (n,)), stats.gumbel_r),
    "fine gumbel": (lambda n: drawn("gumbel", (n,), mode="high"), stats.gumbel_r),
    "pareto": (lambda n: drawn("pareto", 2.5, (n,)), stats.pareto(2.5)),
    "rayleigh": (lambda n: drawn("rayleigh", 2.0, (n,)), stats.rayleigh(scale=2)),
    "weibull_min": (lambda n: drawn("weibull_min", 2.0, 1.5, (n,)), stats.weibull_min(1.5, scale=2)),
    "triangular": (lambda n: drawn("triangular", -1.0, 0.0, 3.0, (n,)), stats.triang(0.25, -1, 4)),
    "maxwell": (lambda n: drawn("maxwell", (n,)), stats.maxwell),
    "double_sided_maxwell": (lambda n: np.abs(drawn("double_sided_maxwell", 0.0, 2.0, (n,))), stats.maxwell(scale=2)),
    "wald": (lambda n: drawn("wald", 1.5, (n,)), stats.invgauss(1.5)),
    "gamma": (lambda n: drawn("gamma", 2.5, (n,)), stats.gamma(2.5)),
    "small gamma": (lambda n: drawn("gamma", 0.3, (n,)), stats.gamma(0.3)),
    "loggamma": (lambda n: drawn("loggamma", 0.7, (n,)), stats.loggamma(0.7)),
    "rbg gamma": (lambda n: np.asarray(random.gamma(random.key(1, impl="rbg"), 1.0, (n,))), stats.gamma(1.0)),
    "beta": (lambda n: drawn("beta", 0.5, 2.0, (n,)), stats.beta(0.5, 2)),
    "dirichlet": (lambda n: drawn("dirichlet", np.float32([1, 2, 3]), (n,))[:, 1], stats.beta(2, 4)),
    "chisquare": (lambda n: drawn("chisquare", 3.0, (n,)), stats.chi2(3)),
    "t": (lambda n: drawn("t", 3.0, (n,)), stats.t(3)),
    "f": (lambda n: drawn("f", 3.0, 5.0, (n,)), stats.f(3, 5)),
    "generalized_normal": (lambda n: drawn("generalized_normal", 1.5, (n,)), stats.gennorm(1.5)),
    "radius in a ball": (lambda n: np.linalg.norm(drawn("ball", 3, shape=(n,)), axis=1) ** 3, stats.uniform),
    "direction in a ball": (lambda n: drawn("ball", 3, shape=(n,))[:, 0], stats.beta(2, 2, -1, 2)),
    "multivariate_normal": (
        lambda n: drawn("multivariate_normal", np.float32([1, 2]), np.float32([[2, 1], [1, 3]]), (n,)) @ [1.0, -1.0],
        stats.norm(-1, 3**0.5),
    ),
    "orthogonal": (lambda n: drawn("orthogonal", 3, (n,))[:, 1, 2], stats.uniform(-1, 2)),
    "rbg": (lambda n: np.asarray(random.normal(random.key(0, impl="rbg"), (n,))), stats.norm),
    "unsafe_rbg": (lambda n: np.asarray(random.uniform(random.key(0, impl="unsafe_rbg"), (n,))), stats.uniform),
}


@pytest.mark.full
@pytest.mark.parametrize("draw, distribution", CONTINUOUS.values(), ids=list(CONTINUOUS))
def test_floats(draw, distribution):
    numbers = draw(COUNT)
    assert np.isfinite(numbers).all()
    assert stats.kstest(numbers, distribution.cdf).pvalue > LEAST


DISCRETE = {
    "bernoulli": (lambda n: drawn("bernoulli", 0.3, (n,)), stats.bernoulli(0.3)),
    "rademacher": (lambda n: (drawn("rademacher", (n,)) + 1) // 2, stats.bernoulli(0.5)),
    "randint": (lambda n: drawn("randint", (n,), 0, 7), stats.randint(0, 7)),
    "bits": (lambda n: drawn("bits", (n,), "uint8") // 16, stats.randint(0, 16)),
    "categorical": (lambda n: drawn("categorical", np.log(np.float32([0.3, 0.7])), shape=(n,)), stats.bernoulli(0.7)),
    "choice": (lambda n: drawn("choice", 2, (n,), p=np.float32([0.8, 0.2])), stats.bernoulli(0.2)),
    "permutation": (
        lambda n: np.asarray(random.permutation(random.key(0), np.tile(np.arange(5), (n, 1)), 1, True))[:, 0],
        stats.randint(0, 5),
    ),
    "geometric": (lambda n: drawn("geometric", 0.3, (n,)), stats.geom(0.3)),
    "poisson by waiting": (lambda n: drawn("poisson", 3.0, (n,)), stats.poisson(3)),
    "poisson by rejection": (lambda n: drawn("poisson", 25.0, (n,)), stats.poisson(25)),
    "binomial by waiting": (lambda n: drawn("binomial", 12, 0.3, (n,)), stats.binom(12, 0.3)),
    "binomial by rejection": (lambda n: drawn("binomial", 60, 0.4, (n,)), stats.binom(60, 0.4)),
    "binomial mirrored": (lambda n: drawn("binomial", 60, 0.8, (n,)), stats.binom(60, 0.8)),
    "multinomial": (
        lambda n: drawn("multinomial", 20, np.float32([0.2, 0.5, 0.3]), shape=(n, 3))[:, 1],
        stats.binom(20, 0.5),
    ),
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("draw, distribution", DISCRETE.values(), ids=list(DISCRETE))
def test_counts(draw, distribution):
    counts = draw(COUNT).astype(int)
    low, high = int(distribution.ppf(0.005)), int(distribution.ppf(0.995))
    inside = np.clip(counts, low, high)
    expected = distribution.pmf(np.arange(low, high + 1))
    expected[0], expected[-1] = distribution.cdf(low), distribution.sf(high - 1)
    found = np.bincount(inside - low, minlength=len(expected))
    assert stats.chisquare(found, expected * COUNT / expected.sum()).pvalue > LEAST


@pytest.mark.slow
def test_vectors_have_their_sums_and_covariances():
    assert np.allclose(drawn("dirichlet", np.full(4, 0.1, np.float32), (50,)).sum(-1), 1, atol=1e-5)
    assert (drawn("multinomial", 20, np.float32([0.2, 0.5, 0.3]), shape=(50, 3)).sum(-1) == 20).all()
    cov = np.float32([[2, 1], [1, 3]])
    for method in ("cholesky", "eigh", "svd"):
        vectors = drawn("multivariate_normal", np.zeros(2, np.float32), cov, (COUNT,), method=method)
        np.testing.assert_allclose(np.cov(vectors.T), cov, atol=0.25)
    q = drawn("orthogonal", 4, (3,), "complex64", 2)
    np.testing.assert_allclose(np.swapaxes(q.conj(), 1, 2) @ q, np.broadcast_to(np.eye(2), (3, 2, 2)), atol=1e-6)


# --- derivatives of samples in their parameters: at a fixed probability


def quantile_slope(distribution, parameter, sample):
    """The derivative of a sample in a parameter, if it stays at the same quantile."""
    step = 1e-5
    at = lambda p: distribution(p).cdf(sample)
    return -(at(parameter + step) - at(parameter - step)) / (2 * step) / distribution(parameter).pdf(sample)


IMPLICIT = {
    "gamma": (lambda k, a: random.gamma(k, a, (20,)), stats.gamma, (0.4, 1.0, 5.0)),
    "loggamma": (lambda k, a: random.loggamma(k, a, (20,)), stats.loggamma, (0.4, 2.0)),
    "chisquare": (lambda k, a: random.chisquare(k, a, (20,)), stats.chi2, (7.0,)),
    "pareto": (lambda k, a: random.pareto(k, a, (20,)), stats.pareto, (0.5, 3.0)),
    "rayleigh": (lambda k, a: random.rayleigh(k, a, (20,)), lambda s: stats.rayleigh(scale=s), (0.5, 3.0)),
    "weibull_min": (lambda k, c: random.weibull_min(k, 1.0, c, (20,)), stats.weibull_min, (0.5, 3.0)),
}


@pytest.mark.full
@pytest.mark.parametrize("name", IMPLICIT)
def test_samples_move_with_their_quantile(name):
    draw, distribution, parameters = IMPLICIT[name]
    with_slopes = jit(lambda at: jvp(lambda a: draw(random.key(3), a), (at,), (1.0,)))
    with enable_x64(True):
        for parameter in parameters:
            samples, slopes = with_slopes(parameter)
            expected = quantile_slope(distribution, parameter, np.asarray(samples))
            np.testing.assert_allclose(slopes, expected, rtol=2e-5)


@pytest.mark.slow
def test_beta_and_dirichlet_inherit_the_slopes_of_gammas():
    with enable_x64(True):
        key, params = random.key(1), jnp.array([0.6, 2.5])
        keys = random.split(key)
        logs = jnp.stack([random.loggamma(k, a) for k, a in zip(keys, params, strict=True)])
        slopes = jnp.stack([jacfwd(lambda a, k=k: random.loggamma(k, a))(a) for k, a in zip(keys, params, strict=True)])
        x = np.asarray(jnp.exp(logs[0]) / jnp.exp(logs).sum())
        expected = x * (1 - x) * np.array([slopes[0], -slopes[1]])
        found = jit(jacfwd(lambda p: random.beta(key, p[0], p[1])))(params)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        matrix = jit(jacrev(lambda p: random.dirichlet(key, p)))(params)
        np.testing.assert_allclose(matrix.sum(0), 0, atol=1e-12)


@pytest.mark.full
def test_t_is_a_normal_number_over_the_root_of_a_gamma():
    with enable_x64(True):
        key, df = random.key(5), 4.0
        for_normal, for_gamma = random.split(key)
        z = float(random.normal(for_normal))
        g = float(random.gamma(for_gamma, df / 2))
        slope = float(jit(grad(lambda a: random.gamma(for_gamma, a)))(df / 2)) / 2
        expected = z * 0.5 * np.sqrt(g / (df / 2)) * (0.5 / g - df / 2 * slope / g**2)
        np.testing.assert_allclose(jit(grad(lambda a: random.t(key, a)))(df), expected, rtol=1e-10)
