"""Formulas of float32, in which narrow floats are computed too: erfc, its derivative, and powers of two."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import xlamini
import xlamini.numpy as jnp
from tests.primitives.test_cpu_math import lowered, special, ulps
from xlamini import lax
from xlamini.nn import gelu

pytestmark = pytest.mark.usefixtures("optimized")

# Where they are, and the errors below which XLA's op stays there: in most places larger than the formula's.
INTERVALS = {(-11.0, -1.0): 1.0, (-1.0, 0.0): 2.2, (0.0, 1.0): 3.6, (1.0, 3.0): 5.7, (3.0, 9.19): 7.7}


def computed(x: np.ndarray) -> np.ndarray:
    return np.asarray(xlamini.jit(lax.erfc)(x))


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
def test_the_error_is_below_eight_units_in_the_last_place(interval: tuple[float, float]) -> None:
    x = np.random.default_rng(0).uniform(*interval, 300_000).astype(np.float32)
    assert ulps(computed(x), scipy.special.erfc(x.astype(np.float64))) <= INTERVALS[interval]


def test_small_numbers() -> None:
    x = np.exp2(-np.arange(1.0, 150)).astype(np.float32)
    assert ulps(computed(x), scipy.special.erfc(x.astype(np.float64))) <= 3
    assert ulps(computed(-x), scipy.special.erfc(-x.astype(np.float64))) <= 2


def test_special_numbers() -> None:
    x = np.concatenate([special("float32"), np.float32([9.19, 9.2, 9.3, 10.06, 14, 1e5, -9.3, -1e5])])
    expected = scipy.special.erfc(x.astype(np.float64)).astype(np.float32)
    expected[np.abs(expected) < np.finfo(np.float32).tiny] = 0  # XLA lets the CPU take subnormal numbers for 0
    found = computed(x)
    assert ulps(found, expected) <= 8
    exact = (expected == 0) | (np.abs(x) < 1e-30) | (expected == 2)
    np.testing.assert_array_equal(found[exact], expected[exact])
    assert not np.signbit(found[~np.isnan(found)]).any()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrow_floats_are_computed_in_float32(dtype: Any) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    found = computed(x)
    assert found.dtype == dtype
    expected = computed(x.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


def test_float64_and_other_platforms_keep_xlas_op() -> None:
    single = jnp.ones(5)
    assert "chlo.erfc " not in lowered(lax.erfc, single)
    for platform in ("cuda", "tpu"):
        assert "chlo.erfc " in lowered(lax.erfc, single, platform=platform)
    with xlamini.enable_x64(True):
        assert "chlo.erfc " in lowered(lax.erfc, jnp.ones(5, "float64"))


@pytest.mark.parametrize("function", [lax.erf, lax.erfc])
def test_the_derivative_and_its_own(function: Any) -> None:
    """The second by its definition, `-2 * x` times the first."""
    x = np.concatenate([np.linspace(-9.3, 9.3, 100_001), [9.4, -20, 1e20, 0]]).astype(np.float32)
    wide = x.astype(np.float64)
    slope = (1 if function is lax.erf else -1) * 2 / np.sqrt(np.pi) * np.exp(-(wide**2))
    slope[np.abs(slope) < np.finfo(np.float32).tiny] = 0
    first = xlamini.grad(lambda x: function(x).sum())
    np.testing.assert_allclose(xlamini.jit(first)(x), slope, rtol=5e-7)
    second = xlamini.jit(xlamini.grad(lambda x: first(x).sum()))(x)
    np.testing.assert_allclose(second, -2 * wide * slope, rtol=1e-6, atol=1e-37)
    assert np.isnan(xlamini.jit(first)(np.float32([np.nan]))).all()


def test_a_gradient_shares_the_power_with_the_function() -> None:
    """The gradient of gelu raises e to a power once, by a formula that rounds once."""
    gradient = xlamini.jit(lambda x: xlamini.vjp(lambda x: gelu(x, approximate=False), x)[1](x))
    program = gradient.lower(jnp.ones((64, 128))).compile().as_text()
    assert (program.count(" round-nearest-even("), program.count(" exponential(")) == (1, 0)


def test_gelu_is_precise_in_its_tail() -> None:
    """Where a formula by the error function itself has no digit left."""
    x = np.linspace(-10, 4, 10_001, dtype=np.float32)
    wide = x.astype(np.float64)
    exact = 0.5 * wide * scipy.special.erfc(-wide * np.sqrt(0.5))
    found = np.asarray(xlamini.jit(lambda x: gelu(x, approximate=False))(x))
    np.testing.assert_allclose(found, exact, rtol=1e-5)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_powers_of_two_are_computed_in_float32(dtype: Any) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp2(x.astype(np.float64))
        expected = exact.astype(dtype).astype(np.float32)
    normal = ~((exact > 0) & (exact <= ml_dtypes.finfo(dtype).tiny))
    found = np.asarray(xlamini.jit(lax.exp2)(x)).astype(np.float32)
    np.testing.assert_allclose(found[normal], expected[normal], rtol=float(ml_dtypes.finfo(dtype).eps))
