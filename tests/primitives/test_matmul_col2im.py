"""Convolutions to few features on the CPU: values and gradients are those of XLA's own operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from tests.support.cpu_forms import Spy, in_order, with_and_without
from xlamini import lax
from xlamini.primitives.forms.cpu.windows import matmul_col2im
from xlamini.primitives.windows import convolution
from xlamini.primitives.windows.cpu_compiler import prefers_eigen

SEEDS = [0, 3, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, *range(4, 18)))]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spy]:
    jax.clear_caches()
    yield Spy(monkeypatch, (convolution, "_CHOICES"))
    jax.clear_caches()


@pytest.mark.parametrize("seed", SEEDS)
def test_signals_images_and_volumes(spy: Spy, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Holes in the operand and the kernel, padding of both signs, all images at once or in parts."""
    rng = np.random.default_rng(seed)
    rank = 1 + seed // 2 % 3
    monkeypatch.setattr(matmul_col2im, "_SHARES", (0, int(rng.choice([1, 2**22]))))
    monkeypatch.setattr(matmul_col2im, "_LIMITS", dict.fromkeys((1, 2, 3), matmul_col2im._ShareLimits(4, 10**6)))
    base, holes, window = (rng.integers(1, most, rank).tolist() for most in (4, 3, 4))
    window[0] += 3
    params = {
        "window_strides": [1] * rank,
        "padding": rng.integers(*((3, 6) if seed % 2 else (-2, 1)), (rank, 2)).tolist(),
        "lhs_dilation": base,
        "rhs_dilation": holes,
    }
    space = list(range(2, rank + 2))
    specs = [(0, 1, *space), *(tuple(rng.permutation(rank + 2).tolist()) for _ in "ro")]
    sizes = (rng.integers(6, 9, rank) + [12, 6, 6][rank - 1]).tolist()
    shapes = (4, 40, *sizes), (int(rng.integers(1, 4)), 40, *window)
    pairs = zip(shapes, specs, strict=False)
    x, kernel = (rng.standard_normal(in_order(shape, spec), np.float32) for shape, spec in pairs)
    for one, other in with_and_without(spy, x, kernel, specs, params):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * float(jnp.abs(other).max()))
    assert "matmul_col2im" in spy.used


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_a_last_layer_and_an_input_gradient_in_other_dtypes(spy: Spy, dtype: str) -> None:
    """Of bfloat16 the products are added in float32."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x, last = rng.integers(-3, 4, (2, 16, 9, 7)).astype(dtype), rng.integers(-3, 4, (3, 16, 3, 3)).astype(dtype)
        ct, first = rng.integers(-3, 4, (2, 16, 5, 4)).astype(dtype), rng.integers(-3, 4, (16, 3, 5, 5)).astype(dtype)

        def both(x: Any, last: Any, ct: Any, first: Any) -> list[Any]:
            def strided(x: Any) -> Any:
                return lax.conv_general_dilated(x, first, (2, 2), [(2, 2), (2, 2)])

            out = lax.conv(x, last, (1, 1), "SAME")
            return [out, jax.vjp(strided, out)[1](ct)[0]]

        ours = jax.jit(both)(x, last, ct, first)
        assert spy.used.count("matmul_col2im") == 2
        spy.without()
        for one, other in zip(ours, jax.jit(lambda *xs: both(*xs))(x, last, ct, first), strict=True):
            assert one.dtype == dtype
            np.testing.assert_array_equal(np.asarray(one, float), np.asarray(other, float))


def test_what_is_not_finite_stays_in_its_windows(spy: Spy) -> None:
    """A NaN in the operand; an infinite weight, which is NaN where it meets padding."""
    x, kernel = np.ones((1, 48, 48), np.float32), np.ones((1, 48, 3), np.float32)
    x[0, 0, 5], kernel[0, 3, 0] = np.nan, np.inf
    ones = np.ones_like(kernel)
    convolve = jax.jit(lambda x, kernel: lax.conv(x, kernel, (1,), "SAME"))
    bad = np.asarray(convolve(x, ones))
    infinite = np.asarray(convolve(np.ones_like(x), kernel))
    assert "matmul_col2im" in spy.used
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(bad)), [4, 5, 6])
    np.testing.assert_array_equal(infinite[0, 0], [np.nan, *[np.inf] * 47])


def test_what_it_does_not_fit(spy: Spy) -> None:
    """Many outputs or taps, few features, strides, images with their features last, which XLA reads as fast."""

    def last(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    x = jnp.ones((1, 16, 12, 12))
    lax.conv(x, jnp.ones((9, 16, 3, 3)), (1, 1), "SAME")
    lax.conv(x, jnp.ones((3, 16, 9, 9)), (1, 1), "SAME")
    lax.conv(x[:, :15], jnp.ones((4, 15, 3, 3)), (1, 1), "SAME")
    lax.conv(x, jnp.ones((3, 16, 3, 3)), (2, 2), "SAME")
    last(jnp.ones((1, 12, 12, 16)), jnp.ones((3, 3, 16, 3)))
    assert "matmul_col2im" not in spy.used
    lax.conv(x, jnp.ones((3, 16, 3, 3)), (1, 1), "SAME")
    assert "matmul_col2im" in spy.used


def test_parts_are_neither_tiny_nor_huge() -> None:
    """Of 127 images, a prime, one is computed at a time; each must be worth an iteration of the loop."""
    specs = lax.ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
    params = {"lhs_dilation": (1, 1), "window_strides": (1, 1), "feature_group_count": 1, "batch_group_count": 1}

    def fits(images: int, side: int, taps: int) -> bool:
        x, kernel = (jax.ShapeDtypeStruct(s, "float32") for s in ((images, 16, side, side), (3, 16, taps, taps)))
        avals = jax.make_jaxpr(lambda *xs: xs)(x, kernel).in_avals
        return matmul_col2im.fits(*avals, dimension_numbers=specs, preferred_element_type=None, **params)

    assert [fits(2, 8, 3), fits(8191, 8, 3), fits(8192, 8, 3), fits(1, 400, 7)] == [True, False, True, False]


def test_no_library_is_chosen_for_it() -> None:
    """A convolution that either library computes decides alone."""
    x, kernel, last = jnp.ones((8, 96, 28, 28)), jnp.ones((96, 96, 3, 3)), jnp.ones((3, 96, 3, 3))
    jaxpr = jax.make_jaxpr(lambda x: lax.conv(x, last, (1, 1), "SAME"))(x).jaxpr
    assert not prefers_eigen(jaxpr)
    both = jax.make_jaxpr(lambda x: lax.conv(lax.conv(x, kernel, (1, 1), "SAME"), last, (1, 1), "SAME"))(x).jaxpr
    assert prefers_eigen(both)


def test_images_stay_on_their_devices(spy: Spy) -> None:
    batches = jax.sharding.NamedSharding(jax.make_mesh((8,), ("images",)), jax.sharding.PartitionSpec("images"))
    x, kernel = jax.device_put(jnp.ones((8, 16, 12, 12)), batches), jnp.ones((3, 16, 3, 3))
    convolve = jax.jit(lambda x, kernel: lax.conv(x, kernel, (1, 1), "SAME"))
    assert "all-gather" not in convolve.lower(x, kernel).compile().as_text()
    assert "matmul_col2im" not in spy.used
    convolve(jnp.ones(x.shape), kernel)
    assert "matmul_col2im" in spy.used


def test_other_platforms_keep_their_operation() -> None:
    traced = jax.jit(lambda x, k: lax.conv(x, k, (1, 1), "SAME")).trace(
        jnp.ones((1, 16, 9, 9)), jnp.ones((3, 16, 3, 3))
    )
    assert "stablehlo.convolution" in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.convolution" not in traced.lower(lowering_platforms=("cpu",)).as_text()
