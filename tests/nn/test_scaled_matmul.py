"""Block-scaled products: what blocks keep exactly, what rounding costs, and derivatives that round cotangents too."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, nn, numpy as jnp, random

DOT = (((1,), (1,)), ((), ()))


def configs(mode: str) -> list[Any]:
    return [nn.get_scaled_dot_general_config(mode)] * 3


@pytest.mark.full
def test_powers_of_two_are_exact_where_scales_are() -> None:
    x = 2.0 ** jnp.tile(jnp.array([-1.0, 0.0, 1.0]), (2, 32))
    np.testing.assert_array_equal(nn.scaled_dot_general(x, x, DOT, configs=configs("mxfp8")), x @ x.T)


@pytest.mark.full
@pytest.mark.parametrize(("mode", "error"), [("mxfp8", 0.05), ("nvfp4", 0.2)])
def test_rounding_costs_as_much_as_the_bits_say(mode: str, error: float) -> None:
    x, y = (random.normal(random.key(i), (8, 100)) for i in range(2))
    exact, found = x @ y.T, nn.scaled_dot_general(x, y, DOT, configs=configs(mode))
    assert 0 < jnp.linalg.norm(found - exact) / jnp.linalg.norm(exact) < error


@pytest.mark.full
def test_the_gradient_is_that_of_the_product_up_to_rounding() -> None:
    x, y = (random.normal(random.key(i), (8, 64)) for i in range(2))
    found = xlamini.grad(lambda a, b: nn.scaled_dot_general(a, b, DOT, configs=configs("mxfp8")).sum(), (0, 1))(x, y)
    exact = xlamini.grad(lambda a, b: lax.dot_general(a, b, DOT).sum(), (0, 1))(x, y)
    for f, e in zip(found, exact, strict=True):
        assert f.shape == e.shape
        assert 0 < jnp.linalg.norm(f - e) / jnp.linalg.norm(e) < 0.05


@pytest.mark.full
def test_for_inference_the_gradient_is_exact() -> None:
    config = nn.get_scaled_dot_general_config("mxfp8")
    only = type(config)(**{**vars(config), "infer_only": True})
    x = random.normal(random.key(0), (4, 32))
    found = xlamini.grad(lambda a: nn.scaled_dot_general(a, x, DOT, configs=[config, config, only]).sum())(x)
    np.testing.assert_allclose(found, jnp.tile(x.sum(0), (4, 1)), rtol=1e-5)


@pytest.mark.full
def test_axes_come_in_dot_generals_order() -> None:
    x, y = jnp.ones((2, 3, 32, 5)), jnp.ones((32, 7, 3))
    numbers = (((2,), (0,)), ((1,), (2,)))
    assert nn.scaled_dot_general(x, y, numbers, configs=configs("mxfp8")).shape == (3, 2, 5, 7)
    assert lax.dot_general(x, y, numbers).shape == (3, 2, 5, 7)


def test_numbers_of_8_bits_with_scales() -> None:
    x, scales = jnp.ones((1, 2, 64), jnp.float8_e4m3fn), jnp.full((1, 2, 2), 2, jnp.float8_e8m0fnu)
    found = nn.scaled_matmul(x, x, scales, scales, preferred_element_type=jnp.bfloat16)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found.astype(np.float32), np.full((1, 2, 2), 256.0))
