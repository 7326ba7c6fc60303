"""Attention of one query for each example, a step of decoding: `mqa` and `gqa`."""
from __future__ import annotations

import math
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import Flash
from xlamini.nn.kernels.walks import Sides
from xlamini.nn.tiled_attention import attend
from xlamini.numpy.arguments import as_operand

__all__ = ["gqa", "mqa"]


def __dir__() -> list[str]:
    return sorted(__all__)


def gqa(
    q: Any,
    k: Any,
    v: Any,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    block_h: int = 16,
    block_k: int = 128,
    k_splits: int = 16,
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: Any = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any:
    """Attention of one query for each head, whose keys are shared by as many query heads in a row.

    Args:
      q: of shape (batch, heads, features).
      k, v: of shape (batch, keys, key heads, features).
      start_idx, kv_seq_len: None, or ints of shape (batch,): the first key that is seen, and the end of those.
      sm_scale: a Python number, by default 1 / sqrt(features).
      block_h, block_k, k_splits, num_warps, num_stages, grid, interpret, debug: accepted, and ignored.

    Returns an array as `q`. ShapeError for arrays that do not fit; NotImplementedError for `return_residuals` and for
    `normalize_output=False`.

    >>> gqa(jnp.ones((1, 4, 8)), jnp.ones((1, 3, 2, 8)), jnp.ones((1, 3, 2, 8))).shape
    (1, 4, 8)
    """
    return _decoded("gqa", q, k, v, start_idx, kv_seq_len, sm_scale, return_residuals or not normalize_output)


def mqa(
    q: Any,
    k: Any,
    v: Any,
    start_idx: Any = None,
    kv_seq_len: Any = None,
    sm_scale: float | None = None,
    block_h: int = 16,
    block_k: int = 256,
    k_splits: int = 16,
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: Any = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any:
    """`gqa` for one head of keys: `k` and `v` have shape (batch, keys, features).

    >>> mqa(jnp.ones((1, 4, 8)), jnp.ones((1, 3, 8)), jnp.ones((1, 3, 8))).shape
    (1, 4, 8)
    """
    k, v = (as_operand("mqa", x)[:, :, None] for x in (k, v))
    return _decoded("mqa", q, k, v, start_idx, kv_seq_len, sm_scale, return_residuals or not normalize_output)


def _decoded(what: str, q: Any, k: Any, v: Any, start: Any, stop: Any, scale: float | None, asks_more: bool) -> Any:
    if asks_more:
        raise NotImplementedError(
            f"{what}: return_residuals=True and normalize_output=False are not built; call ops.gpu.attention.mha, "
            "which returns the logarithms of denominators"
        )
    q, k, v = (as_operand(what, x) for x in (q, k, v))
    _check(what, q, k, v)
    h = q.shape[2]
    shared = q.reshape(q.shape[0], k.shape[2], -1, h)  # the query heads that share keys are the queries of one head
    ids = _ids(q, k.shape[1], shared.shape[2], start, stop)
    scale = 1 / math.sqrt(h) if scale is None else scale
    mean, _ = attend(Arrays(shared, k.swapaxes(1, 2), v.swapaxes(1, 2), None, ids), Flash(scale))
    return mean.reshape(q.shape)


def _check(what: str, q: Any, k: Any, v: Any) -> None:
    if q.ndim != 3 or k.ndim != 4 or k.shape != v.shape or q.shape[1] % k.shape[2] or q.shape[2] != k.shape[3]:
        raise ShapeError(
            f"{what}: q must have shape (batch, heads, features), k and v (batch, keys, key heads, features) with a "
            f"divisor of the heads; got {q.shape}, {k.shape}, {v.shape}"
        )


def _ids(q: Any, keys: int, queries: int, start: Any, stop: Any) -> Sides | None:
    """1 for the keys that are not seen."""
    if start is None and stop is None:
        return None
    place = jnp.arange(keys)[None]
    before = False if start is None else place < as_operand("start_idx", start)[:, None]
    after = False if stop is None else place >= as_operand("kv_seq_len", stop)[:, None]
    unseen = jnp.broadcast_to(before | after, (q.shape[0], keys))
    return Sides(jnp.zeros((q.shape[0], queries), jnp.int32), unseen.astype(jnp.int32))
