"""Attention by tiles: `flash_attention`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import Flash, FlashTiles
from xlamini.nn.kernels.walks import Sides
from xlamini.nn.tiled_attention import attend
from xlamini.numpy.arguments import as_operand

__all__ = ["BlockSizes", "SegmentIds", "flash_attention"]


def __dir__() -> list[str]:
    return sorted(__all__)


class SegmentIds(NamedTuple):
    """The segments of queries, ints of shape (batch, queries), and of keys, (batch, keys).

    >>> SegmentIds(jnp.zeros((1, 4), int), jnp.zeros((1, 6), int)).kv.shape
    (1, 6)
    """

    q: Any
    kv: Any


@dataclass(frozen=True)
class FlashBlockSizes:
    """The sizes of tiles; `block_q` queries and `block_k_major` keys are one here, in derivatives too.

    >>> BlockSizes(256, 512, 128, 1).block_k_major
    512
    """

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    @classmethod
    def get_default(
        cls, batch_size: int, num_heads: int, q_seq_len: int, kv_len: int, d_model: int
    ) -> BlockSizes:
        """128 of each, as in JAX."""
        return cls(128, 128, 128, 1)


BlockSizes = FlashBlockSizes


def flash_attention(
    q: Any,
    k: Any,
    v: Any,
    ab: Any = None,
    segment_ids: SegmentIds | None = None,
    *,
    causal: bool = False,
    sm_scale: float = 1.0,
    block_sizes: BlockSizes | None = None,
    debug: bool = False,
) -> Any:
    """`softmax(sm_scale * q @ k + ab) @ v` for each head; of shape (batch, heads, queries, features), as `q`.

    Args:
      q, k, v: of shapes (batch, heads, queries, features) and (batch, heads or fewer, keys, features).
      ab: None, or the bias, of shape (batch, heads, queries, keys).
      segment_ids: None, or `SegmentIds`: a query sees keys of its own segment.
      causal: query t sees keys up to t only.
      sm_scale: a Python number.
      block_sizes: the tiles of a kernel on a TPU; by default they are chosen by the sizes of arrays.
      debug: accepted, and ignored.

    How it is computed: Dao et al., "FlashAttention" (2022).

    >>> x = jnp.ones((1, 2, 4, 8))
    >>> flash_attention(x, x, x, causal=True).shape
    (1, 2, 4, 8)
    """
    q, k, v = (as_operand("flash_attention", x) for x in (q, k, v))
    bias = None if ab is None else as_operand("flash_attention", ab)
    ids = None if segment_ids is None else Sides(*(as_operand("flash_attention", x) for x in segment_ids))
    ids = ids and Sides(*(x.astype(jnp.int32) for x in ids))
    tiles = None if block_sizes is None else FlashTiles(*[(block_sizes.block_q, block_sizes.block_k_major)] * 3)
    return attend(Arrays(q, k, v, bias, ids), Flash(sm_scale, after=0 if causal else None, tiles=tiles))[0]
