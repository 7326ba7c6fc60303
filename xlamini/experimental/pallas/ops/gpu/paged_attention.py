"""Attention of one query for each example to keys in pages: `paged_attention`."""
from __future__ import annotations

from typing import Any

from xlamini import numpy as jnp
from xlamini.nn.kernels.paged_attention import paged
from xlamini.numpy.arguments import as_operand

__all__ = ["paged_attention"]


def __dir__() -> list[str]:
    return sorted(__all__)


def paged_attention(
    q: Any,
    k_pages: Any,
    v_pages: Any,
    block_tables: Any,
    lengths: Any,
    k_scales_pages: Any = None,
    v_scales_pages: Any = None,
    *,
    block_h: int = 16,
    pages_per_compute_block: int = 8,
    k_splits: int = 16,
    num_warps: int = 8,
    num_stages: int = 2,
    interpret: bool = False,
    debug: bool = False,
    mask_value: float = -2.381976426469702e38,
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """Attention of scaled queries (batch, heads, features) to the keys of each example; an array as `q`.

    Args:
      k_pages, v_pages: of shape (key heads, pages, page size, features).
      block_tables: ints of shape (batch, pages of an example), the pages that have an example's keys, in order.
      lengths: ints of shape (batch,), how many keys each example has; None for all.
      attn_logits_soft_cap: products x are replaced by `cap * tanh(x / cap)`.
      block_h, pages_per_compute_block, k_splits, num_warps, num_stages, interpret, debug, mask_value: accepted, and
        ignored.

    NotImplementedError for pages with scales, of numbers in few bits.
    Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023).

    >>> pages = jnp.ones((2, 3, 4, 8))
    >>> paged_attention(jnp.ones((1, 4, 8)), pages, pages, jnp.array([[2, 0]]), jnp.array([5])).shape
    (1, 4, 8)
    """
    if k_scales_pages is not None or v_scales_pages is not None:
        raise NotImplementedError("paged_attention: pages with scales are not built; pass k_pages.astype(q.dtype)")
    q, k, v, tables = (as_operand("paged_attention", x) for x in (q, k_pages, v_pages, block_tables))
    b, _, h = q.shape
    if lengths is None:
        lengths = jnp.full((b,), tables.shape[1] * k.shape[2], jnp.int32)
    lengths, tables = (as_operand("paged_attention", x).astype(jnp.int32) for x in (lengths, tables))
    return paged(q.reshape(b, k.shape[0], -1, h), k, v, lengths, tables, attn_logits_soft_cap, None).reshape(q.shape)
