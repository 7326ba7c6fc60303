"""Norms and statistics of numbers whose squares are out of range, in all float dtypes, and their derivatives at 0."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini as xl
import xlamini.numpy as jnp
from xlamini import nn, random

norm = jnp.linalg.norm
SCALES = {"float16": [100, 1e-4], "bfloat16": [1e25, 1e-25], "float32": [1e25, 1e-25], "complex64": [1e25, 1e-25]}
SCALES["float64"] = SCALES["complex128"] = [1e200, 1e-200]
CASES = [(dtype, scale) for dtype, scales in SCALES.items() for scale in [*scales, 1.0]]
CLOSE = {"float16": 2e-3, "bfloat16": 1e-2, "float64": 1e-14, "complex128": 1e-14}


def sample(dtype: str, scale: float) -> Any:
    x = np.array([[3.0, 4, 0], [-1, 2, 5]]) * scale
    return jnp.asarray(x * (0.6 + 0.8j) if "complex" in dtype else x, dtype)


def exact(x: Any) -> Any:
    return np.asarray(x).astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)


@pytest.mark.parametrize(("dtype", "scale"), CASES)
@pytest.mark.parametrize("order", [None, 2, 3, 0.5, -2, 1, np.inf])
def test_norms_of_rows(order: Any, dtype: str, scale: float) -> None:
    with xl.enable_x64(dtype in ("float64", "complex128")):
        x = sample(dtype, scale)[1:]
        wanted = np.linalg.norm(exact(x), order, axis=1).astype(float)
        function = lambda x: norm(x, order, axis=1)
        for found in (function(x), xl.jit(function)(x), xl.vmap(lambda x: norm(x, order))(x)):
            np.testing.assert_allclose(np.asarray(found, float), wanted, rtol=CLOSE.get(dtype, 1e-6))
        whole = np.asarray(xl.grad(lambda x: norm(x, order))(x[0])).astype(complex)
        unit = xl.grad(lambda x: norm(x, order))(sample(dtype.replace("b", "").replace("16", "32"), 1.0)[1])
        np.testing.assert_allclose(whole, unit, rtol=20 * CLOSE.get(dtype, 1e-6))


@pytest.mark.parametrize(("dtype", "scale"), CASES)
def test_norms_of_matrices(dtype: str, scale: float) -> None:
    with xl.enable_x64(dtype in ("float64", "complex128")):
        x = sample(dtype, scale)
        wanted = np.sqrt((abs(exact(x)) ** 2).sum()).astype(float)
        for found in (norm(x), norm(x, "fro"), jnp.linalg.matrix_norm(x), jnp.linalg.vector_norm(x)):
            np.testing.assert_allclose(float(found), wanted, rtol=CLOSE.get(dtype, 1e-6))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_norms_of_copies_of_one_number(count: int, dtype: str) -> None:
    """XLA rewrites squares of products by constants where the sum has one term, or terms that are alike."""
    with xl.enable_x64(dtype in ("float64", "complex128")):
        for scale in (0, *SCALES[dtype], np.inf):
            x = jnp.asarray(scale, dtype)
            for copies in (lambda x: jnp.full(count, x), lambda x: jnp.stack([x] * count)):
                found = xl.jit(lambda x, copies=copies: norm(copies(x)))(x)
                np.testing.assert_allclose(found, np.longdouble(scale) * np.sqrt(count), rtol=1e-6)


def test_many_rows_of_which_some_are_out_of_range() -> None:
    x = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    x *= np.float32([[1e-30], [1], [1e30], [0]] * 125)
    wanted = np.linalg.norm(x.astype(float), axis=1)
    np.testing.assert_allclose(norm(x, axis=1), wanted, rtol=1e-6)
    shares = x / np.where(wanted == 0, 1, wanted)[:, None]
    np.testing.assert_allclose(xl.vmap(xl.grad(norm))(x), shares, atol=1e-6)


@pytest.mark.parametrize("order", [None, 2, 3, 0.5, 1, np.inf, "nuc", "fro"])
def test_the_gradient_at_zero_is_finite(order: Any) -> None:
    gradient = xl.grad(lambda x: norm(x, order))(jnp.zeros((2, 2)) if isinstance(order, str) else jnp.zeros(2))
    assert jnp.isfinite(gradient).all()
    if order not in (1, np.inf):
        assert not gradient.any()


CONSTANT: dict[str, Callable[[Any], Any]] = {
    "square of a norm": lambda x: norm(x * jnp.zeros(2)) ** 2,
    "pairs": lambda x: norm((x * jnp.ones((3, 2)))[:, None] - (x * jnp.ones((3, 2)))[None], axis=-1).sum(),
    "std": lambda x: jnp.std(x * jnp.ones(4)),
    "nanstd": lambda x: jnp.nanstd(jnp.append(x * jnp.ones(2), jnp.nan)),
    "angle": lambda x: jnp.arctan2(0 * x, 0 * x),
    "spectral norm": lambda x: norm(x * jnp.zeros((2, 2)), 2),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_the_derivative_where_a_length_is_zero(name: str) -> None:
    assert float(xl.grad(CONSTANT[name])(1.0)) == 0
    assert float(xl.jvp(CONSTANT[name], (1.0,), (1.0,))[1]) == 0
    assert np.isfinite(xl.grad(xl.grad(CONSTANT[name]))(1.0))


def test_second_derivatives_of_a_long_vector() -> None:
    unit = np.array([0.6, 0.8])
    found = xl.hessian(norm)(jnp.array([3e25, 4e25])) * 5e25
    np.testing.assert_allclose(found, np.eye(2) - np.outer(unit, unit), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e25, 1e-25])
def test_the_angle_of_far_and_near_points(scale: float) -> None:
    found = xl.grad(jnp.arctan2, (0, 1))(jnp.float32(3 * scale), jnp.float32(4 * scale))
    np.testing.assert_allclose(found, np.array([0.16, -0.12]) / scale, rtol=1e-6)


def test_deviations_whose_squares_are_out_of_range() -> None:
    for dtype, scale in {"float16": 100, "bfloat16": 1e25, "float32": 1e25}.items():
        x = jnp.asarray(np.array([3, -3, 1]) * scale, dtype)
        wanted = np.std(np.asarray(x).astype(np.longdouble)).astype(float)
        close = CLOSE.get(dtype, 1e-6)
        some = jnp.std(jnp.append(x, x[:1]), where=jnp.arange(4) < 3)
        for found in (jnp.std(x), jnp.nanstd(x), xl.jit(jnp.std)(x), some):
            np.testing.assert_allclose(float(found), wanted, rtol=close)
        other = jnp.stack([x, x[::-1]])
        correlations = np.corrcoef(np.asarray(other).astype(np.longdouble)).astype(float)
        np.testing.assert_allclose(np.asarray(jnp.corrcoef(other), float), correlations, rtol=2 * close)


def test_averages_and_covariances_of_halves() -> None:
    x = jnp.array([300.0, 200, 250], "float16")
    assert float(jnp.average(x, weights=x)) == np.float16(np.average([300.0, 200, 250], weights=[300, 200, 250]))
    np.testing.assert_allclose(float(jnp.cov(x)), 2500, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_standardize_where_the_mean_is_large(dtype: str) -> None:
    base = {"float16": 1000, "bfloat16": 64, "float32": 1e4}[dtype]
    x = jnp.asarray(base + np.arange(4.0), dtype)
    wanted = (np.arange(4) - 1.5) / np.std(np.arange(4))
    for algorithm in ("fast", "stable"):
        found = nn.standardize(x, epsilon=0.0, algorithm=algorithm)
        np.testing.assert_allclose(np.asarray(found, float), wanted, rtol=CLOSE.get(dtype, 1e-5))
    far = nn.standardize(jnp.array([300.0, -300, 0], "float16"))
    np.testing.assert_allclose(np.asarray(far, float), np.array([1, -1, 0]) * 1.5**0.5, rtol=2e-3)


def test_ends_whose_difference_overflows() -> None:
    far = jnp.array([-3e38, 3e38])
    assert float(jnp.interp(0.5, far, jnp.array([1.0, 2.0]))) == 1.5
    assert float(jnp.interp(0.5, jnp.array([0.0, 1.0]), far)) == 0
    for low, high in ((-3e38, 3e38), (jnp.float32(-3e38), jnp.float32(3e38))):
        drawn = np.asarray(random.uniform(random.key(0), (1000,), minval=low, maxval=high), float)
        assert np.isfinite(drawn).all() and abs(drawn.mean()) < 2e37 and drawn.std() > 1.6e38
