"""Convolutions of few features by long windows on the CPU: values and gradients are those of XLA's own operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.signal

import xlamini as jax
import xlamini.numpy as jnp
from tests.support.cpu_forms import Spy, in_order, with_and_without
from xlamini.primitives.forms.cpu.windows import runs
from xlamini.primitives.windows import convolution

TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
DTYPES = tuple(TOLERANCE)
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 10))]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spy]:
    jax.clear_caches()
    monkeypatch.setattr(runs, "_LEAST_PRODUCTS", 0)
    with jax.enable_x64(True):
        yield Spy(monkeypatch, (convolution, "_CHOICES"))
    jax.clear_caches()


def assert_same(one: Any, other: Any) -> None:
    assert one.dtype == other.dtype
    tolerance = TOLERANCE[str(one.dtype)]
    scale = float(jnp.nanmax(jnp.abs(other)))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_filter_of_a_signal_and_its_gradients(spy: Spy, seed: int) -> None:
    """Strides, groups, padding of both signs; any order of dimensions."""
    rng = np.random.default_rng(seed)
    groups, stride, given, outputs = (int(n) for n in rng.integers(1, 4, 4))
    x_shape, kernel_shape = (2, groups * given, 290), (groups * outputs, given, 70)
    specs = [tuple(rng.permutation(3).tolist()) for _ in "lro"]
    params = {"window_strides": [stride], "padding": [rng.integers(-5, 40, 2).tolist()], "feature_group_count": groups}
    compare(rng, spy, DTYPES[int(rng.integers(2))], x_shape, kernel_shape, specs, params)
    assert "toeplitz" in spy.used


@pytest.mark.parametrize("seed", SEEDS)
def test_a_filter_of_images_and_its_gradients(spy: Spy, seed: int) -> None:
    """The window is long in either dimension; the other one has strides and holes."""
    rng = np.random.default_rng(seed)
    along, groups = int(rng.integers(2)), int(rng.integers(1, 3))
    size, window, stride, hole = [14, 14], [7, 7], [1, 1], [1, 1]
    size[along], window[along], stride[1 - along], hole[1 - along] = 80, 20, 2, int(rng.integers(1, 3))
    specs = [tuple(rng.permutation(4).tolist()) for _ in "lro"]
    padding = rng.integers(0, 9, (2, 2)).tolist()
    params = {"window_strides": stride, "padding": padding, "rhs_dilation": hole, "feature_group_count": groups}
    compare(rng, spy, DTYPES[int(rng.integers(2))], (2, groups, *size), (2 * groups, 1, *window), specs, params)
    assert "toeplitz" in spy.used


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradient_of_a_short_kernel(spy: Spy, seed: int) -> None:
    """Its window is the cotangent, in a plane or not, with holes for the stride."""
    rng = np.random.default_rng(seed)
    rank, stride = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    shapes = (2, 1, *(9,) * (rank - 1), 300), (3, 1, *(2,) * (rank - 1), 5)
    specs = [tuple(rng.permutation(rank + 2).tolist()) for _ in "lro"]
    params = {"window_strides": [2] * (rank - 1) + [stride], "padding": rng.integers(0, 2, (rank, 2)).tolist()}
    compare(rng, spy, "float32" if rank == 2 else "float64", *shapes, specs, params)
    assert "im2col" in spy.used


def compare(rng: Any, spy: Spy, dtype: str, x_shape: Any, kernel_shape: Any, specs: Any, params: Any) -> None:
    shapes = zip((x_shape, kernel_shape), specs, strict=False)
    x, kernel = (jnp.asarray(rng.standard_normal(in_order(shape, spec)), dtype) for shape, spec in shapes)
    for one, other in with_and_without(spy, x, kernel, specs, params):
        assert_same(one, other)


@pytest.mark.full
def test_convolve_and_correlate_of_long_signals(spy: Spy) -> None:
    rng = np.random.default_rng(0)
    x, kernel, image, blur = (rng.standard_normal(shape) for shape in ((500,), (200,), (60, 50), (15, 17)))
    pairs = np.stack([x, x[::-1]]), np.stack([kernel, kernel**2])

    def assert_by_runs(fun: Any, operands: Any, expected: Any) -> None:
        spy.used.clear()
        assert_same(jax.jit(fun)(*operands), jnp.asarray(expected))
        assert "toeplitz" in spy.used

    assert_by_runs(jnp.convolve, (x, kernel), np.convolve(x, kernel))
    assert_by_runs(jnp.correlate, (x, kernel), np.correlate(x, kernel))
    assert_by_runs(jax.scipy.signal.convolve2d, (image, blur), scipy.signal.convolve2d(image, blur))
    assert_by_runs(jax.vmap(jnp.convolve), pairs, [np.convolve(*pair) for pair in zip(*pairs, strict=True)])


def test_small_ones_are_left_to_xla() -> None:
    """They would take longer to compile."""

    def forms(size: int) -> int:
        return jax.jit(jnp.convolve).lower(np.ones(size, np.float32), np.ones(200, np.float32)).as_text().count("case")

    assert [forms(10_000), forms(40_000)] == [0, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_windows(spy: Spy, bad: float) -> None:
    x, kernel = np.ones(400), np.ones(50)
    x[200] = bad
    found = np.asarray(jax.jit(jnp.convolve)(x, kernel))
    assert spy.used
    np.testing.assert_array_equal(np.flatnonzero(~np.isfinite(found)), np.arange(200, 250))
