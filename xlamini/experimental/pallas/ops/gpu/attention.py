"""Attention by tiles: `mha`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xlamini import numpy as jnp
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import Flash, FlashTiles
from xlamini.nn.kernels.walks import Sides
from xlamini.nn.tiled_attention import attend
from xlamini.numpy.arguments import as_operand

__all__ = ["BlockSizes", "mha"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class MhaBlockSizes:
    """The sizes of tiles: of queries and keys, forward, and in the derivatives by keys and by queries.

    The derivatives use one tile, that by keys.

    >>> BlockSizes(128, 64).block_k
    64
    """

    block_q: int
    block_k: int
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None

    @classmethod
    def get_default(cls) -> BlockSizes:
        """128 queries and 128 keys, 32 of each in derivatives, as in JAX."""
        return cls(128, 128, 32, 32, 32, 32)


BlockSizes = MhaBlockSizes


def mha(
    q: Any,
    k: Any,
    v: Any,
    segment_ids: Any,
    sm_scale: float = 1.0,
    causal: bool = False,
    block_sizes: BlockSizes | None = None,
    backward_pass_impl: str = "triton",
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: Any = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
) -> Any:
    """`softmax(sm_scale * q @ k) @ v` for each head; of shape (batch, queries, heads, features), as `q`.

    Args:
      q, k, v: of shapes (batch, queries, heads, features) and (batch, keys, heads or fewer, features).
      segment_ids: None, or ints of shape (batch, queries): a query sees keys of its own segment.
      sm_scale: a Python number.
      causal: query t sees keys up to t only.
      block_sizes: the tiles of a kernel on a GPU; by default they are chosen by the sizes of arrays.
      return_residuals: whether to return the logarithms of denominators too, of shape (batch, heads, queries).
      backward_pass_impl, num_warps, num_stages, grid, interpret, debug: accepted, and ignored.

    ValueError for an unknown `backward_pass_impl`. How it is computed: Dao et al., "FlashAttention" (2022).

    >>> x = jnp.ones((1, 4, 2, 8))
    >>> mha(x, x, x, None, causal=True).shape
    (1, 4, 2, 8)
    """
    if backward_pass_impl not in ("triton", "xla"):
        raise ValueError(f"mha: backward_pass_impl must be 'triton' or 'xla', got {backward_pass_impl!r}")
    q, k, v = (as_operand("mha", x).swapaxes(1, 2) for x in (q, k, v))
    ids = None if segment_ids is None else Sides(*[as_operand("mha", segment_ids).astype(jnp.int32)] * 2)
    tiles = None if block_sizes is None else _tiles(block_sizes)
    mean, logs = attend(Arrays(q, k, v, None, ids), Flash(sm_scale, after=0 if causal else None, tiles=tiles))
    mean = mean.swapaxes(1, 2)
    return (mean, logs) if return_residuals else mean


def _tiles(sizes: BlockSizes) -> FlashTiles:
    q, k = sizes.block_q, sizes.block_k
    return FlashTiles((q, k), (q, k), (sizes.block_q_dkv or q, sizes.block_kv_dkv or k))
