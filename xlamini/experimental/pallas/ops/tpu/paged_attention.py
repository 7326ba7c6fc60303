"""Attention of one query for each example to keys in pages: `paged_attention`."""
from __future__ import annotations

from typing import Any

from xlamini.experimental.pallas.ops.gpu import paged_attention as _of_gpu

__all__ = ["paged_attention"]


def __dir__() -> list[str]:
    return sorted(__all__)


def paged_attention(
    q: Any,
    k_pages: Any,
    v_pages: Any,
    lengths: Any,
    page_indices: Any,
    *,
    mask_value: float = -2.381976426469702e38,
    attn_logits_soft_cap: float | None = None,
    pages_per_compute_block: int,
    megacore_mode: str | None = None,
    inline_seq_dim: bool = True,
) -> Any:
    """Attention of scaled queries (batch, heads, features) to the keys of each example; an array as `q`.

    Args:
      k_pages, v_pages: of shape (key heads, pages, page size, features).
      lengths: ints of shape (batch,), how many keys each example has.
      page_indices: ints of shape (batch, pages of an example), the pages that have an example's keys, in order.
      attn_logits_soft_cap: products x are replaced by `cap * tanh(x / cap)`.
      mask_value, pages_per_compute_block, megacore_mode, inline_seq_dim: accepted, and ignored.

    Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023).

    >>> q, pages, lengths = jnp.ones((1, 4, 8)), jnp.ones((2, 3, 4, 8)), jnp.array([5])
    >>> paged_attention(q, pages, pages, lengths, jnp.array([[2, 0]]), pages_per_compute_block=1).shape
    (1, 4, 8)
    """
    return _of_gpu.paged_attention(
        q, k_pages, v_pages, page_indices, lengths, attn_logits_soft_cap=attn_logits_soft_cap
    )
