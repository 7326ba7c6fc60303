"""Activations at the ends of their range, their derivatives in the tails, and softmax of large scaled logits."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.rows.row import FLOATS
from xlamini import nn
from xlamini.core.flags.compile_flags import disable_most_optimizations
from xlamini.scipy.special import expit

ENDS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "silu": (nn.silu, 0, math.inf),
    "gelu": (nn.gelu, 0, math.inf),
    "gelu: exact": (lambda x: nn.gelu(x, approximate=False), 0, math.inf),
    "mish": (nn.mish, 0, math.inf),
    "hard_silu": (nn.hard_silu, 0, math.inf),
    "soft_sign": (nn.soft_sign, -1, 1),
    "squareplus": (nn.squareplus, 0, math.inf),
    "sparse_plus": (nn.sparse_plus, 0, math.inf),
    "selu": (nn.selu, -1.7580993408473766, math.inf),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ENDS)
def test_values_and_slopes_at_the_ends(name: str, dtype: str) -> None:
    function, low, high = ENDS[name]
    with xlamini.enable_x64(True):
        for call in (function, xlamini.jit(function), xlamini.vmap(function)):
            found = np.asarray(call(jnp.array([-np.inf, np.inf], dtype))).astype(float)
            np.testing.assert_allclose(found, [low, high], 1e-2)
        ends = jnp.array([jnp.finfo(dtype).min, jnp.finfo(dtype).max], dtype)
        wanted = [0, {1: 0, math.inf: 1.050701 if name == "selu" else 1}[high]]
        for points in (ends, jnp.array([-np.inf, np.inf], dtype)):
            slopes = np.asarray(xlamini.vmap(xlamini.grad(function))(points)).astype(float)
            np.testing.assert_allclose(slopes, wanted, 1e-2, 1e-6)
        assert np.isnan(function(jnp.array(np.nan, dtype)))


@pytest.mark.parametrize(
    "function, x, exact",
    [(jnp.expm1, -40, math.exp(-40)), (nn.sigmoid, 40, math.exp(-40)), (expit, -40, math.exp(-40)),
     (jnp.tanh, 20, 4 * math.exp(-40)), (jnp.tanh, -20, 4 * math.exp(-40)), (nn.elu, -40, math.exp(-40)),
     (nn.silu, -40, -39 * math.exp(-40))],
)  # fmt: skip
def test_derivatives_in_the_tails(function: Callable[..., Any], x: float, exact: float) -> None:
    for dtype in ("float32", "float64"):
        with xlamini.enable_x64(True):
            at = jnp.asarray(x, dtype)
            for derivative in (xlamini.grad(function), xlamini.jit(xlamini.jacfwd(function))):
                np.testing.assert_allclose(abs(float(derivative(at))), abs(exact), 1e-5)


def test_higher_derivatives_of_the_logistic_function_and_tanh() -> None:
    with xlamini.enable_x64(True):
        found = [float(v) for v in derivatives(nn.sigmoid, 0.0)]
        np.testing.assert_allclose(found, [0.5, 0.25, 0, -0.125, 0, 0.25], 0, 1e-14)
        np.testing.assert_allclose([float(v) for v in derivatives(jnp.tanh, 0.0)], [0, 1, 0, -2, 0, 16], 0, 1e-13)
        np.testing.assert_allclose(float(derivatives(jnp.tanh, 20.0)[2]), -8 * math.exp(-40), 1e-9)
        np.testing.assert_allclose(float(derivatives(nn.sigmoid, 40.0)[2]), -math.exp(-40), 1e-9)


def derivatives(function: Callable[..., Any], x: float) -> list[Any]:
    found = [function(x)]
    for _ in range(5 if x == 0 else 2):
        function = xlamini.grad(function)
        found.append(function(x))
    return found


@pytest.mark.parametrize("divisor", [3.0, 7.0, 0.1])
@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp])
def test_large_scaled_logits_under_jit(function: Callable[..., Any], divisor: float) -> None:
    """With LLVM's optimizations, of which one fuses the scale and the difference from the maximum."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=64).astype(np.float32)) * 1e11
    with disable_most_optimizations(False):
        found = np.asarray(xlamini.jit(lambda v: function(v / divisor))(x))
        slope = xlamini.jit(xlamini.grad(lambda v: function(v / divisor).max()))(x)
    np.testing.assert_allclose(found, np.asarray(function(x / divisor)), 1e-6)
    assert np.isfinite(slope).all()
