"""Attention with a mask for each head: `make_splash_mha`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.pallas.ops.tpu.flash_attention import SegmentIds as SegmentIds
from xlamini.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask import MultiHeadMask, NumpyMask, Window
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import NEVER, Flash, FlashTiles
from xlamini.nn.kernels.walks import Sides
from xlamini.nn.tiled_attention import attend
from xlamini.numpy.arguments import as_operand


@dataclass(frozen=True)
class SplashBlockSizes:
    """The sizes of tiles; `block_q` queries and `block_kv` keys are one here, in derivatives too.

    >>> BlockSizes(512, 1024).block_kv
    1024
    """

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False


BlockSizes = SplashBlockSizes


def make_splash_mha(
    mask: Any,
    *,
    block_sizes: BlockSizes | None = None,
    is_mqa: bool = False,
    save_residuals: bool = False,
    mask_value: float = -2.381976426469702e38,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int,
    q_seq_shards: int,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> Callable[..., Any]:
    """A function of scaled queries, keys and values, and segments, that gives `softmax(q @ k) @ v` with the mask.

    The function takes q of shape (heads, queries, features), k and v (heads or fewer, keys, features), or (keys,
    features) with `is_mqa`, and `segment_ids=SegmentIds(...)` of shapes (queries,) and (keys,). It returns an array as
    q; vmap it over a batch.

    Args:
      mask: a `MultiHeadMask`, or an array of booleans (heads, queries, keys). One causal, local or full mask for all
        heads costs no memory, and skips the tiles that nobody sees; others are arrays that are added to the products.
      block_sizes: the tiles of a kernel on a TPU.
      head_shards, q_seq_shards: must be 1; in `shard_map`, give the mask of a shard.
      save_residuals: whether to return a pair with a dict of "logsumexp", of shape (heads, queries).
      mask_value, downcast_smem_data, residual_checkpoint_name, interpret: accepted, and ignored.

    NotImplementedError for more shards, and for `attn_logits_soft_cap`.

    >>> mask = MultiHeadMask([pl.ops.tpu.splash_attention.CausalMask((4, 4))] * 2)
    >>> attend = make_splash_mha(mask, head_shards=1, q_seq_shards=1)
    >>> x = jnp.ones((2, 4, 8))
    >>> attend(x, x, x).shape
    (2, 4, 8)
    """
    if (head_shards, q_seq_shards) != (1, 1):
        raise NotImplementedError("make_splash_mha: shards are not built; call it in shard_map, with a shard's mask")
    if attn_logits_soft_cap is not None:
        raise NotImplementedError("make_splash_mha: attn_logits_soft_cap is not built; leave it out")
    if not isinstance(mask, MultiHeadMask):
        mask = MultiHeadMask([NumpyMask(np.asarray(each, bool)) for each in mask])
    tiles = block_sizes and FlashTiles(*[(block_sizes.block_q, block_sizes.block_kv)] * 3)

    def attention(q: Any, k: Any, v: Any, segment_ids: SegmentIds | None = None) -> Any:
        rows = [as_operand("make_splash_mha", x) for x in (q, k, v)]
        if is_mqa:
            rows[1:] = (x[None] for x in rows[1:])
        _check(mask, rows)
        ids = segment_ids and Sides(*(as_operand("make_splash_mha", x).astype(jnp.int32)[None] for x in segment_ids))
        (before, after), bias = _told(mask)
        q, k, v = (x[None] for x in rows)
        mean, logs = attend(Arrays(q, k, v, bias, ids), Flash(1.0, before, after, tiles=tiles))
        return (mean[0], {"logsumexp": logs[0]}) if save_residuals else mean[0]

    return attention


def make_splash_mqa(mask: Any, **options: Any) -> Callable[..., Any]:
    """`make_splash_mha` for one head of keys: k and v have shape (keys, features).

    >>> mask = MultiHeadMask([pl.ops.tpu.splash_attention.CausalMask((4, 4))] * 2)
    >>> attend = make_splash_mqa(mask, head_shards=1, q_seq_shards=1)
    >>> attend(jnp.ones((2, 4, 8)), jnp.ones((4, 8)), jnp.ones((4, 8))).shape
    (2, 4, 8)
    """
    return make_splash_mha(mask, **{"is_mqa": True, **options})


def make_splash_mha_single_device(mask: Any, **options: Any) -> Callable[..., Any]:
    """`make_splash_mha` without shards.

    >>> x = jnp.ones((2, 4, 8))
    >>> make_splash_mha_single_device(MultiHeadMask([pl.ops.tpu.splash_attention.FullMask((4, 4))] * 2))(x, x, x).shape
    (2, 4, 8)
    """
    return make_splash_mha(mask, **{"head_shards": 1, "q_seq_shards": 1, **options})


def make_splash_mqa_single_device(mask: Any, **options: Any) -> Callable[..., Any]:
    """`make_splash_mqa` without shards.

    >>> x = jnp.ones((2, 4, 8))
    >>> mask = MultiHeadMask([pl.ops.tpu.splash_attention.FullMask((4, 4))] * 2)
    >>> make_splash_mqa_single_device(mask)(x, x[0], x[0]).shape
    (2, 4, 8)
    """
    return make_splash_mqa(mask, **{"head_shards": 1, "q_seq_shards": 1, **options})


def _check(mask: MultiHeadMask, rows: Sequence[Any]) -> None:
    q, k, _ = rows
    if (*q.shape[:2], k.shape[1]) != mask.shape:
        raise ShapeError(f"make_splash_mha: the mask is for (heads, queries, keys) = {mask.shape}, got q {q.shape}, "
                         f"k {k.shape}")  # fmt: skip


def _told(mask: MultiHeadMask) -> tuple[Window, Any]:
    """The window that all heads have, or none and the bias that says the same."""
    first, *others = mask.masks
    window = first.window()
    if window is not None and all(each == first for each in others):
        return window, None
    seen = np.stack([each.array() for each in (mask.masks if others else [first])])
    return (None, None), jnp.where(seen, np.float32(0), np.float32(NEVER))[None]
