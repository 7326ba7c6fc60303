"""The library's kernels, as scans on the CPU, in both walks: values and derivatives are NumPy's in float64."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xlamini as jax
from xlamini import lax, nn, numpy as jnp
from xlamini.nn.kernels.cross_entropy import Blocks, cross_entropy
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import Flash, FlashTiles
from xlamini.nn.kernels.grouped_matmul import Grouped, grouped_matmul
from xlamini.nn.kernels.norms import Norm, Rows, norm
from xlamini.nn.tiled_attention import attend

WALKS = ("grid", "loop")
TILES = FlashTiles((32, 16), (16, 16), (16, 32))
TOLERANCE = {"float32": 2e-5, "bfloat16": 4e-2, "float16": 6e-3}


def normal(seed: int, *shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=tolerance, atol=tolerance)


# --- attention


def attention_of(
    arrays: tuple[Any, ...], scale: float, bias: Any, seen: Any, cts: tuple[Any, Any]
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Means, logarithms, and the derivatives by queries, keys, values and bias, in float64."""
    q, k, v = (np.asarray(x, np.float64).swapaxes(1, 2) for x in arrays)
    shared = q.shape[1] // k.shape[1]
    wide_k, wide_v = (np.repeat(x, shared, 1) for x in (k, v))
    fit = np.where(seen, q @ wide_k.swapaxes(2, 3) * scale + bias, -1e30)
    most = fit.max(-1, keepdims=True)
    total = (np.exp(fit - most) * seen).sum(-1, keepdims=True)
    weights = np.exp(fit - most) * seen / np.where(total == 0, 1, total)
    ct, ct_logs = cts[0].swapaxes(1, 2), cts[1][..., None]
    mean = weights @ wide_v
    slope = weights * (ct @ wide_v.swapaxes(2, 3) - (ct * mean).sum(-1, keepdims=True) + ct_logs)
    of_k, of_v = (
        x.reshape(len(x), -1, shared, *x.shape[2:]).sum(2)
        for x in (slope.swapaxes(2, 3) @ q * scale, weights.swapaxes(2, 3) @ ct)
    )
    logs = (most + np.log(np.where(total == 0, 1, total)))[..., 0]
    return mean.swapaxes(1, 2), logs, (*(x.swapaxes(1, 2) for x in (slope @ wide_k * scale, of_k, of_v)), slope.sum(0))


def seen_by(queries: int, keys: int, before: int, after: int) -> Any:
    t, s = np.arange(queries)[:, None], np.arange(keys)
    return (s >= t - before) & (s <= t + after)


