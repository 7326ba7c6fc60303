"""round with many decimals, and to tens: beside NumPy, whose Python decimals are exact, in eager, jit and vmap."""
from __future__ import annotations

import decimal
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.rows.row import FLOATS, INTS, to_dtype

NUMBERS = [1.2345, -1.2345, 3e38, -1e30, 1e38, 123456.0, 1e-5, 2.5, 1e-30, 0.0, 65504.0, 8.5, np.inf, -np.inf]


def exactly(x: float, decimals: int) -> float:
    """Rounded in decimal arithmetic, from the value that the float has."""
    if not np.isfinite(x):
        return x
    unit = decimal.Decimal(10) ** -decimals
    with decimal.localcontext(prec=1000):
        return float((decimal.Decimal(x) / unit).to_integral_value(decimal.ROUND_HALF_EVEN) * unit)


@pytest.mark.parametrize("decimals", [1, 2, 10, 38, 40, 44, 300, 330, -1, -3, -38, -40, -400])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype: str, decimals: int) -> None:
    with xlamini.enable_x64(True), np.errstate(over="ignore"):
        x = np.array(NUMBERS).astype(to_dtype(dtype))
        x = x[np.isfinite(x.astype(float)) | np.isinf(np.array(NUMBERS))]
        expected = np.array([exactly(float(v), decimals) for v in x])
        tolerance = 2 * float(ml_dtypes.finfo(x.dtype).eps)
        for round in (jnp.round, xlamini.jit(jnp.round, static_argnums=1), xlamini.vmap(jnp.round, (0, None))):
            found = np.asarray(round(jnp.asarray(x), decimals)).astype(float)
            np.testing.assert_allclose(found, expected.astype(x.dtype).astype(float), tolerance, 0)
        assert not np.asarray(xlamini.vmap(xlamini.grad(lambda v: jnp.round(v, decimals)))(jnp.asarray(x))).any()


@pytest.mark.parametrize("decimals", [-1, -2, -3, -10])
@pytest.mark.parametrize("dtype", INTS)
def test_integers(dtype: str, decimals: int) -> None:
    limits = np.iinfo(dtype)
    tried = (15, 25, -15, 14, 50, 51, 150, 250, 105, -95, 0, 16500, 17500)
    numbers = [v for v in tried if limits.min <= v <= limits.max]
    expected: list[Any] = [int(exactly(v, decimals)) for v in numbers]
    with xlamini.enable_x64(True):
        x = jnp.asarray(np.array(numbers, dtype))
        found = np.asarray(jnp.round(x, decimals))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.array(expected).astype(dtype))
        np.testing.assert_array_equal(np.asarray(xlamini.jit(lambda v: jnp.round(v, decimals))(x)), found)


def test_complex_numbers_by_parts() -> None:
    assert jnp.round(jnp.complex64(1.2345 + 3e38j), 40) == np.complex64(1.2345 + 3e38j)
