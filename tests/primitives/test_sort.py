"""Order: stability, zeros and NaNs, keys of every dtype and several keys, derivatives, errors by their text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

SIZES = [7, 50]  # sorted with a comparator, and packed


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("x64", [False, True])
def test_zeros_are_equal_and_nans_last(size: int, x64: bool) -> None:
    with xlamini.enable_x64(x64):
        x = np.resize([0.0, -0.0, np.nan, -1, -np.nan, np.inf, -np.inf], size).astype(float if x64 else np.float32)
        found = np.asarray(lax.sort(x))
    expected = x[np.argsort(x, kind="stable")]
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "dtype", "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64".split()
)
def test_every_dtype_stably(dtype: str, size: int) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(size)
    x = rng.integers(-5, 6, (size, 2)).astype(kind)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        x[:4, 0] = [limits.max, limits.min, limits.max, limits.min]
    with xlamini.enable_x64(True):
        np.testing.assert_array_equal(jnp.sort(x, axis=0), np.sort(x, axis=0))
        np.testing.assert_array_equal(jnp.argsort(x, axis=0), np.argsort(x, axis=0, kind="stable"))


def test_several_keys() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, 60).astype(np.float32), rng.integers(0, 4, 60)
    order = np.lexsort((second, first))
    *_, found = lax.sort((first, second, np.arange(60)), num_keys=2)
    np.testing.assert_array_equal(found, order)
    np.testing.assert_array_equal(jnp.lexsort((second, first)), order)


def test_descending_keeps_the_order_of_equals() -> None:
    x = np.array([3, 1, 2, 1])
    np.testing.assert_array_equal(jnp.sort(x, descending=True), [3, 2, 1, 1])
    np.testing.assert_array_equal(jnp.argsort(x, descending=True), [0, 2, 1, 3])
    np.testing.assert_array_equal(jnp.sort(x.reshape(2, 2), axis=None), [1, 1, 2, 3])


@pytest.mark.parametrize("size", SIZES)
def test_derivative_follows_the_elements_in_both_orders_with_vmap(size: int) -> None:
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal((3, size)).astype(np.float32) for _ in range(2))
    expected = np.take_along_axis(weights, np.argsort(np.argsort(x, 1), 1), 1)

    def scalar(x: Any, weights: Any) -> Any:
        return jnp.sum(jnp.sort(x) * weights)

    np.testing.assert_array_equal(xlamini.vmap(xlamini.grad(scalar))(x, weights), expected)
    whole = xlamini.grad(lambda x: jnp.sum(xlamini.vmap(scalar)(x, weights)))(x)
    np.testing.assert_array_equal(whole, expected)


def test_a_long_axis_is_sorted_as_plain_integers_on_the_cpu() -> None:
    text = xlamini.jit(lax.sort).lower(np.ones(1000, np.float32)).as_text()
    assert "tensor<1000xi64>" in text
    assert "stablehlo.gather" in text


def test_top_k() -> None:
    values, indices = lax.top_k(np.array([1, np.nan, 3, 3], np.float32), 3)
    np.testing.assert_array_equal(values, [np.nan, 3, 3])
    np.testing.assert_array_equal(indices, [1, 2, 3])
    x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    values, indices = lax.top_k(x, 2, axis=0)
    np.testing.assert_array_equal(indices, np.argsort(-x, 0, kind="stable")[:2])
    np.testing.assert_array_equal(xlamini.vmap(lambda row: lax.top_k(row, 2)[0], in_axes=1)(x), np.asarray(values).T)
    gradient = xlamini.grad(lambda x: jnp.sum(lax.top_k(x, 2)[0]))(x[0])
    np.testing.assert_array_equal(gradient, np.argsort(np.argsort(-x[0])) < 2)


X = np.ones((2, 3), np.float32)
ERRORS: list[tuple[Callable[[], Any], type, str]] = [
    (lambda: jnp.sort(X, axis=2), ValueError, "sort: axis 2 is out of range for an array of rank 2; it takes -2 to 1"),
    (lambda: jnp.sort(np.float32(1)), ValueError, "sort: axis -1 is out of range for an array of rank 0"),
    (lambda: jnp.argsort(X, kind="stable"), TypeError, "argsort: `kind` and `order` must be None; ask for stable=True"),
    (lambda: jnp.lexsort((X, X[0])), TypeError, "lexsort: the keys must share one shape, got [(2, 3), (3,)]"),
    (lambda: lax.sort(()), TypeError, "sort: there is no operand"),
    (lambda: lax.sort((X, X[0])), TypeError, "sort: the operands must share one shape, got f32[2,3], f32[3]"),
    (lambda: lax.sort(X, dimension=2), TypeError, "sort: dimension 2 does not fit f32[2,3]; it takes 0 to 1"),
    (lambda: lax.sort((X, X), num_keys=3), ValueError, "sort: num_keys is 3, but there are 2 operands; give 1 to 2"),
    (lambda: lax.top_k(X, 4), TypeError, "top_k: k is 4, but axis 1 of f32[2,3] has 3 elements"),
    (lambda: lax.top_k(X, 1, axis=2), TypeError, "top_k: axis 2 does not fit f32[2,3]"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()