ATTENTIONS = {  # queries, keys, heads, causal, window, whether there is a bias
    "plain": (40, 56, (4, 2), False, None, False),
    "causal": (40, 40, (2, 2), True, None, False),
    "more_queries": (56, 24, (2, 1), True, (20, 3), True),
    "window": (40, 56, (2, 2), False, (9, 17), False),
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_and_its_derivatives(name: str, walk: str) -> None:
    queries, keys, (n, m), causal, window, has_bias = ATTENTIONS[name]
    arrays = normal(0, 2, queries, n, 8), normal(1, 2, keys, m, 8), normal(2, 2, keys, m, 8)
    bias = normal(3, 1, n, queries, keys) if has_bias else None
    cts = normal(4, 2, queries, n, 8), normal(5, 2, n, queries)
    before, after = window or (1000, 1000)
    seen = seen_by(queries, keys, before, 0 if causal else after)
    reach = window and window[0], 0 if causal else window and window[1]
    cts[1][:, :, ~seen.any(1)] = 0

    def loss(q: Any, k: Any, v: Any, bias: Any) -> Any:
        heads_first = (x.swapaxes(1, 2) for x in (q, k, v))
        mean, logs = attend(Arrays(*heads_first, bias), Flash(0.3, *reach, tiles=TILES, walk=walk))
        mean = mean.swapaxes(1, 2)
        return (mean * cts[0]).sum() + jnp.where(seen.any(1), logs * cts[1], 0).sum(), (mean, logs)

    places = (0, 1, 2, 3) if has_bias else (0, 1, 2)
    found, (mean, logs) = jax.jit(jax.grad(loss, places, has_aux=True))(*arrays, bias)
    expected = attention_of(arrays, 0.3, bias if has_bias else 0, seen, cts)
    close(mean, expected[0])
    close(np.where(seen.any(1), logs, 0), np.where(seen.any(1), expected[1], 0))
    for x, y in zip(found, expected[2], strict=False):
        close(x.reshape(y.shape), y)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_attention_takes_lengths_and_dtypes(dtype: str) -> None:
    q, k, v = (normal(i, 2, 24, heads, 8).astype(dtype) for i, heads in enumerate((4, 2, 2)))
    options: Any = {"key_value_seq_lengths": np.array([24, 7]), "query_seq_lengths": np.array([20, 24])}
    found, logs = nn.dot_product_attention(q, k, v, implementation="flash", return_residual=True, **options)
    expected, expected_logs = nn.dot_product_attention(q, k, v, return_residual=True, **options)
    assert found.dtype == dtype
    close(found, np.asarray(expected, np.float64), TOLERANCE[dtype])
    close(logs, np.asarray(expected_logs, np.float64), TOLERANCE[dtype])


def test_attention_takes_a_mask_and_no_batch() -> None:
    q, mask = normal(0, 20, 2, 8), np.random.default_rng(1).random((2, 20, 20)) < 0.5
    mask[:, 3] = False
    found = nn.dot_product_attention(q, q, q, mask=mask, implementation="flash")
    expected = np.array(nn.dot_product_attention(q, q, q, mask=mask))
    expected[3] = 0  # there XLA's weighs all keys alike
    close(found, expected)


@pytest.mark.full
def test_attention_in_vmap_checkpoint_and_second_derivatives() -> None:
    x = normal(0, 3, 1, 16, 1, 4)

    def loss(implementation: Any) -> Any:
        def of(q: Any) -> Any:
            attend = jax.checkpoint(lambda q: nn.dot_product_attention(q, q, q, implementation=implementation))
            return (attend(q) ** 2).sum()

        return jax.jit(jax.vmap(jax.grad(lambda q: (jax.grad(of)(q) ** 2).sum())))

    close(loss("flash")(x), np.asarray(loss("xla")(x), np.float64), 2e-4)


def test_attention_says_which_implementations_there_are() -> None:
    with pytest.raises(ValueError, match="must be 'xla', 'cudnn', 'flash' or None, got 'flat'"):
        nn.dot_product_attention(*[np.ones((4, 2, 8), np.float32)] * 3, implementation="flat")  # type: ignore[arg-type]


# --- norms


def norm_of(centred: bool, x: Any, residual: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    """In operations of the library."""
    total = x if residual is None else x + residual
    rest = total - total.mean(1, keepdims=True) if centred else total
    y = rest * lax.rsqrt((rest * rest).mean(1, keepdims=True) + 1e-5) * weight
    return y if bias is None else y + bias, total


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_norms_and_their_derivatives(full: bool, centred: bool, walk: str) -> None:
    x, residual, weight, bias = (normal(i, n, 12) for i, n in enumerate((37, 37, 1, 1)))
    arrays = (x, residual, weight, bias) if full else (x, None, weight, None)
    ct, ct_total = normal(4, 37, 12), normal(5, 37, 12) * full

    def loss(of: Any) -> Any:
        def weighted(arrays: Any) -> Any:
            y, total = of(*arrays)
            return (y * ct).sum() + (0 if total is None else (total * ct_total).sum())

        return jax.jit(jax.value_and_grad(weighted))(arrays)

    found = loss(lambda *arrays: norm(Norm(centred, 1e-5, 8, walk), Rows(*arrays)))
    expected = loss(lambda *arrays: norm_of(centred, *arrays))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        close(x, np.asarray(y, np.float64))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_norms_take_dtypes(dtype: str) -> None:
    x, weight = normal(0, 9, 16).astype(dtype), normal(1, 1, 16).astype(dtype)
    y, total = norm(Norm(False, 1e-5), Rows(x, x, weight, None))
    assert y.dtype == total.dtype == dtype
    wide = 2 * x.astype(np.float64)
    close(y, wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * weight.astype(np.float64), TOLERANCE[dtype])


# --- losses


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_cross_entropy_and_its_derivative(dtype: str, walk: str) -> None:
    logits, labels, ct = (3 * normal(0, 21, 53)).astype(dtype), np.arange(21, dtype=np.int32) * 2, normal(1, 21)
    blocks = Blocks((16, 128), (4, 16), walk)
    found, slope = jax.jit(jax.vjp, static_argnums=0)(lambda x: cross_entropy(blocks, x, labels), logits)
    wide = logits.astype(np.float64)
    weights = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
    close(found, -np.log(weights[np.arange(21), labels]), 1e-5)
    assert found.dtype == np.float32
    (of_logits,) = slope(jnp.asarray(ct))
    assert of_logits.dtype == dtype
    close(of_logits, (weights - np.eye(53)[labels]) * ct[:, None], TOLERANCE[dtype] / 4)


# --- products in groups

COUNTS = [[10, 0, 7, 20], [0, 0, 0, 0], [40, 0, 0, 0], [0, 3, 32, 5], [16, 8, 8, 8], [30, 5, 900, 8]]


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("counts", COUNTS)
def test_products_in_groups_and_their_derivatives(counts: list[int], walk: str) -> None:
    rows, matrices, ct, sizes = normal(0, 40, 24), normal(1, 4, 24, 20), normal(2, 40, 20), np.array(counts, np.int32)
    how = Grouped(np.dtype(np.float32), False, (16, 16, 8), walk)

    def loss(of: Any) -> Any:
        of_both = jax.value_and_grad(lambda x, y, sizes: (of(x, y, sizes) * ct).sum(), (0, 1))
        return jax.jit(of_both)(rows, matrices, sizes)

    found = loss(lambda *operands: grouped_matmul(how, *operands))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(loss(lax.ragged_dot)), strict=True):
        close(x, np.asarray(y, np.float64))


@pytest.mark.parametrize(("dtype", "kernels"), [("bfloat16", 1), ("float16", 0), ("float32", 0)])
def test_a_tpu_rounds_no_product_asked_to_be_exact(dtype: str, kernels: int) -> None:
    of = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((512, 16), (8, 16, 16))]
    product = functools.partial(lax.ragged_dot, precision="highest")
    jaxpr = jax.make_jaxpr(product, platform="tpu")(*of, jax.ShapeDtypeStruct((8,), "int32"))
    assert str(jaxpr).count("pallas_call") == kernels
