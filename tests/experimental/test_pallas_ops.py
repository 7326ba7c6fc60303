"""`pallas.ops`: JAX's operations that are kernels, against operations of the library."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini as jax
from xlamini import lax, nn
from xlamini.errors import ShapeError
from xlamini.experimental.pallas.ops.gpu import attention, decode_attention, layer_norm, rms_norm, softmax
from xlamini.experimental.pallas.ops.gpu.paged_attention import paged_attention
from xlamini.experimental.pallas.ops.tpu import flash_attention, splash_attention as splash
from xlamini.experimental.pallas.ops.tpu.megablox import gmm


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def attend(q: Any, k: Any, v: Any, scale: float = 1.0, **options: Any) -> Any:
    return nn.dot_product_attention(q, k, v, scale=scale, **options)


def test_attention_for_a_gpu_has_segments_and_tiles() -> None:
    q, k = normal(0, 2, 20, 2, 8), normal(1, 2, 20, 1, 8)
    segments = np.arange(20)[None].repeat(2, 0) // 7
    same = (segments[:, :, None] == segments[:, None])[:, None]
    tiles = attention.BlockSizes(16, 16)
    found, logs = attention.mha(q, k, k, segments, 0.5, True, tiles, return_residuals=True)
    expected, of_all = attend(q, k, k, 0.5, mask=same, is_causal=True, return_residual=True)
    close(found, expected)
    close(logs.swapaxes(1, 2), of_all)
    with pytest.raises(ValueError, match="backward_pass_impl must be 'triton' or 'xla', got 'cuda'"):
        attention.mha(q, k, k, None, backward_pass_impl="cuda")


def test_attention_for_a_tpu_has_segments_and_a_bias() -> None:
    q, k, bias = normal(0, 2, 2, 20, 8), normal(1, 2, 2, 24, 8), normal(2, 2, 2, 20, 24)
    ids = flash_attention.SegmentIds(np.arange(40).reshape(2, 20) % 2, np.arange(48).reshape(2, 24) % 2)
    same = (ids.q[:, :, None] == ids.kv[:, None])[:, None]
    found = flash_attention.flash_attention(q, k, k, bias, ids)
    close(found.swapaxes(1, 2), attend(*(x.swapaxes(1, 2) for x in (q, k, k)), bias=bias, mask=same))


@pytest.mark.full
def test_attention_of_one_query_sees_a_part_of_the_keys() -> None:
    q, k, start, stop = normal(0, 2, 4, 8), normal(1, 2, 20, 2, 8), np.array([0, 3]), np.array([20, 11])
    place = np.arange(20)
    seen = ((place >= start[:, None]) & (place < stop[:, None]))[:, None, None]
    close(decode_attention.gqa(q, k, k, start, stop), nn.dot_product_attention(q[:, None], k, k, mask=seen)[:, 0])
    one = k[:, :, :1]
    close(decode_attention.mqa(q, one[:, :, 0], one[:, :, 0]), nn.dot_product_attention(q[:, None], one, one)[:, 0])
    with pytest.raises(NotImplementedError, match="normalize_output=False are not built"):
        decode_attention.gqa(q, k, k, normalize_output=False)
    with pytest.raises(ShapeError, match="gqa: q must have shape"):
        decode_attention.gqa(q[0], k, k)


@pytest.mark.parametrize("cap", [None, 2.0])
def test_attention_to_pages(cap: float | None) -> None:
    q, pages, tables = normal(0, 3, 4, 8), normal(1, 2, 9, 4, 8), np.arange(9).reshape(3, 3)[:, ::-1]
    lengths = np.array([12, 5, 0])
    found = paged_attention(q, pages, 2 * pages, tables, lengths, attn_logits_soft_cap=cap)
    k = pages[:, tables].reshape(2, 3, 12, 8).repeat(2, 0)
    fit = np.einsum("bnh,nbsh->bns", q, k)
    fit = fit if cap is None else cap * np.tanh(fit / cap)
    weights = np.exp(fit) * (np.arange(12) < lengths[:, None, None])
    total = weights.sum(-1, keepdims=True)
    close(found, np.einsum("bns,nbsh->bnh", weights / np.where(total == 0, 1, total), 2 * k))


MASKS: dict[str, Any] = {
    "causal": [splash.CausalMask((20, 24), 2)] * 2,
    "local": [splash.LocalMask((20, 24), (5, 3), 1)] * 2,
    "joined": [splash.CausalMask((20, 24)) & splash.LocalMask((20, 24), (4, None), 0)] * 2,
    "each": [splash.CausalMask((20, 24)), splash.FullMask((20, 24))],
}


@pytest.mark.parametrize("name", MASKS)
def test_attention_with_a_mask_for_each_head(name: str) -> None:
    mask = splash.MultiHeadMask(MASKS[name])
    q, k = normal(0, 2, 20, 8), normal(1, 2, 24, 8)
    found, rest = splash.make_splash_mha_single_device(mask, save_residuals=True)(q, k, k)
    seen = np.stack([each[:, :] for each in mask.masks])
    expected, logs = attend(*(x.swapaxes(0, 1) for x in (q, k, k)), mask=seen, return_residual=True)
    close(found.swapaxes(0, 1), expected)
    close(rest["logsumexp"].T, logs)


def test_masks_for_heads_are_checked() -> None:
    attend_to = splash.make_splash_mqa_single_device(splash.MultiHeadMask([splash.CausalMask((4, 4))] * 2))
    with pytest.raises(ShapeError, match=r"the mask is for \(heads, queries, keys\) = \(2, 4, 4\)"):
        attend_to(normal(0, 2, 5, 8), normal(1, 4, 8), normal(2, 4, 8))
    with pytest.raises(NotImplementedError, match="shards are not built"):
        splash.make_splash_mha(splash.MultiHeadMask([splash.CausalMask((4, 4))]), head_shards=2, q_seq_shards=1)


def test_norms_and_softmax() -> None:
    x, residual, weight = normal(0, 2, 3, 10), normal(1, 2, 3, 10), normal(2, 10)
    close(rms_norm.rms_norm(x, weight, None), x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight)
    y, total = layer_norm.layer_norm(x, weight, weight, residual=residual)
    close(total, x + residual)
    close(y, nn.standardize(total, epsilon=1e-5) * weight + weight)
    close(softmax.softmax(x), nn.softmax(x))
    close(jax.grad(lambda x: (softmax.softmax(x) ** 2).sum())(x), jax.grad(lambda x: (nn.softmax(x) ** 2).sum())(x))
    with pytest.raises(ShapeError, match=r"weight must have shape \(10,\), for x of \(2, 3, 10\); got \(3,\)"):
        rms_norm.rms_norm(x, weight[:3], None)
    with pytest.raises(NotImplementedError, match="softmax: axis must be the last one, got 0"):
        softmax.softmax(x, axis=0)


def test_products_in_groups() -> None:
    rows, matrices, counts = normal(0, 20, 8), normal(1, 3, 6, 8), np.array([5, 0, 12])
    expected = lax.ragged_dot(rows, matrices.swapaxes(1, 2), counts)
    close(gmm(rows, matrices, counts, tiling=lambda m, k, n: (16, 8, 8), transpose_rhs=True), expected)
    with pytest.raises(ShapeError, match=r"rhs \(groups, n, k\)"):
        gmm(rows, matrices.swapaxes(1, 2), counts, transpose_rhs=True)
    with pytest.raises(NotImplementedError, match="existing_out is not built"):
        gmm(rows, matrices, counts, existing_out=expected)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x = np.ones((1, 2, 4, 8), np.float32)
    with pytest.raises(ShapeError, match=r"queries \(1, 2, 4, 8\), keys \(2, 4, 8\) and values"):
        flash_attention.flash_attention(x, x[0], x[0])
    with pytest.raises(ShapeError, match="softmax: x must have an axis"):
        softmax.softmax(np.ones(()))
    assert softmax.softmax(np.ones((0, 3))).shape == (0, 3)
