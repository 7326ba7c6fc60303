"""Running results and places of extrema where the CPU computes them in blocks, against NumPy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.primitives.forms.cpu.loops import block_extrema, blocked_scan
from xlamini.primitives.reductions import arg_extrema, cumulative

pytestmark = pytest.mark.usefixtures("optimized")

SIZES = [5, 4095, 4097, 16411]
DTYPES = ["int8", "uint16", "int32", "float16", "bfloat16", "float32"]
REFERENCE: dict[str, Callable[..., Any]] = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}


def numbers(shape: Any, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng(seed).integers(-9, 10, shape)
    return draws.astype(jnp.dtype(dtype))


def running(name: str, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    turned = (lambda x: np.flip(x, axis)) if reverse else (lambda x: x)
    return turned(REFERENCE[name](turned(x), axis=axis))


# --- places of extrema


def places(name: str, x: np.ndarray, axis: int, dtype: Any = np.int32) -> Any:
    return xlamini.jit(lambda x: getattr(lax, name)(x, axis, dtype))(x)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("size", [27, 4095, 4096, 10007])
def test_place_along_a_row_with_many_ties(name: str, size: int) -> None:
    x = numbers(size)
    assert int(places(name, x, 0)) == getattr(np, name)(x)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_only_one_place_holds_the_extremum(name: str) -> None:
    found = xlamini.jit(lambda x: getattr(lax, name)(x, 0, np.int32))
    for at in (0, 1, 63, 64, 4999, 9936, 10005, 10006):
        x = np.zeros(10007, np.float32)
        x[at] = 1 if name == "argmax" else -1
        assert int(found(x)) == at


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
@pytest.mark.parametrize(("shape", "axis"), [((7, 700), 1), ((3, 700, 5), 1)])
def test_places_of_all_dtypes_and_axes(name: str, dtype: str, shape: tuple[int, ...], axis: int) -> None:
    x = numbers(shape, dtype)
    np.testing.assert_array_equal(places(name, x, axis), getattr(np, name)(x.astype(np.float64), axis))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("holes", [[4999], [300, 20, 4000]])
def test_the_first_nan_is_the_extremum(name: str, holes: list[int]) -> None:
    x = numbers(5000)
    x[holes] = np.nan
    x[10], x[11] = np.inf, -np.inf
    assert int(places(name, x, 0)) == min(holes)
    rows = np.stack([numbers(5000), x])
    np.testing.assert_array_equal(places(name, rows, 1), getattr(np, name)(rows, 1))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 0.0])
def test_of_equal_elements_the_first(value: float) -> None:
    x = np.full((3, 4099), value, np.float32)
    x[:, ::2] = value if value else -0.0
    np.testing.assert_array_equal(places("argmax", x, 1), 0)
    np.testing.assert_array_equal(places("argmin", x, 1), 0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
def test_dtypes_of_the_place(dtype: Any) -> None:
    x = numbers((40, 120))
    found = places("argmax", x, 1, dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.argmax(x, 1))


@pytest.mark.full
def test_places_in_64_bits() -> None:
    with xlamini.enable_x64(True):
        for dtype in (np.int64, np.uint64, np.float64):
            x = numbers((3, 5000), dtype) if dtype != np.uint64 else np.abs(numbers((3, 5000), np.int64)).astype(dtype)
            found = places("argmin", x, 1, np.int64)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, np.argmin(x, 1))
        large = np.array([2**62, 2**62 + 1] * 3000)
        assert int(jnp.argmax(large)) == 1


@pytest.mark.full
def test_places_within_other_programs() -> None:
    x = numbers((6, 5000))
    shifted = xlamini.jit(lambda x: jnp.argmax(jnp.sin(x) * 2 + x, axis=1) + jnp.argmin(-x))(x)
    np.testing.assert_array_equal(shifted, np.argmax(np.sin(x) * 2 + x, 1) + np.argmin(-x))
    np.testing.assert_array_equal(xlamini.vmap(jnp.argmax)(x), np.argmax(x, 1))
    np.testing.assert_array_equal(xlamini.vmap(jnp.argmax, in_axes=1)(x.T), np.argmax(x, 1))
    gradient = xlamini.grad(lambda x: x[jnp.argmax(x)])(x[0])
    np.testing.assert_array_equal(np.flatnonzero(gradient), [np.argmax(x[0])])


def test_extrema_of_empty_batches() -> None:
    assert places("argmax", np.zeros((0, 5000), np.float32), 1).shape == (0,)


@pytest.mark.parametrize("n", [28, 29, 64, 97, 1000, 999_983, 1_000_000, 2**20])
def test_blocks_of_a_row_cover_it(n: int) -> None:
    size = block_extrema.block_size(n)
    assert 2 <= size <= n
    assert size * size < 20 * n < 400 * size * size


# --- running results


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["cumsum", "cummax", "cummin"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_running_results_along_a_row(name: str, reverse: bool, size: int) -> None:
    x = numbers(size, seed=size)
    found = xlamini.jit(lambda x: getattr(lax, name)(x, 0, reverse))(x)
    np.testing.assert_array_equal(found, running(name, x, 0, reverse))


SHAPES = [((2, 5000), 1), ((1, 2100, 3), 1), ((131, 67), 0), ((1009, 6), 1)]


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_running_results_along_any_axis(name: str, reverse: bool, shape: tuple[int, ...], axis: int) -> None:
    x = 1 + numbers(shape) / 1000 if name == "cumprod" else numbers(shape)
    x = x.astype(np.float32)
    expected = running(name, x.astype(np.float64), axis, reverse)
    np.testing.assert_allclose(getattr(lax, name)(x, axis, reverse), expected, rtol=3e-6, atol=1e-6)


@pytest.mark.sample(24)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_running_results_of_all_dtypes(name: str, dtype: str) -> None:
    x = numbers((3, 3000), dtype)
    if name == "cumprod":
        x = np.where(np.arange(3000) % 500 < 20, 1 + np.abs(x) % 2, 1).astype(x.dtype)
    if name == "cumsum":
        x[:, 9:] = (x[:, 9:].astype(np.float64) * (np.arange(2991) % 300 == 0)).astype(x.dtype)
    found = np.asarray(getattr(lax, name)(x, axis=1))
    assert found.dtype == x.dtype
    with np.errstate(over="ignore"):
        expected = running(name, x if x.dtype.kind in "iu" else x.astype(np.float64), 1, False).astype(x.dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.full
def test_running_results_of_complex_numbers() -> None:
    x = numbers((2, 3000)) + 1j * numbers((2, 3000), seed=1)
    np.testing.assert_allclose(lax.cumsum(x.astype(np.complex64), 1), np.cumsum(x, 1))
    turns = np.exp(1j * numbers(5000)).astype(np.complex64)
    np.testing.assert_allclose(lax.cumprod(turns), np.cumprod(turns.astype(complex)), atol=3e-5)


@pytest.mark.full
def test_running_results_in_64_bits() -> None:
    with xlamini.enable_x64(True):
        x = numbers((3, 5000), np.int64) * 2**40
        np.testing.assert_array_equal(lax.cumsum(x, 1), np.cumsum(x, 1))
        np.testing.assert_array_equal(lax.cummin(x, 1), np.minimum.accumulate(x, 1))
        x = np.random.default_rng(0).random(100_000)
        np.testing.assert_allclose(lax.cumsum(x), np.cumsum(x), rtol=1e-13)


@pytest.mark.parametrize("name", ["cummax", "cummin", "cumsum", "cumprod", "cumlogsumexp"])
def test_special_values_go_on_to_the_end_only(name: str) -> None:
    for value in (np.nan, np.inf, -np.inf):
        for at in (0, 63, 64, 100, 4999):
            x = 1 + numbers(5000) / 1000
            x[at] = value
            with np.errstate(invalid="ignore"):
                expected = running(name, x.astype(np.float64), 0, False)
            np.testing.assert_allclose(getattr(lax, name)(x.astype(np.float32)), expected, rtol=1e-4)


@pytest.mark.full
def test_logarithms_of_sums_far_apart() -> None:
    x = np.linspace(-3000, 3000, 5000).astype(np.float32)
    np.testing.assert_allclose(lax.cumlogsumexp(x), np.logaddexp.accumulate(x.astype(float)), rtol=1e-6)
    none = np.full(5000, -np.inf, np.float32)
    np.testing.assert_array_equal(lax.cumlogsumexp(none), none)


@pytest.mark.full
def test_running_sums_are_as_precise_as_a_tree() -> None:
    x = np.random.default_rng(0).random(1_000_000).astype(np.float32)
    error = np.abs(np.asarray(lax.cumsum(x)) - np.cumsum(x, dtype=np.float64))
    assert np.max(error / np.cumsum(x, dtype=np.float64)) < 4e-7  # a loop over all of them: 2e-5
    factors = (1 + np.random.default_rng(0).standard_normal(1_000_000) / 1000).astype(np.float32)
    exact = np.cumprod(factors, dtype=np.float64)
    assert np.max(np.abs(np.asarray(lax.cumprod(factors)) / exact - 1)) < 3.1e-4  # JAX 0.10.2: 3.03e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_derivatives_of_running_results(name: str) -> None:
    weights = np.sin(np.arange(6000)) / 100

    def long(x: Any) -> Any:
        return jnp.sum(getattr(lax, name)(jnp.tile(x, 3), 0, True) * weights)

    # No two elements are as near to each other as the step is long.
    x = 0.999 + np.random.default_rng(0).permutation(2000) / 1e6
    direction = np.random.default_rng(1).uniform(-1, 1, 2000)
    with xlamini.enable_x64(True):
        _, forward = xlamini.jvp(long, (x,), (direction,))
        np.testing.assert_allclose(jnp.vdot(xlamini.grad(long)(x), direction), forward, rtol=1e-9)
        difference = (long(x + 1e-7 * direction) - long(x - 1e-7 * direction)) / 2e-7
        np.testing.assert_allclose(forward, difference, rtol=1e-4, atol=1e-5)


@pytest.mark.full
def test_batches_of_running_results() -> None:
    x = numbers((5, 3000))
    np.testing.assert_array_equal(xlamini.vmap(lax.cumsum)(x), np.cumsum(x, 1))
    np.testing.assert_array_equal(xlamini.vmap(lax.cummax, in_axes=1, out_axes=1)(x.T), np.maximum.accumulate(x.T, 0))


def test_running_results_in_a_loop() -> None:
    x = numbers(5000)
    summed, _ = xlamini.jit(lambda x: lax.scan(lambda c, _: (lax.cumsum(c) % 7, None), x, None, 3))(x)
    expected = x
    for _ in range(3):
        expected = np.cumsum(expected) % 7
    np.testing.assert_array_equal(summed, expected)


@pytest.mark.parametrize("name", REFERENCE)
def test_running_results_of_nothing(name: str) -> None:
    for shape, axis in (((0,), 0), ((0, 5000), 1), ((5000, 0), 0)):
        assert getattr(lax, name)(np.zeros(shape, np.float32), axis).shape == shape


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
@pytest.mark.parametrize("n", [1, 64, 65, 67, 1000, 4096, 999_983, 1_000_000])
def test_blocks_of_an_axis_cover_it(n: int, lanes: int) -> None:
    for outer in (1, 3, 16):
        blocks, size = blocked_scan.blocks_of(outer, n, lanes)
        assert n <= blocks * size
        assert size <= 80
        assert blocks * size - n < max(n, 64 * lanes + 1)


# --- what they lower to


def text(fun: Callable[..., Any], *shape: int) -> str:
    return xlamini.jit(fun).lower(np.ones(shape, np.float32)).as_text()


def test_the_cpu_gets_blocks_where_they_pay() -> None:
    assert text(lax.cumsum, cumulative.MANY).count("stablehlo.while") == 1
    assert "stablehlo.while" not in text(lax.cumsum, cumulative.MANY - 1)
    assert "stablehlo.while" not in text(lambda x: lax.cumsum(x, 1), 5000, cumulative.SHORT)
    assert text(jnp.argmax, arg_extrema.FEW).count("stablehlo.optimization_barrier") == 1
    assert "optimization_barrier" not in text(jnp.argmax, arg_extrema.FEW - 1)
    assert "optimization_barrier" not in text(lambda x: jnp.argmax(x, 1), 5000, arg_extrema.SHORT - 1)
