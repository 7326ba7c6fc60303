"""Convolutions that are rewritten for the CPU: values and gradients are those of XLA's own operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from tests.support.cpu_forms import Spy, in_order, with_and_without
from xlamini import lax
from xlamini.primitives.windows import convolution

TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 0, "float16": 0}
MANY = [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 12))]

Case = tuple[tuple[int, ...], tuple[int, ...], str, dict[str, Any]]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spy]:
    jax.clear_caches()
    # What comes first fits most small arrays.
    rewrites = tuple(c for c in convolution._CHOICES if not c.noinline)
    monkeypatch.setattr(convolution, "_CHOICES", rewrites)
    with jax.enable_x64(True):
        yield Spy(monkeypatch, (convolution, "_CHOICES"))
    jax.clear_caches()


def numbers(rng: np.random.Generator, least: int, most: int, count: int) -> list[int]:
    return rng.integers(least, most + 1, count).tolist()


def narrow(rng: np.random.Generator) -> Case:
    """Groups, strides and dilations of narrow floats."""
    rank, groups = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    window = {name: numbers(rng, 1, 2, rank) for name in ("window_strides", "lhs_dilation", "rhs_dilation")}
    padding = rng.integers(0, 3, (rank, 2)).tolist()
    dtype = ("bfloat16", "float16")[int(rng.integers(2))]
    x, kernel = (2, 2 * groups, *numbers(rng, 3, 6, rank)), (3 * groups, 2, *numbers(rng, 1, 2, rank))
    return x, kernel, dtype, {**window, "padding": padding, "feature_group_count": groups}


def groups_of_images(rng: np.random.Generator) -> Case:
    """Nine features in a group, more pairs than are summed at once."""
    x, kernel = (18, 3, *numbers(rng, 4, 6, 2)), (18, 3, 2, 3)
    params = {"window_strides": numbers(rng, 1, 2, 2), "padding": [(1, 0), (0, 2)], "batch_group_count": 2}
    return x, kernel, "float32", params


def dilated(rng: np.random.Generator) -> Case:
    """Holes of all sizes in three dimensions of float32 and fewer of float64, with cropping; wider than the stride."""
    rank = int(rng.integers(1, 4))
    holes = numbers(rng, 2, 3, rank)
    kernel = [hole + n for hole, n in zip(holes, numbers(rng, 1, 3, rank), strict=True)]
    padding = [[-1, 4], *rng.integers(0, 5, (rank - 1, 2)).tolist()]
    params = {"window_strides": [1] * rank, "lhs_dilation": holes, "padding": padding}
    return (2, 3, *numbers(rng, 3, 5, rank)), (4, 3, *kernel), "float32" if rank == 3 else "float64", params


def vector(rng: np.random.Generator) -> Case:
    """Strides, holes and padding."""
    params = {name: numbers(rng, 1, 2, 1) for name in ("window_strides", "rhs_dilation")}
    return (2, 3, 17), (4, 3, 3), "float64", {**params, "padding": rng.integers(0, 5, (1, 2)).tolist()}


def growing(rng: np.random.Generator) -> Case:
    """Padding as of a full convolution, or wider; also cropping in the other dimension."""
    padding = [(int(rng.integers(3, 6)), 3), (int(rng.integers(-1, 2)), 1)]
    return (2, 3, 6, 7), (4, 3, 3, 2), "float64", {"window_strides": [1, 1], "padding": padding}


def volume(rng: np.random.Generator) -> Case:
    """Strides, holes in the kernel, padding of both signs."""
    dtype = ("float32", "float64")[int(rng.integers(2))]
    params = {"window_strides": numbers(rng, 1, 2, 3), "rhs_dilation": numbers(rng, 1, 2, 3)}
    padding = rng.integers(-1, 3, (3, 2)).tolist()
    return (2, 2, *numbers(rng, 6, 8, 3)), (3, 2, *numbers(rng, 1, 3, 3)), dtype, {**params, "padding": padding}


KINDS: dict[str, Callable[[np.random.Generator], Case]] = {
    "in_float32": narrow,
    "group_by_group": groups_of_images,
    "polyphase": dilated,
    "as_row": vector,
    "pad_first": growing,
    "depth_as_features": volume,
}


@pytest.mark.parametrize("seed", MANY)
@pytest.mark.parametrize("name", KINDS)
def test_values_and_gradients(spy: Spy, name: str, seed: int) -> None:
    """In any order of dimensions; the gradients are for a cotangent that differs everywhere."""
    rng = np.random.default_rng(seed)
    x_shape, kernel_shape, dtype, params = KINDS[name](rng)
    specs = [tuple(rng.permutation(len(x_shape)).tolist()) for _ in "lro"]
    shapes = [in_order(shape, spec) for shape, spec in zip((x_shape, kernel_shape), specs, strict=False)]
    x, kernel = (jnp.asarray(rng.integers(-4, 5, shape) / 4).astype(dtype) for shape in shapes)
    pairs = with_and_without(spy, x, kernel, specs, params)
    assert name in spy.used
    for one, other in pairs:
        assert one.dtype == other.dtype
        one, other = (np.asarray(v, np.float64) for v in (one, other))
        np.testing.assert_allclose(
            one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(other).max(initial=1)
        )


@pytest.mark.parametrize(("dtype", "stride"), [("float32", 1), ("float32", 2), ("bfloat16", 2)])
def test_a_signal_that_is_cropped_at_its_start_and_extended_at_its_end(spy: Spy, dtype: str, stride: int) -> None:
    """XLA's own convolution reads memory outside it."""
    rng = np.random.default_rng(0)
    x, kernel = rng.integers(-3, 4, (2, 40, 15)), rng.integers(-3, 4, (24, 40, 3))
    more = {"preferred_element_type": "float32"}
    convolve = jax.jit(lambda *xs: lax.conv_general_dilated(*xs, (stride,), [(-2, 2)], **more))
    extended = np.pad(x[..., 2:], ((0, 0), (0, 0), (0, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(extended, 3, axis=2)[:, :, ::stride]
    expected = np.einsum("nitk,oik->not", windows, kernel)
    np.testing.assert_array_equal(convolve(jnp.asarray(x, dtype), jnp.asarray(kernel, dtype)), expected)
    assert "crop_first" in spy.used
