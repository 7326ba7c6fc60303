"""`relu` and what is made of it: values and gradients at the ends and at NaN, as in JAX; the maximum in programs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini.numpy as jnp
from xlamini import custom_jvp, grad, hessian, jit, jvp, lax, nn, vmap
from xlamini.staging.trace import trace_cache

NAN, INF = np.nan, np.inf
POINTS = np.array([NAN, -INF, -1.0, -0.0, 0.0, 1.0, 6.0, 7.0, INF], np.float32)
SIXTH = np.float32(1 / 6)
EXPECTED: dict[Callable[..., Any], tuple[list[float], list[float]]] = {
    nn.relu: ([NAN, 0, 0, 0, 0, 1, 6, 7, INF], [0, 0, 0, 0, 0, 1, 1, 1, 1]),
    nn.relu6: ([NAN, 0, 0, 0, 0, 1, 6, 6, 6], [0, 0, 0, 0, 0, 1, 0, 0, 0]),
    nn.hard_sigmoid: ([NAN, 0, 1 / 3, 0.5, 0.5, 2 / 3, 1, 1, 1], [0, 0, SIXTH, SIXTH, SIXTH, SIXTH, 0, 0, 0]),
}


@pytest.mark.parametrize("function", EXPECTED)
def test_values_and_slopes(function: Callable[..., Any]) -> None:
    values, slopes = EXPECTED[function]
    np.testing.assert_allclose(function(POINTS), np.array(values, np.float32), 1e-6)
    np.testing.assert_allclose(vmap(grad(function))(POINTS), np.array(slopes, np.float32), 1e-6)
    np.testing.assert_allclose(grad(lambda x: vmap(function)(x).sum())(POINTS), np.array(slopes, np.float32), 1e-6)
    out, tangent = jvp(jit(function), (POINTS,), (2 * jnp.ones(9),))
    np.testing.assert_allclose(out, np.array(values, np.float32), 1e-6)
    np.testing.assert_allclose(tangent, 2 * np.array(slopes, np.float32), 1e-6)


@pytest.mark.parametrize("function", EXPECTED)
def test_second_derivatives_are_zero(function: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(vmap(grad(grad(function)))(POINTS), np.zeros(9, np.float32))


def test_a_network_of_two_layers_has_the_hessian_of_its_open_units() -> None:
    w = jnp.array([[1.0, -1.0], [2.0, 0.5]])

    def loss(w: Any) -> Any:
        return (nn.relu(jnp.array([1.0, 0.5]) @ w) ** 2).sum()

    expected = np.zeros((2, 2, 2, 2), np.float32)
    expected[:, 0, :, 0] = 2 * np.outer([1.0, 0.5], [1.0, 0.5])
    np.testing.assert_allclose(hessian(loss)(w), expected, 1e-6)


@pytest.mark.parametrize(
    ("x", "relu", "relu6"),
    [
        (np.array([-1, 3], np.int8), "int8", "float32"),
        (np.array([True, False]), "int32", "float32"),
        (np.array([-1, 3], np.float16), "float16", "float16"),
        (2, "int32", "float32"),
        (2.0, "float32", "float32"),
    ],
)
def test_dtypes_are_those_of_a_maximum_with_a_number(x: Any, relu: str, relu6: str) -> None:
    assert (nn.relu(x).dtype, nn.relu6(x).dtype) == (relu, relu6)
    np.testing.assert_array_equal(nn.relu(x), np.maximum(x, 0))


def test_complex_numbers_are_ordered_by_real_part() -> None:
    found = nn.relu(jnp.array([1 - 2j, -1 + 2j, 0 + 3j, 0 - 3j]))
    np.testing.assert_array_equal(found, np.array([1 - 2j, 0, 3j, 0], np.complex64))


def test_compilers_see_a_maximum() -> None:
    """Which they fuse into the product before it; a selection stays a kernel of its own on a GPU."""
    text = jit(lambda x, w: nn.relu6(x @ w)).lower(jnp.ones((4, 3)), jnp.ones((3, 2))).as_text()
    assert text.count("stablehlo.maximum") == 1 and text.count("stablehlo.minimum") == 1
    assert "select" not in text and "compare" not in text


def test_a_program_with_the_rule_of_a_library_function_is_rewritten_once() -> None:
    """The rule does the same every time, so a third call finds the program of the second; a user's may have changed."""
    squared = custom_jvp(lambda x: x * x)
    slopes = iter([1.0, 2.0, 3.0])
    squared.defjvps(lambda x_dot, out, x: next(slopes) * x * x_dot)

    def programs_found(function: Callable[..., Any], expected: float) -> int:
        before = trace_cache.traced.hits
        assert float(grad(lambda x: lax.neg(function(x)))(3.0)) == expected
        return trace_cache.traced.hits - before

    assert [programs_found(nn.relu, -1.0) for _ in range(3)] == [0, 0, 1]
    assert [programs_found(squared, -3.0 * slope) for slope in (1, 2, 3)] == [0, 0, 0]
