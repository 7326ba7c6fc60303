"""The derivatives of tanh and of the logistic function: all digits in the tails and near 0, for one exponential."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mpmath import mp

import xlamini
from xlamini import lax, numpy as jnp

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
SIZES = [1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 1.5, 3.0, 5.5, 9.0, 15.0, 20.0, 40.0, 43.9, 300.0]
ALLOWED = {1: 5, 2: 6, 3: 16}
"""Of each derivative, in units of the dtype's epsilon; the third one has zeros, of which 0.66 is not too close."""


def sech_squared(x: Any) -> Any:
    return 1 / mp.cosh(x) ** 2


DERIVATIVES: dict[int, Callable[[Any], Any]] = {
    1: sech_squared,
    2: lambda x: -2 * mp.tanh(x) * sech_squared(x),
    3: lambda x: sech_squared(x) * (4 * mp.tanh(x) ** 2 - 2 * sech_squared(x)),
}


def derivative(f: Callable[..., Any], order: int) -> Callable[..., Any]:
    for _ in range(order):
        f = xlamini.grad(f)
    return f


@pytest.mark.full
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", DERIVATIVES)
def test_all_digits(order: int, dtype: str) -> None:
    numbers = DTYPES[dtype]
    info = ml_dtypes.finfo(numbers)
    with xlamini.enable_x64(True), mp.workdps(60):
        for f, scale in ((lax.tanh, 1), (lax.logistic, 2)):
            xs = np.array([s * x * scale for x in SIZES for s in (1, -1)], numbers)
            found = xlamini.jit(xlamini.vmap(derivative(f, order)))(xs)
            for x, y in zip(xs.astype(float), np.asarray(found, float), strict=True):
                wanted = DERIVATIVES[order](mp.mpf(x) / scale) / scale ** (order + (scale > 1))
                smallest = float(info.smallest_subnormal if dtype == "float16" else info.tiny)
                error = ALLOWED[order] * (float(info.eps) * abs(wanted) + smallest)
                assert abs(y - wanted) <= error, (f, x, y, float(wanted))


@pytest.mark.parametrize("f", [lax.tanh, lax.logistic])
def test_forward_and_reverse_mode_agree(f: Any) -> None:
    x = np.float32([-20, -1, -1e-4, 0, 0.3, 8, np.inf, -np.inf])
    slope = xlamini.vmap(xlamini.grad(f))(x)
    np.testing.assert_array_equal(xlamini.jvp(f, (x,), (np.ones_like(x),))[1], slope)
    # From jaxlib 0.12 on XLA has another exponential for a scalar than for an array.
    np.testing.assert_allclose([xlamini.grad(f)(v) for v in x], slope, rtol=4e-7)
    assert not np.isnan(slope).any()
    assert np.isnan(xlamini.grad(f)(np.float32(np.nan)))


def test_it_takes_one_exponential_and_one_array() -> None:
    text = xlamini.jit(xlamini.grad(lambda x: jnp.tanh(x).sum())).lower(np.ones(64, np.float32)).compile().as_text()
    assert text.count(" exponential(") == 1
    assert " tanh(" not in text
