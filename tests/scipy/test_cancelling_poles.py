"""Special functions and densities where infinities cancel: the limits, beside SciPy; overflow of differences."""
from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special as reference
import scipy.stats

import xlamini
import xlamini.numpy as jnp
from xlamini import random
from xlamini.scipy import special, stats

PAIRS = [(-3.0, 2.0), (2.0, -3.0), (-3.0, 3.0), (-4.0, 3.0), (-50.0, 7.0), (-5.0, 1.0), (-6.0, 6.0)]
PAIRS += [(0.5, -5.0), (-5.5, 0.5), (0.0, 2.0)]


@pytest.mark.parametrize("name", ["beta", "betaln"])
@pytest.mark.parametrize("pair", PAIRS)
def test_beta_at_negative_integers(name: str, pair: tuple[float, float]) -> None:
    for call in (getattr(special, name), xlamini.jit(getattr(special, name))):
        np.testing.assert_allclose(call(*pair), getattr(reference, name)(*pair), 1e-5)


AROUND_POLES = [(1.0, -5.0), (-1.5, 0.5), (-3.0, 2.0), (-2.0, 3.0), (-1.0, -1.0), (-5.0, 2.5), (-3.0, 0.0), (-7.0, 7.0)]


@pytest.mark.parametrize("z, m", AROUND_POLES)
def test_poch_at_negative_integers(z: float, m: float) -> None:
    np.testing.assert_allclose(special.poch(z, m), reference.poch(z, m), 1e-5)


def test_derivatives_where_poles_cancel() -> None:
    np.testing.assert_allclose(xlamini.grad(special.poch)(-3.0, 2.0), -5, 1e-5)  # of z * (z + 1)
    assert xlamini.grad(special.xlogy, 1)(0.0, 0.0) == xlamini.grad(special.xlog1py, 1)(0.0, -1.0) == 0


def test_digamma_at_zeros() -> None:
    assert special.digamma(jnp.array([0.0, -0.0])).tolist() == [-np.inf, np.inf]
    assert np.isnan(special.digamma(-1.0))


def test_polygamma_at_0_at_infinity_and_far_below_0() -> None:
    assert special.polygamma(jnp.array([0, 0, 1, 3]), jnp.array([0.0, -0.0, np.inf, np.inf])).tolist() == [
        -np.inf, np.inf, 0, 0
    ]  # fmt: skip
    x = np.array([-171.5, -20.3, -9.7, -0.5, 2.0], np.float32)
    exact = [float(mpmath.polygamma(1, float(v))) for v in x]
    np.testing.assert_allclose(special.polygamma(1, x), exact, 1e-4)
    np.testing.assert_allclose(xlamini.vmap(xlamini.grad(special.digamma))(x), exact, 1e-4)


@pytest.mark.parametrize("pair", [(1e5, 1.0), (1e5, 3.0), (1e5, 99999.0), (1e30, 1.0), (50.0, 25.0), (34.0, 17.0)])
def test_binomial_coefficients_of_large_numbers(pair: tuple[float, float]) -> None:
    np.testing.assert_allclose(special.comb(*map(np.float32, pair)), reference.comb(*pair), 1e-4)


def test_entropies_and_zeta_at_infinity() -> None:
    assert special.kl_div(np.inf, 0.0) == special.kl_div(-5.0, -np.inf) == np.inf
    assert special.zeta(np.inf, jnp.array([1.0, 2.0, 0.5])).tolist() == [1, 0, np.inf]


DENSITIES = {
    "gamma": ((0.0,), (2.0,), 1.0), "gamma of 1": ((0.0,), (1.0,), -1.0), "gamma of 3": ((0.0,), (3.0,), 0.0),
    "chi2": ((0.0,), (4.0,), 0.25), "beta": ((0.0, 1.0), (2.0, 3.0), [12.0, 0.0]),
    "beta of 1": ((0.0, 1.0), (1.0, 1.0), 0.0), "norm": ((-np.inf, np.inf), (), 0.0),
    "truncnorm": ((-np.inf, np.inf), (-1.0, np.inf), 0.0), "gumbel_r": ((-np.inf, -1e30, 1e30), (), 0.0),
    "gumbel_l": ((-1e30, 1e30, np.inf), (), 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", DENSITIES)
def test_slopes_of_densities_at_their_ends(name: str) -> None:
    places, parameters, wanted = DENSITIES[name]
    pdf = getattr(stats, name.partition(" ")[0]).pdf
    found = xlamini.vmap(xlamini.grad(lambda x: pdf(x, *parameters)))(jnp.array(places))
    np.testing.assert_allclose(found, np.broadcast_to(wanted, len(places)), 1e-5, 1e-6)


def test_the_rest_beside_a_thin_tail() -> None:
    x = np.array([-5.0, 0.0, 15.0, 30.0, 200.0], np.float32)
    wanted = scipy.stats.gumbel_r.logsf(x.astype(float))
    np.testing.assert_allclose(stats.gumbel_r.logsf(x), wanted, 1e-5, 1e-30)
    np.testing.assert_allclose(stats.gumbel_l.logcdf(-x), wanted, 1e-5, 1e-30)


def test_densities_at_infinity() -> None:
    inf = np.inf
    found = [stats.chi2.logpdf(inf, 4.0), stats.gamma.logpdf(inf, 2.0), stats.gumbel_r.logpdf(-inf)]
    found += [stats.gumbel_l.logpdf(inf), stats.poisson.logpmf(3, inf), stats.gamma.logpdf(-inf, 2.0)]
    assert [float(v) for v in found] == [-inf] * 6
    assert xlamini.grad(lambda x: stats.chi2.logpdf(x, 2.0))(0.0) == -0.5


HEIGHTS = [(0, 5, np.inf), (-np.inf, 5, 6), (5, -np.inf, 6), (np.inf, -np.inf, 5), (0, np.inf, np.inf)]


@pytest.mark.parametrize("heights", HEIGHTS)
def test_lines_beside_infinite_heights(heights: tuple[float, ...]) -> None:
    at, places = np.array([-1, 0, 0.5, 1, 1.5, 2, 3], np.float32), np.arange(3, dtype=np.float32)
    found = jnp.interp(at, places, np.array(heights, np.float32))
    np.testing.assert_array_equal(found, np.interp(at, places, heights))
    assert jnp.interp(0.5, jnp.array([-np.inf, 1, 2]), jnp.array([0.0, 1, 3])) == 1


def test_differences_of_the_ends_of_a_range_do_not_overflow() -> None:
    assert jnp.interp(0.5, jnp.array([-3e38, 3e38]), jnp.array([1.0, 2.0])) == 1.5
    assert jnp.interp(0.5, jnp.array([0.0, 1.0]), jnp.array([-3e38, 3e38])) == 0
    drawn = np.asarray(random.uniform(random.key(0), (1000,), minval=-3e38, maxval=3e38))
    assert np.isfinite(drawn).all() and drawn.max() > 2e38 and drawn.min() < -2e38
    traced = xlamini.jit(lambda key: random.uniform(key, (1000,), minval=-3e38, maxval=3e38))(random.key(0))
    np.testing.assert_allclose(traced, drawn, 1e-6)
