"""The derivative of Hurwitz' zeta function in its first argument, against values of mpmath."""
from __future__ import annotations

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.scipy.special import zeta

VALUES = {
    (1.1, 0.5): -98.54623880363009,
    (2.0, 1.0): -0.9375482543158438,
    (2.0, 1e-3): 6907754.340630572,
    (5.0, 3.0): -0.006912931116964659,
    (5.0, 100.0): -1.2370019342410068e-08,
    (50.0, 0.5): 780414346020669.9,
    (1.1, 1e6): -59.82185956517343,
}


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-14)])
def test_the_derivative_in_the_exponent(dtype: str, tolerance: float) -> None:
    with xlamini.enable_x64(dtype == "float64"):
        x, q = jnp.asarray(np.array(list(VALUES)).T, dtype)
        found = np.asarray(xlamini.vmap(xlamini.grad(zeta))(x, q))
    np.testing.assert_allclose(found, list(VALUES.values()), tolerance)


def test_the_second_derivative_in_the_exponent() -> None:
    np.testing.assert_allclose(xlamini.grad(xlamini.grad(zeta))(2.0, 1.0), 1.98928023, 1e-5)


def test_where_the_sum_is_a_single_term_or_none() -> None:
    found = np.asarray(xlamini.vmap(xlamini.grad(zeta), (0, None))(jnp.array([np.inf, 1e10, np.nan]), 2.0))
    np.testing.assert_array_equal(found, [0, 0, np.nan])
