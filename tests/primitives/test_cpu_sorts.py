"""Long rows on the CPU, which are sorted by digits: values, places, keys of every dtype, and the loops XLA makes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

pytestmark = pytest.mark.usefixtures("optimized")

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 complex128"
SHAPES = [(40_002,), (35, 1001)]  # an even row with wide digits, odd ones with narrow digits


def elements(dtype: str, shape: Any, seed: int = 0) -> np.ndarray:
    """Numbers of every size, with equal ones among them, NaNs, infinities, zeros of both signs and extremes."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 256, (*np.atleast_1d(shape), kind.itemsize), np.uint8).view(kind)[..., 0]
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    few = rng.integers(-3, 4, shape).astype(kind)
    if kind.kind in "iu":
        return np.where(rng.random(shape) < 0.5, bits, few)
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf]).astype(kind)
    chosen = np.where(rng.random(shape) < 0.5, rng.standard_normal(shape).astype(kind), few)
    return np.where(rng.random(shape) < 0.3, special[rng.integers(0, 6, shape)], chosen).astype(kind)


def plain(x: Any) -> np.ndarray:
    """As an array of NumPy's own dtypes."""
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x


def stable_order(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.argsort(plain(x), axis=axis, kind="stable")


def assert_same(found: Any, expected: Any) -> None:
    """Equal, the signs of zeros too."""
    x, y = plain(found), plain(expected)
    np.testing.assert_array_equal(x, y)
    if y.dtype.kind in "fc":
        np.testing.assert_array_equal(np.signbit(np.real(x))[y == 0], np.signbit(np.real(y))[y == 0])
        np.testing.assert_array_equal(np.signbit(np.imag(x))[y == 0], np.signbit(np.imag(y))[y == 0])


def sorted_plainly(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.take_along_axis(x, stable_order(x, axis), axis)


@pytest.mark.sample(30)
@pytest.mark.parametrize("shape", SHAPES, ids=len)
@pytest.mark.parametrize("dtype", DTYPES.split())
def test_values_and_places(dtype: str, shape: tuple[int, ...]) -> None:
    x = elements(dtype, shape)
    with xlamini.enable_x64(True):
        assert_same(jnp.sort(x), sorted_plainly(x))
        np.testing.assert_array_equal(jnp.argsort(x), stable_order(x))


@pytest.mark.full
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_every_axis(dtype: str, axis: int) -> None:
    x = elements(dtype, np.roll((6000, 2, 3), axis))
    assert_same(jnp.sort(x, axis=axis), sorted_plainly(x, axis))
    np.testing.assert_array_equal(jnp.argsort(x, axis=axis), stable_order(x, axis))


N = 40_001
ROWS = {
    "equal": np.full(N, 3.0, np.float32),
    "sorted": np.arange(N, dtype=np.float32),
    "backwards": -np.arange(N, dtype=np.float32),
    "close": np.float32(1) + np.arange(N, dtype=np.float32) % 7 * np.float32(2**-23),
    "subnormal": np.where(np.arange(N) % 2, 1, -1) * (np.arange(N, dtype=np.float32) * np.float32(2**-149)),
    "negative zeros": np.full(N, -0.0, np.float32),
    "nothing else": np.full(N, -np.nan, np.float32),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_special(name: str) -> None:
    assert_same(jnp.sort(ROWS[name]), np.sort(ROWS[name], kind="stable"))


def test_zeros_keep_their_order() -> None:
    x = np.where(np.arange(N) % 3 == 0, -0.0, np.where(np.arange(N) % 5 == 0, 0.0, np.arange(N) - N / 2.0))
    assert_same(jnp.sort(x.astype(np.float32)), sorted_plainly(x.astype(np.float32)))
    one = np.where(np.arange(N) == N - 1, -0.0, 0.0).astype(np.float32)
    assert_same(jnp.sort(one), one)


@pytest.mark.full
def test_several_keys_of_several_dtypes() -> None:
    first, second = elements("int8", N) // 16, elements("complex64", N)
    order = np.lexsort((stable_rank(second), first))
    *_, found = lax.sort((first, second, np.arange(N)), num_keys=2)
    np.testing.assert_array_equal(found, order)
    keys, values = lax.sort_key_val(first, second)
    np.testing.assert_array_equal(keys, np.sort(first))
    assert_same(values, second[stable_order(first)])


def stable_rank(x: np.ndarray) -> np.ndarray:
    """Numbers in the order of the elements, equal where these are."""
    ordered = sorted_plainly(x)
    same = (ordered[1:] == ordered[:-1]) | (np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    ranks = np.empty(len(x), int)
    ranks[stable_order(x)] = np.append(0, np.cumsum(~same))
    return ranks


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8", "int32"])
def test_many_largest(dtype: str) -> None:
    assert_largest(dtype, N, 5000)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float8_e5m2"])
def test_the_few_largest_of_narrow_elements(dtype: str) -> None:
    text = assert_largest(dtype, 300, 5)
    assert "f32" in text


def assert_largest(dtype: str, size: int, k: int) -> str:
    """Compares with an order by NumPy in which 0.0 is larger than -0.0; returns the program."""
    x = elements(dtype, size)
    x = np.where(np.isnan(plain(x)), np.asarray(1, x.dtype), x)
    step = xlamini.jit(lambda x: lax.top_k(x, k))
    values, places = step(x)
    backwards = np.lexsort((np.arange(size), np.signbit(plain(x)), -plain(x).astype(float)))[:k]
    np.testing.assert_array_equal(places, backwards)
    assert_same(values, x[backwards])
    return step.lower(x).as_text()


@pytest.mark.full
def test_nans_are_the_largest() -> None:
    x = np.zeros(N, np.float32)
    x[[5, 7, 9]] = [np.nan, np.inf, -np.nan]
    np.testing.assert_array_equal(lax.top_k(x, N)[1][:3], [5, 7, 0])
    assert int(lax.top_k(x, N)[1][-1]) == 9


@pytest.mark.full
def test_derivatives_follow_the_elements_in_both_orders_with_vmap() -> None:
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal((2, N)).astype(np.float32) for _ in range(2))
    expected = np.take_along_axis(weights, np.argsort(stable_order(x), 1), 1)

    def scalar(x: Any, weights: Any) -> Any:
        return jnp.sum(jnp.sort(x) * weights)

    np.testing.assert_array_equal(xlamini.vmap(xlamini.grad(scalar))(x, weights), expected)
    whole = xlamini.grad(lambda x: jnp.sum(xlamini.vmap(scalar)(x, weights)))(x)
    np.testing.assert_array_equal(whole, expected)
    rank = np.argsort(stable_order(x[0]))
    hessian_diagonal = xlamini.grad(lambda x: jnp.sum(xlamini.grad(lambda x: jnp.sum(jnp.sort(x) ** 3))(x)))(x[0])
    np.testing.assert_allclose(hessian_diagonal, 6 * np.sort(x[0])[rank], rtol=1e-6)


@pytest.mark.full
def test_inside_a_loop_and_a_branch() -> None:
    x = elements("int32", (3, N))

    def step(total: Any, row: Any) -> tuple[Any, Any]:
        ordered = lax.cond(total > 0, jnp.sort, lambda row: -jnp.sort(-row)[::-1], row)
        return total + 1, ordered[-1]

    _, largest = xlamini.jit(lambda x: lax.scan(step, 0, x))(np.abs(x // 2))
    np.testing.assert_array_equal(largest, np.abs(x // 2).max(1))


@pytest.mark.parametrize(
    ("size", "loops"), [((N,), 7), ((N // 1000 + 1, 1000), 8)], ids=["row", "rows"]
)
def test_xla_makes_native_loops(size: tuple[int, ...], loops: int) -> None:
    """Counting, adding up, three or four digits, finding and ordering zeros; the loop over rows has too large steps."""
    text = xlamini.jit(jnp.sort).lower(np.ones(size, np.float32)).compile().as_text()
    assert text.count('xla_cpu_small_call="true"') >= loops
    moved = [line for line in text.splitlines() if " copy(" in line and f"[{N + 1}]" in line]
    assert len(moved) <= 1


def test_short_rows_and_small_arrays_are_sorted_by_comparisons() -> None:
    for shape in ((1000,), (1000, 100)):
        assert "stablehlo.sort" in xlamini.jit(jnp.sort).lower(np.ones(shape, np.float32)).as_text()


@pytest.mark.full
@pytest.mark.parametrize("axis", [None, 0])
def test_distinct_values_eagerly_and_traced(axis: int | None) -> None:
    x = np.random.default_rng(0).integers(0, 50, 2 * N if axis is None else (N // 40, 2)).astype(np.float32)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    everything = {"return_index": True, "return_inverse": True, "return_counts": True, "axis": axis}
    count = len(expected[0])
    traced = xlamini.jit(lambda x: jnp.unique(x, size=count, **everything))(x)
    for found in (jnp.unique(x, **everything), traced):
        for part, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.ravel(part), np.ravel(wanted))
    for number, asked in enumerate(("return_index", "return_inverse", "return_counts"), 1):
        found = jnp.unique(x, axis=axis, **{asked: True})[1]
        np.testing.assert_array_equal(np.ravel(found), np.ravel(expected[number]))


def test_distinct_nans() -> None:
    x = np.array([np.nan, 1, np.nan, -0.0, 0.0], np.float32)
    np.testing.assert_array_equal(jnp.unique(x), [0, 1, np.nan])
    np.testing.assert_array_equal(jnp.unique(x, equal_nan=False), [0, 1, np.nan, np.nan])
    values, counts = jnp.unique_counts(x)
    np.testing.assert_array_equal(counts, [2, 1, 1, 1])
    assert values.dtype == np.float32
    assert jnp.unique(np.arange(3), return_inverse=True)[1].dtype == np.int32
