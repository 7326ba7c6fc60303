"""The formulas that accelerators compute in place of the CPU's give the CPU's values, here on the CPU."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xlamini import numpy as jnp
from xlamini.primitives.elementwise.comparison import ge, le
from xlamini.primitives.reductions.sort import _comparator
from xlamini.primitives.shape.interleave import _as_sum, _in_pairs
from xlamini.primitives.windows.reduce_window import _repeated, _repeated_by_sums
from xlamini.primitives.windows.select import WindowPositions, _by_views, select_and_scatter_add_p

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int8", "bool"])
@pytest.mark.parametrize("more", [0, 1])
def test_interleaved_arrays_have_the_same_bits(dtype: str, more: int) -> None:
    even = jnp.asarray([[-0.0, 1, 2, 3][: 3 + more]], dtype)
    odd = jnp.asarray([[5, -0.0, 1]], dtype)
    assert np.asarray(_as_sum(even, odd, 1)).tobytes() == np.asarray(_in_pairs(even, odd, 1)).tobytes()


def test_elements_repeated_by_sums() -> None:
    x = jnp.asarray(RANDOM.normal(size=(3, 4)), "float32")
    np.testing.assert_array_equal(_repeated_by_sums(x, (2, 3)), _repeated(x, (2, 3)))


@pytest.mark.full
@pytest.mark.parametrize("selects", [ge, le])
@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [((3, 3), (2, 2), ((0, 1), (0, 1))), ((2, 3), (1, 2), ((1, 1), (0, 2))), ((2, 2), (3, 3), ((0, 0), (-1, 1)))],
)
def test_cotangents_scattered_by_slices(window: Any, strides: Any, padding: Any, selects: Any) -> None:
    x = jnp.asarray(RANDOM.integers(0, 4, (7, 9)), "float32")
    windows = WindowPositions(window, strides, padding)
    counts = [(low + n + high - k) // s + 1 for n, k, s, (low, high) in zip(x.shape, *windows, strict=True)]
    source = jnp.asarray(RANDOM.normal(size=counts), "float32")
    params = {"window_dimensions": window, "window_strides": strides, "padding": padding}
    expected = select_and_scatter_add_p.bind(source, x, select_prim=selects, **params)
    np.testing.assert_allclose(_by_views(selects, windows, source, x), expected, rtol=1e-5, atol=1e-6)


def test_the_comparator_of_sorts_has_one_zero_and_one_nan() -> None:
    values = np.array([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan, -np.nan], np.float32)
    ranks = np.array([0, 1, 2, 2, 3, 4, 5, 5])
    x, y = jnp.asarray(values)[:, None] + jnp.zeros((8, 8)), jnp.asarray(values)[None, :] + jnp.zeros((8, 8))
    np.testing.assert_array_equal(_comparator(x, y), ranks[:, None] < ranks[None, :])
    np.testing.assert_array_equal(_comparator(x * 0, y * 0, x, y)[1:5, 1:5], ranks[1:5, None] < ranks[None, 1:5])
