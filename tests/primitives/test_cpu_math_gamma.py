"""lgamma and digamma as the CPU computes them: against SciPy's float64, and values recorded from mpmath."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import xlamini
from xlamini import lax

REFERENCE = {"lgamma": scipy.special.gammaln, "digamma": scipy.special.digamma}
DOMAINS = {
    "tiny": lambda u: np.exp(-80 * u), "below 1.5": lambda u: 1.5 * u, "near 2": lambda u: 1.5 + u,
    "below 6": lambda u: 2.5 + 3.5 * u, "below 30": lambda u: 6 + 24 * u, "large": lambda u: np.exp(3 + 80 * u),
}

# Where they are, and both functions there, by mpmath at 300 bits.
PLACES = [
    1e-300, 1e-17, 0.25, 0.49999999999999994, 0.5, 0.75, 0.9999999999999999, 1.0000000000000002, 1.4616321449683622,
    1.5, 1.9999999999999998, 2.0000001, 2.4999999999999996, 2.5, 2.75, 3.0, 5.5, 8.0, 30.25, 1e5, 1e15, 1e300, -1e-300,
    -1e-9, -0.25, -0.5, -1.5, -2.4570247382208006, -2.5, -2.75, -3.5, -10.125, -100.5, -1000.25, -123456.75,
]
RECORDED = {
    "lgamma": [
        690.7755278982137, 39.14394658089878, 1.2880225246980774, 0.5723649429247002, 0.5723649429247001,
        0.20328095143129538, 6.408381213480008e-17, -1.2816762426960008e-16, -0.12148629053584961, -0.12078223763524522,
        -9.387698065543117e-17, 4.227843666532498e-08, 0.28468287047291885, 0.2846828704729192, 0.47521466691493713,
        0.6931471805599453, 3.9578139676187165, 8.525161361065415, 72.104204742008, 1051287.7089736569,
        3.3538776394910668e16, 6.897755278982137e302, 690.7755278982137, 20.723265837523627, 1.589575312551186,
        1.2655121234846454, 0.860047015376481, 5.619192358950097e-17, -0.056243716497674054, 0.004487897535955773,
        -1.309006684993042, -13.29384514038954, -364.90096830942736, -5912.363970042725, -1323911.7939157095,
    ],
    "digamma": [
        -9.999999999999999e299, -1e17, -4.2274535333762655, -1.9635100260214238, -1.9635100260214235,
        -1.0858608797864722, -0.5772156649015331, -0.5772156649015325, -9.241265521729427e-17, 0.03648997397857652,
        0.422784335098467, 0.4227843995918717, 0.703156640645243, 0.7031566406452432, 0.8189010249754326,
        0.9227843350984671, 1.6110931485817512, 2.01564147795561, 3.392876200343285, 11.512920464961896,
        34.538776394910684, 690.7755278982137, 9.999999999999999e299, 999999999.4227843, 2.9141391202135276,
        0.03648997397857652, 0.7031566406452432, 1.5156034480216576, 1.103156640645243, -1.959055264977997,
        1.388870926359529, 9.948053825866076, 4.6151246013380645, 10.050097693066705, 8.582057567691884,
    ],
}


def computed(name: str, x: np.ndarray) -> np.ndarray:
    with xlamini.enable_x64(True):
        return np.asarray(xlamini.jit(getattr(lax, name))(x))


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_positive_numbers(name: str, domain: str, dtype: Any) -> None:
    x = DOMAINS[domain](np.random.default_rng(0).random(20_000) + 1e-9).astype(dtype)
    exact = REFERENCE[name](x.astype(np.float64))
    unit = np.finfo(dtype).eps
    np.testing.assert_allclose(computed(name, x), exact, rtol=5 * unit, atol=5 * unit)


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_negative_numbers(name: str, dtype: Any) -> None:
    """The error of digamma grows with its slope, as the poles are near."""
    x = -np.exp(np.random.default_rng(0).uniform(-20, 8, 20_000)).astype(dtype)
    whole = x.astype(np.float64)
    distance = np.abs(whole - np.round(whole))
    x = x[distance > 0]
    exact = REFERENCE[name](x.astype(np.float64))
    allowed = np.maximum(np.abs(exact), 5) + (1 / distance[distance > 0] if name == "digamma" else 0)
    # SciPy itself is off by 2e-13 near the poles of digamma.
    assert np.max(np.abs(computed(name, x) - exact) / allowed) < 4 * np.finfo(dtype).eps + 5e-13


@pytest.mark.parametrize("name", REFERENCE)
def test_recorded_values(name: str) -> None:
    exact = np.array(RECORDED[name])
    np.testing.assert_allclose(computed(name, np.array(PLACES)), exact, rtol=2e-15, atol=6e-16)


def test_zeros_of_the_logarithm_are_precise() -> None:
    for dtype in (np.float32, np.float64):
        eps = float(np.finfo(dtype).eps)
        x = np.array([1 + eps, 1 - eps, 2 + 2 * eps, 2 - eps, 1, 2], dtype)
        euler = np.euler_gamma
        exact = [-euler * eps, euler * eps, 2 * eps * (1 - euler), -eps * (1 - euler), 0, 0]
        np.testing.assert_allclose(computed("lgamma", x), exact, rtol=4 * eps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_special_values(dtype: Any) -> None:
    """As JAX 0.10.2 gives them, but for digamma at the zeros, where SciPy's sign is that of the other side."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1, -2, -3, -1000], dtype)
    inf, nan = np.inf, np.nan
    np.testing.assert_array_equal(computed("lgamma", x), [inf, inf, inf, inf, nan, inf, inf, inf, inf])
    np.testing.assert_array_equal(computed("digamma", x), [-inf, inf, inf, nan, nan, nan, nan, nan, nan])


@pytest.mark.full
def test_very_large_numbers() -> None:
    for dtype, largest in ((np.float32, 4.0e36), (np.float64, 2.5e305)):
        x = np.array([largest, 1.1 * largest, -largest, np.finfo(dtype).max, -np.finfo(dtype).max], dtype)
        found = computed("lgamma", x)
        np.testing.assert_allclose(found[0], scipy.special.gammaln(float(x[0])), rtol=4 * float(np.finfo(dtype).eps))
        np.testing.assert_array_equal(found[1:], np.inf)
        np.testing.assert_array_equal(np.isfinite(computed("digamma", x)), [True, True, False, True, False])


@pytest.mark.parametrize("name", REFERENCE)
def test_narrow_floats_are_computed_in_float32(name: str) -> None:
    x = np.linspace(0.1, 30, 500).astype(np.float16)
    np.testing.assert_allclose(computed(name, x), REFERENCE[name](x.astype(np.float64)), rtol=2e-3, atol=1e-3)


def test_derivatives_and_batches() -> None:
    x = np.linspace(0.3, 9.7, 41).astype(np.float32)
    slopes = xlamini.vmap(xlamini.grad(lax.lgamma))(x)
    np.testing.assert_allclose(slopes, scipy.special.digamma(x.astype(float)), rtol=1e-5, atol=1e-6)
    curvature = xlamini.vmap(xlamini.grad(xlamini.grad(lax.lgamma)))(x)
    np.testing.assert_allclose(curvature, scipy.special.polygamma(1, x.astype(float)), rtol=1e-5)


@pytest.mark.parametrize("name", REFERENCE)
def test_shapes(name: str) -> None:
    assert computed(name, np.array(2.5, np.float32)).shape == ()
    assert computed(name, np.zeros((0, 3), np.float32)).shape == (0, 3)
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(computed(name, x), REFERENCE[name](x), rtol=1e-6)
