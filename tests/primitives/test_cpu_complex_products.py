"""Products of complex matrices on the CPU: values beside NumPy's, and where they are products of real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, str]] = {
    "rows by columns": ((64, 70), (70, 65), (((1,), (0,)), ((), ())), "mk,kn->mn"),
    "columns by rows": ((70, 64), (65, 70), (((0,), (1,)), ((), ())), "km,nk->mn"),
    "batch last": ((66, 64, 2), (66, 2, 64), (((0,), (0,)), ((2,), (1,))), "kmb,kbn->bmn"),
    "two sums": ((64, 8, 9), (9, 8, 64), (((1, 2), (1, 0)), ((), ())), "abc,cbn->an"),
}


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Whole numbers, of which all products and sums are exact."""
    rng = np.random.default_rng(0)
    return (rng.integers(-8, 9, shape) + 1j * rng.integers(-8, 9, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: str) -> None:
    left, right, dimensions, subscripts = CASES[name]
    with xlamini.enable_x64(dtype == "complex128"):
        x, y = numbers(left, dtype), numbers(right, dtype)
        product = xlamini.jit(lambda x, y: lax.dot_general(x, y, dimensions))
        assert str(product.lower(x, y).as_text()).count("stablehlo.dot_general") == 4
        out = product(x, y)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, np.einsum(subscripts, x, y))


@pytest.mark.parametrize(
    "shapes", [((63, 64), (64, 64)), ((64, 64), (64, 63)), ((64, 63), (63, 64)), ((512, 512), (512,))]
)
def test_small_products_and_vectors_stay_whole(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = (numbers(shape, "complex64") for shape in shapes)
    assert xlamini.jit(jnp.matmul).lower(x, y).as_text().count("stablehlo.dot_general") == 1
    np.testing.assert_array_equal(xlamini.jit(jnp.matmul)(x, y), x @ y)


def test_other_platforms_multiply_complex_numbers() -> None:
    x = numbers((64, 64), "complex64")
    lowered = xlamini.jit(jnp.matmul).trace(x, x).lower(lowering_platforms=("cuda",))
    assert lowered.as_text().count("stablehlo.dot_general") == 1


def test_gradients_are_those_of_the_parts() -> None:
    """The sum of the squares of a product's parts."""
    x, y = numbers((64, 64), "complex64"), numbers((64, 64), "complex64")

    def loss(x: Any) -> Any:
        return (jnp.abs(x @ y) ** 2).sum()

    expected = 2 * (x @ y).conj() @ y.T
    np.testing.assert_allclose(xlamini.jit(xlamini.grad(loss))(x), expected, rtol=1e-4, atol=1)
