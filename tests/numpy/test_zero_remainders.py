"""The signs of zeros that division leaves, which are NumPy's, with the derivatives that they had."""
from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp

NUMBERS = (0.0, -0.0, 1, -1, 3, -3, 2.5, -2.5, 7, -7, 0.1, -0.1, 100, 9, 1e4, -1e4, np.inf, -np.inf, np.nan)
PAIRS = np.array(list(itertools.product(NUMBERS, NUMBERS)))


def assert_same(found: Any, wanted: Any) -> None:
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    np.testing.assert_array_equal(found, wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero|overflow):RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["remainder", "divmod", "floor_divide", "fmod"])
def test_they_are_numpys(name: str, dtype: str) -> None:
    x, y = PAIRS.T.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if dtype == "bfloat16":
        wanted = np.asarray(getattr(np, name)(x.astype(np.float32), y.astype(np.float32))).astype(x.dtype)
    else:
        wanted = np.asarray(getattr(np, name)(x, y))
    function = getattr(jnp, name)
    with xlamini.enable_x64(True):
        for call in (function, xlamini.jit(function), xlamini.vmap(function)):
            found = call(x, y)
            assert_same(np.stack(found) if name == "divmod" else found, wanted)
        assert_same(jnp.asarray(x) % -3.0, np.asarray(x % x.dtype.type(-3)))


@pytest.mark.parametrize(("x", "y"), [(3.0, -3.0), (-3.0, 3.0), (-6.0, -3.0), (0.0, 2.0), (2.5, 1.0), (2.5, -1.0)])
def test_their_derivatives(x: float, y: float) -> None:
    value, slope = xlamini.jvp(lambda x: x % y, (x,), (1.0,))
    assert (value, slope) == (np.remainder(x, y), 1)
    assert xlamini.grad(lambda x: x % y)(x) == 1
    assert xlamini.grad(lambda x: x // y)(x) == 0
    assert xlamini.grad(lambda y: x // y)(0.0) == 0
    if x % y:
        assert xlamini.grad(lambda y: x % y)(y) == -(x // y)
