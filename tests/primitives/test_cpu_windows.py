"""CPU formulations of convolutions and pools: values and gradients are those of XLA's own operations.

The programs are drawn at random, each so that a formulation fits; XLA's own are the same programs without formulations.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from tests.support.cpu_forms import Spy
from xlamini import lax
from xlamini.primitives.windows import convolution, select
from xlamini.primitives.windows.reduce_window import reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p

POOLS = (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p)
PLACES = ((convolution, "_CHOICES"), (select, "_CHOICES"), *((p, "choices") for p in POOLS))


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Formulations that are seen; recipes of the lowering and traces are forgotten before and after."""
    jax.clear_caches()
    yield Spy(monkeypatch, *PLACES)
    jax.clear_caches()


def compare(spy: Spy, names: set[str], function: Any, *operands: Any) -> None:
    """`function` by the formulations of these names, and by XLA's own operations."""
    ours = [np.asarray(x) for x in jax.jit(function)(*operands)]
    assert names <= set(spy.used)
    spy.without()
    theirs = [np.asarray(x) for x in jax.jit(lambda *xs: function(*xs))(*operands)]
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def with_gradients(function: Any) -> Any:
    """The function's result, and its operands' cotangents for a cotangent that differs everywhere."""

    def both(*operands: Any) -> list[Any]:
        out, back = jax.vjp(function, *operands)
        return [out, *back(jnp.cos(jnp.arange(out.size, dtype=out.dtype)).reshape(out.shape))]

    return both


def permuted(shape: Any, spec: Any) -> list[int]:
    return [shape[list(spec).index(d)] for d in range(len(spec))]


def convolution_of(rng: Any, kind: str) -> tuple[Any, Any, Any]:
    """A convolution for which the formulation `kind` fits, by function and operands."""
    space = int(rng.integers(1, 4))
    groups = int(rng.integers(2, 5)) if kind == "direct" else 1
    given, outputs = (int(n) for n in rng.integers(1, 4, 2))
    kernel = rng.integers(1, 4, space)
    strides, base, holes = rng.integers(1, 4, space), np.ones(space, int), np.ones(space, int)
    if kind == "direct":
        base, holes = rng.integers(1, 3, space), rng.integers(1, 3, space)
    if kind == "patchify":
        strides = kernel + rng.integers(0, 2, space)
    if kind == "transposed_patchify":
        kernel[0] = 2
        strides, base = np.ones(space, int), kernel + rng.integers(0, 2, space)
    padding = [tuple(map(int, pair)) for pair in rng.integers(-1, 4, (space, 2))]
    sizes = rng.integers(5, 9, space)
    in_order = tuple(range(space + 2))
    specs = [tuple(map(int, rng.permutation(space + 2))) if rng.random() < 0.5 else in_order for _ in "abc"]
    x = rng.standard_normal(permuted((2, groups * given, *sizes), specs[0]), np.float32)
    weights = rng.standard_normal(permuted((groups * outputs, given, *kernel), specs[1]), np.float32)
    numbers = lax.ConvDimensionNumbers(*specs)
    window = [list(strides), padding, list(base), list(holes)]
    return functools.partial(_conv, window, numbers, groups), x, weights


def _conv(window: Any, numbers: Any, groups: int, x: Any, weights: Any) -> Any:
    return lax.conv_general_dilated(x, weights, *window, numbers, groups)


KINDS = {"direct": "joint_products", "patchify": "", "transposed_patchify": ""}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 12))])
@pytest.mark.parametrize("kind", KINDS)
def test_convolutions(spy: Spy, kind: str, seed: int) -> None:
    """Groups, patches and enlargements with strides, dilations, padding and cropping, in any order of dimensions."""
    function, x, weights = convolution_of(np.random.default_rng(seed), kind)
    compare(spy, {kind, KINDS[kind]} - {""}, with_gradients(function), x, weights)


def test_the_caller_puts_a_result_in_order() -> None:
    """The function has one transposition, that of the patches; neither it nor the caller copies the kernel."""
    x, kernel = jnp.ones((1, 3, 8, 8)), jnp.ones((16, 3, 4, 4))
    text = jax.jit(lambda x, kernel: lax.conv(x, kernel, (4, 4), "VALID")).lower(x, kernel).as_text()
    main, caller, function = text.split("func.func private")
    assert [part.count("stablehlo.transpose") for part in (main, caller, function)] == [0, 1, 1]


@pytest.mark.parametrize("features", [(1, 1), (2, 3)])
def test_filters_of_few_features(spy: Spy, features: tuple[int, int]) -> None:
    rng, (given, outputs) = np.random.default_rng(0), features
    x = rng.standard_normal((2, given, 9, 8), np.float32)
    kernel = rng.standard_normal((outputs, given, 3, 5), np.float32)
    compare(spy, {"direct"}, with_gradients(lambda x, k: lax.conv(x, k, (1, 2), "SAME")), x, kernel)


