"""Special functions and densities where infinities cancel: the limits, beside SciPy; overflow of differences."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special as reference

import xlamini
import xlamini.numpy as jnp
from xlamini import random
from xlamini.scipy import special, stats

PAIRS = [(-3.0, 2.0), (2.0, -3.0), (-3.0, 3.0), (-4.0, 3.0), (-50.0, 7.0), (-5.0, 1.0), (-6.0, 6.0)]


@pytest.mark.parametrize("name", ["beta", "betaln"])
@pytest.mark.parametrize("pair", PAIRS)
def test_beta_at_negative_integers(name: str, pair: tuple[float, float]) -> None:
    for call in (getattr(special, name), xlamini.jit(getattr(special, name))):
        np.testing.assert_allclose(call(*pair), getattr(reference, name)(*pair), 1e-5)


@pytest.mark.parametrize("z, m", [(-3.0, 2.0), (-2.0, 3.0), (-1.0, -1.0), (-5.0, 2.5), (-3.0, 0.0), (-7.0, 7.0)])
def test_poch_at_negative_integers(z: float, m: float) -> None:
    np.testing.assert_allclose(special.poch(z, m), reference.poch(z, m), 1e-5)


def test_derivatives_where_poles_cancel() -> None:
    np.testing.assert_allclose(xlamini.grad(special.poch)(-3.0, 2.0), -5, 1e-5)  # of z * (z + 1)
    assert xlamini.grad(special.xlogy, 1)(0.0, 0.0) == xlamini.grad(special.xlog1py, 1)(0.0, -1.0) == 0


def test_digamma_at_zeros() -> None:
    assert special.digamma(jnp.array([0.0, -0.0])).tolist() == [-np.inf, np.inf]
    assert np.isnan(special.digamma(-1.0))


def test_densities_at_infinity() -> None:
    inf = np.inf
    found = [stats.chi2.logpdf(inf, 4.0), stats.gamma.logpdf(inf, 2.0), stats.gumbel_r.logpdf(-inf)]
    found += [stats.gumbel_l.logpdf(inf), stats.poisson.logpmf(3, inf), stats.gamma.logpdf(-inf, 2.0)]
    assert [float(v) for v in found] == [-inf] * 6
    assert xlamini.grad(lambda x: stats.chi2.logpdf(x, 2.0))(0.0) == -0.5


def test_differences_of_the_ends_of_a_range_do_not_overflow() -> None:
    assert jnp.interp(0.5, jnp.array([-3e38, 3e38]), jnp.array([1.0, 2.0])) == 1.5
    assert jnp.interp(0.5, jnp.array([0.0, 1.0]), jnp.array([-3e38, 3e38])) == 0
    drawn = np.asarray(random.uniform(random.key(0), (1000,), minval=-3e38, maxval=3e38))
    assert np.isfinite(drawn).all() and drawn.max() > 2e38 and drawn.min() < -2e38
    traced = xlamini.jit(lambda key: random.uniform(key, (1000,), minval=-3e38, maxval=3e38))(random.key(0))
    np.testing.assert_allclose(traced, drawn, 1e-6)
