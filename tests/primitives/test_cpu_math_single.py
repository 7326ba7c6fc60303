"""The formula that the CPU has in float32 only: the complement of the error function."""
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


def test_gelu_is_precise_in_its_tail() -> None:
    """Where a formula by the error function itself has no digit left."""
    x = np.linspace(-10, 4, 10_001, dtype=np.float32)
    wide = x.astype(np.float64)
    exact = 0.5 * wide * scipy.special.erfc(-wide * np.sqrt(0.5))
    found = np.asarray(xlamini.jit(lambda x: gelu(x, approximate=False))(x))
    np.testing.assert_allclose(found, exact, rtol=1e-5)
