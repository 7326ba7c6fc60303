"""scipy.stats.gaussian_kde beside SciPy's, and under transformations."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from xlamini import enable_x64, grad, jit, numpy as jnp, random, vmap
from xlamini.scipy.stats import gaussian_kde
from xlamini.test_util import check_grads

pytestmark = pytest.mark.full  # its programs take long to compile

NUMBERS = np.array([1.0, 2.0, 4.0, 7.0, 7.5], "float32")
VECTORS = np.array([[1.0, 2.0, 4.0, 7.0, 6.0], [0.0, 1.0, 1.0, 3.0, 2.0]], "float32")
WEIGHTS = np.array([1.0, 2.0, 1.0, 1.0, 0.5], "float32")
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "silverman": {"bw_method": "silverman"},
    "number": {"bw_method": 0.4},
    "function": {"bw_method": lambda kde: kde.neff ** (-1 / (kde.d + 5))},
    "weights": {"weights": WEIGHTS},
}
samples = pytest.mark.parametrize("data", [NUMBERS, VECTORS], ids=["numbers", "vectors"])
options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def both(data: Any, **options: Any) -> tuple[Any, Any]:
    return gaussian_kde(jnp.asarray(data), **options), scipy.stats.gaussian_kde(data.astype(float), **options)


def points(data: np.ndarray) -> np.ndarray:
    return data[..., ::2] + np.float32(0.3)


@samples
@options
def test_is_scipys(data: np.ndarray, options: dict[str, Any]) -> None:
    mine, reference = both(data, **options)
    assert (mine.d, mine.n) == (reference.d, reference.n)
    for name in ("neff", "weights", "covariance", "inv_cov"):
        np.testing.assert_allclose(getattr(mine, name), getattr(reference, name), rtol=1e-4, atol=1e-5)
    for name in ("evaluate", "pdf", "logpdf", "__call__"):
        expected = getattr(reference, name)(points(data))
        np.testing.assert_allclose(getattr(mine, name)(points(data)), expected, rtol=1e-4)


@samples
def test_integrals_are_scipys(data: np.ndarray) -> None:
    (mine, reference), (other, of_scipy) = both(data), both(data + 1, bw_method=0.7)
    mean, cov = np.ones(len(np.atleast_2d(data)), "float32"), np.eye(len(np.atleast_2d(data)), dtype="float32") * 2
    expected = reference.integrate_gaussian(mean, cov)
    np.testing.assert_allclose(mine.integrate_gaussian(mean, cov), expected, rtol=1e-4)
    np.testing.assert_allclose(mine.integrate_kde(other), reference.integrate_kde(of_scipy), rtol=1e-4)


def test_the_probability_of_an_interval_is_scipys() -> None:
    mine, reference = both(NUMBERS, weights=WEIGHTS)
    expected = reference.integrate_box_1d(0.5, 3)
    np.testing.assert_allclose(mine.integrate_box_1d(0.5, 3.0), expected, rtol=1e-5)
    np.testing.assert_allclose(mine.integrate_box_1d(-np.inf, np.inf), 1, rtol=1e-6)


@samples
def test_draws_have_its_moments(data: np.ndarray) -> None:
    mine, reference = both(data, bw_method=0.5)
    drawn = np.asarray(mine.resample(random.key(0), (40_000,)))
    assert drawn.shape == (mine.d, 40_000)
    np.testing.assert_allclose(drawn.mean(1), np.atleast_2d(data).mean(1), atol=0.1)
    biased = np.cov(np.atleast_2d(data), bias=True)
    np.testing.assert_allclose(np.cov(drawn), biased + reference.covariance.squeeze(), rtol=0.1)
    assert mine.resample(random.key(0)).shape == (mine.d,)


@samples
def test_is_a_pytree_for_jit_and_vmap(data: np.ndarray) -> None:
    mine = gaussian_kde(jnp.asarray(data))
    expected = mine.logpdf(points(data))
    np.testing.assert_allclose(jit(lambda kde, x: kde.logpdf(x))(mine, points(data)), expected, rtol=1e-5)
    made_inside = jit(lambda data: gaussian_kde(data).logpdf(points(np.asarray(VECTORS if data.ndim > 1 else NUMBERS))))
    np.testing.assert_allclose(made_inside(jnp.asarray(data)), expected, rtol=1e-5)
    each = vmap(lambda x: mine.logpdf(x)[0], in_axes=data.ndim - 1)(jnp.asarray(points(data)))
    np.testing.assert_allclose(each, expected, rtol=1e-5)


@pytest.mark.full
@samples
def test_has_derivatives(data: np.ndarray) -> None:
    with enable_x64(True):
        wide, places = jnp.asarray(data, "float64"), jnp.asarray(points(data), "float64")
        check_grads(lambda d, x: gaussian_kde(d).logpdf(x).sum(), (wide, places), order=1)
        found = vmap(grad(lambda h: gaussian_kde(wide, h).logpdf(places).sum()))(jnp.array([0.4, 0.7]))
        assert found.shape == (2,) and bool(jnp.isfinite(found).all())
