"""Fits of special functions have fewer terms in float32, and the same values."""
from __future__ import annotations

import numpy as np
import pytest

from xlamini import enable_x64, numpy as jnp
from xlamini.scipy.special import fits
from xlamini.scipy.special.fit_terms import _economized, fitted

FITS = {name: value for name, value in vars(fits).items() if name.isupper()}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_in_float32_has_fewer_terms_and_the_same_values(name: str) -> None:
    fit, t = FITS[name], np.linspace(-1, 1, 1001)
    assert len(_economized(fit)) <= 0.7 * len(fit)
    assert np.abs(np.polyval(_economized(fit), t) - np.polyval(fit, t)).max() <= 2e-9
    np.testing.assert_allclose(fitted(jnp.asarray(t, "float32"), fit), np.polyval(fit, t), rtol=1e-6)


def test_a_fit_in_float64_has_all_its_terms() -> None:
    t = np.linspace(-1, 1, 101)
    with enable_x64(True):
        np.testing.assert_allclose(fitted(jnp.asarray(t), fits.DAWSON), np.polyval(fits.DAWSON, t), rtol=1e-15)