def test_groups_of_images_are_no_filter(spy: Spy) -> None:
    x, kernel = np.ones((4, 2, 9), np.float32), np.ones((2, 2, 3), np.float32)
    compare(
        spy,
        {"joint_products"},
        lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", batch_group_count=2),
        x,
        kernel,
    )
    assert "direct" not in spy.used


def test_gradient_of_a_pointwise_kernel(spy: Spy) -> None:
    """In both common orders of dimensions, with a stride that leaves elements out."""
    rng = np.random.default_rng(0)

    def both(x: Any, kernel: Any) -> list[Any]:
        first = with_gradients(lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "VALID"))
        numbers = ("NHWC", "HWIO", "NHWC")
        last = with_gradients(lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "VALID", dimension_numbers=numbers))
        return [*first(x, kernel), *last(x, jnp.transpose(kernel, (2, 3, 0, 1)))]

    x, kernel = rng.standard_normal((2, 6, 8, 6), np.float32), rng.standard_normal((6, 6, 1, 1), np.float32)
    compare(spy, {"patchify", "patchify_gradient", "transposed_patchify"}, both, x, kernel)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 20))])
def test_pools(spy: Spy, seed: int) -> None:
    """Sums and extrema with ties, NaN and infinities, overlapping windows and gaps between them."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    window, strides = ([int(n) for n in rng.integers(1, 4, rank)] for _ in "ab")
    window[0] = 2
    padding = [(int(rng.integers(0, n)), int(rng.integers(0, n))) for n in window]
    x = rng.integers(-3, 4, rng.integers(3, 8, rank)).astype(np.float32)
    x.flat[:: x.size // 3] = np.nan, -np.inf, np.inf, 0.0, *[1.0] * 9
    combine, start = ((lax.max, -np.inf), (lax.min, np.inf), (lax.add, 0.0))[seed % 3]

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, np.float32(start), combine, window, strides, padding)

    compare(spy, {"separable_pool"} | ({"max_pool_gradient"} if seed % 3 < 2 else set()), with_gradients(pool), x)


def test_integers_and_dilated_windows(spy: Spy) -> None:
    def pools(x: Any) -> list[Any]:
        window = {"window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((1, 0), (0, 2))}
        dilated = {"base_dilation": (2, 1), "window_dilation": (1, 2)}
        largest = lax.reduce_window(x, np.int32(-(2**31)), lax.max, **window)
        return [lax.reduce_window(x, 0, lax.add, **window, **dilated), largest]

    compare(spy, {"separable_pool"}, pools, np.arange(30, dtype=np.int32).reshape(5, 6) * 7 % 11)


def test_infinite_weights_meet_the_padding(spy: Spy) -> None:
    """Padding is zeros: with an infinite weight it gives NaN, beside infinities where elements are."""
    weights = np.array([[[np.inf, 1.0]], [[2.0, 3.0]]], np.float32)

    def padded(x: Any, weights: Any) -> list[Any]:
        return [lax.conv_general_dilated(x, weights, (1,), [(1, 0)], feature_group_count=2)]

    out = np.asarray(jax.jit(padded)(np.ones((1, 2, 3), np.float32), weights)[0])
    assert "direct" in spy.used
    np.testing.assert_array_equal(out, [[[np.nan, np.inf, np.inf], [3.0, 5.0, 5.0]]])


def test_what_no_formulation_fits(spy: Spy) -> None:
    """Wider sums, no elements, large windows, dense kernels and pools of narrow floats stay XLA's operations."""

    def groups(x: Any, weights: Any, **options: Any) -> Any:
        return lax.conv_general_dilated(x, weights, (1,), "SAME", feature_group_count=2, **options)

    x, weights = jnp.ones((1, 2, 5)), jnp.ones((2, 1, 3))
    with jax.enable_x64(True):
        wide = groups(x, weights, preferred_element_type=np.float64)
    empty = groups(x[:0], weights)
    dense = lax.conv_general_dilated(x, jnp.ones((120, 2, 3)), (1,), "SAME")
    largest = lax.reduce_window(jnp.ones(50), -np.inf, lax.max, (40,), (1,), "SAME")
    narrow = lax.reduce_window(jnp.ones(50, "bfloat16"), 0, lax.add, (2,), (1,), "SAME")
    assert [out.shape for out in (wide, empty, dense, largest, narrow)]
    assert set(spy.used) <= {"with_features_last"}  # of XLA's operation


def test_other_platforms_keep_their_operations() -> None:
    def depthwise(x: Any, weights: Any) -> Any:
        return lax.conv_general_dilated(x, weights, (1,), "SAME", feature_group_count=2)

    traced = jax.jit(depthwise).trace(jnp.ones((1, 2, 5)), jnp.ones((2, 1, 3)))
    assert "stablehlo.convolution" in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.convolution" not in traced.lower(lowering_platforms=("cpu",)).as_text()
