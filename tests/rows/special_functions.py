"""Rows of the special functions of lax whose lowering is a loop or a polynomial, beside SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from tests.rows.row import Arg, Row, singles
from xlamini import lax

SPECIAL = {"bfloat16": 2e-2, "float16": 3e-3, "float32": 1e-5, "float64": 1e-12}


def _samples(*domains: tuple[float, float], fixed: int = 0) -> list[Any]:
    """Arrays in these domains; in the first `fixed` of them no derivative is asked."""
    shapes = ((2, 3),)
    return [[Arg(s, domain=d, diff=i >= fixed) for i, d in enumerate(domains)] for s in shapes]


def _gamma_slope(a: Any, x: Any) -> Any:
    """The derivative of the incomplete gamma function in a, by central differences."""
    a, x = a.astype("float64"), x.astype("float64")
    h = 1e-4
    inner = scipy.special.gammainc(a + h, x) - scipy.special.gammainc(a - h, x)
    outer = scipy.special.gammainc(a + 2 * h, x) - scipy.special.gammainc(a - 2 * h, x)
    return (8 * inner - outer) / (12 * h)


def _sample_slope(a: Any, x: Any) -> Any:
    density = x ** (a - 1) * np.exp(-x) / scipy.special.gamma(a)
    return -_gamma_slope(a, x) / density


GAMMA = _samples((0.3, 4), (0.3, 6))
IN_X = _samples((0.3, 4), (0.3, 6), fixed=1)
LARGE = [[Arg((2, 3), domain=(1500, 2000)), Arg((2, 3), domain=(1500, 2000))]]
APPROXIMATE = {**SPECIAL, "float32": 1e-4, "float64": 1e-9}

ROWS = [
    Row("bessel_i0e", lax.bessel_i0e, scipy.special.i0e, samples=singles(domain=(-20, 20)), tolerance=SPECIAL),
    Row("bessel_i1e", lax.bessel_i1e, scipy.special.i1e, samples=singles(domain=(-20, 20)), tolerance=SPECIAL),
    Row("igamma", lax.igamma, scipy.special.gammainc, samples=IN_X, order=1, tolerance=SPECIAL),
    Row("igammac", lax.igammac, scipy.special.gammaincc, samples=IN_X, order=1, tolerance=SPECIAL),
    Row("igamma: in a", lax.igamma, None, samples=GAMMA, dtypes=("float64",), order=1),
    Row(
        "igamma: large",
        lax.igamma,
        scipy.special.gammainc,
        samples=LARGE,
        dtypes=("float32", "float64"),
        differentiable=False,
        tolerance={"float32": 1e-3, "float64": 1e-11},
    ),
    Row("igamma_grad_a", lax.igamma_grad_a, _gamma_slope, samples=GAMMA, differentiable=False, tolerance=APPROXIMATE),
    Row(
        "random_gamma_grad",
        lax.random_gamma_grad,
        _sample_slope,
        samples=GAMMA,
        differentiable=False,
        tolerance=APPROXIMATE,
    ),
    Row(
        "betainc",
        lax.betainc,
        scipy.special.betainc,
        samples=_samples((0.3, 6), (0.3, 6), (0.1, 0.9), fixed=2),
        tolerance=SPECIAL,
    ),
]
