"""Special functions and their derivatives at the edges of their domains, against SciPy and digamma's values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as reference

import xlamini
import xlamini.numpy as jnp
from xlamini.scipy import special

POINTS: dict[str, tuple[Any, ...]] = {
    "beta": ([30.0, 3e6, np.inf, 2.0, 1.0], [-2.5, -1.5, 2.0, np.inf, 2.0]),
    "betaln": ([1e10, 3e6, np.inf, 2.0, 1.0], [-2.5, -1.5, 2.0, np.inf, 2.0]),
    "boxcox": ([np.inf, 0.0, 1.0, 2.0, np.nan], [0.0]),
    "boxcox1p": ([np.inf, -1.0, 0.0, 1.0, np.nan], [0.0]),
    "comb": ([1.0, 2.0, 7.0, 1e35, 1e35], [0.0, 2.0, 7.0, 0.0, 1e35]),
    "kl_div": ([1.0, 2.0, 1e-30, 1e30, 0.25], [3e38, 3e38, 1e20, 1e-20, 0.25]),
    "rel_entr": ([1.0, 2.0, 1e-30, 1e30, 0.25], [3e38, 3e38, 1e20, 1e-20, 0.25]),
    "xlogy": ([0.0, 0.0, 0.0, 2.0], [np.nan, 0.0, -1.0, 3.0]),
    "xlog1py": ([0.0, 0.0, 0.0, 2.0], [np.nan, -1.0, -3.0, 3.0]),
    "fresnel": ([3e38, -3e38, np.inf, 1e20, 3.5],),
}


@pytest.mark.parametrize("name", POINTS)
def test_values(name: str) -> None:
    found = getattr(special, name)(*(jnp.asarray(x, "float32") for x in POINTS[name]))
    expected = getattr(reference, name)(*(np.asarray(x, np.float32).astype(np.float64) for x in POINTS[name]))
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected, np.float32), 2e-6)


def _slopes(function: Callable[..., Any], *points: Any) -> list[float]:
    return [float(g) for g in xlamini.grad(function, tuple(range(len(points))))(*points)]


@pytest.mark.parametrize("p, q", [(1e-37, 3.0), (1e-30, 1e20), (3e38, 1.0), (1e19, 1e-18), (0.25, 0.5)])
def test_the_derivatives_of_relative_entropy_whatever_the_ratio(p: float, q: float) -> None:
    by_p, by_q = np.log(p / q) + 1, -p / q
    np.testing.assert_allclose(_slopes(special.rel_entr, p, q), [by_p, by_q], 1e-5, 1e-37)
    np.testing.assert_allclose(_slopes(special.kl_div, p, q), [by_p - 1, by_q + 1], 1e-5)


def test_the_derivatives_of_comb_where_all_or_none_are_chosen() -> None:
    np.testing.assert_allclose(_slopes(special.comb, 2.0, 0.0), [0, 1.5], 1e-6, 1e-7)
    np.testing.assert_allclose(_slopes(special.comb, 2.0, 2.0), [1.5, -1.5], 1e-6)


@pytest.mark.parametrize("x", [0.5, 2.0])
def test_the_derivatives_of_boxcox_at_its_limit(x: float) -> None:
    np.testing.assert_allclose(_slopes(special.boxcox, x, 0.0), [1 / x, np.log(x) ** 2 / 2], 1e-6)


def test_the_derivative_of_a_relative_entropy_of_distant_numbers() -> None:
    np.testing.assert_allclose(_slopes(special.rel_entr, 1.0, 3e38)[0], 1 - np.log(3e38), 1e-6)
    np.testing.assert_allclose(_slopes(special.kl_div, 1.0, 3e38), [-np.log(3e38), 1], 1e-6)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # digamma(a) - digamma(a + b) and digamma(b) - digamma(a + b), from 40 digits
        (2.0**-17, 10.0, (-131074.82895650654, -8.023551447291032e-07)),
        (2.0**-20, 2.0, (-1048576.9999990463, -6.150568715589736e-07)),
        (0.5, 131072.0, (-13.74701209554292, -3.814704541582614e-06)),
        (1.0, 1048576.0, (-14.440159752937522, -9.5367431640625e-07)),
    ],
)
def test_the_derivatives_of_beta_where_two_values_of_digamma_are_close(a: float, b: float, expected: Any) -> None:
    np.testing.assert_allclose(_slopes(special.betaln, a, b), expected, 1e-6)
    np.testing.assert_allclose(_slopes(special.beta, a, b), np.multiply(expected, reference.beta(a, b)), 1e-5)
    second = xlamini.grad(xlamini.grad(special.betaln, 1), 1)(a, b)
    np.testing.assert_allclose(second, reference.polygamma(1, b) - reference.polygamma(1, a + b), 1e-4)
