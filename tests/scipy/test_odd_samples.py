"""Statistics of numbers, of narrow floats and with one variance for all elements, against SciPy."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as reference

import xlamini.numpy as jnp
from xlamini.scipy import stats

MEAN, X = np.array([1, 0, -1], np.float32), np.array([[1, 2, 3], [0, 1, 0]], np.float32)


def test_one_variance_for_all_elements_of_a_vector() -> None:
    expected = reference.multivariate_normal.logpdf(X, MEAN, 2.0)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(jnp.asarray(X), MEAN, 2.0), expected, 1e-6)
    expected = reference.multivariate_normal.pdf(X[0], MEAN, 2.0)
    np.testing.assert_allclose(stats.multivariate_normal.pdf(jnp.asarray(X[0]), MEAN, 2.0), expected, 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_quantiles_have_the_dtype_of_the_operands(dtype: str) -> None:
    found = stats.bernoulli.ppf(jnp.array([np.nan, 0.5, 0.9, 0.25, 2.0], dtype), jnp.array(0.25, dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype("float32"), [np.nan, 0, 1, 0, np.nan])


def test_the_mode_of_a_number() -> None:
    found = stats.mode(3.0)
    assert (found.mode, found.count) == (3, 1)
    assert found.mode.shape == ()
    np.testing.assert_array_equal(stats.mode(jnp.array(2), keepdims=True), [[2], [1]])
