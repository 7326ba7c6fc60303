"""Attention by kernels that keep one tile of the products at a time: `dot_product_attention(implementation="flash")`.

The sizes of tiles are those that fit a core's memory: 512 queries and keys on a TPU, 128 queries and 64 keys on a GPU.
Axes are filled up to whole tiles, features to a power of two, as GPUs ask.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.nn.kernels.flash_attention import Arrays, attention
from xlamini.nn.kernels.flash_tiles import NEVER, Flash, Tiles
from xlamini.nn.kernels.targets import padded_to
from xlamini.nn.kernels.walks import Sides

_SIZES = (512, 256, 128)
_LEAST = 16
"""The smallest tile: GPUs multiply matrices from this size on."""


def tiled_attention(
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    mask: Any,
    lengths: Any,
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
    tiles: Tiles | None = None,
    walk: str | None = None,
) -> tuple[Any, Any]:
    """The means, and the logarithms of the denominators, of shape (batch, heads, queries).

    `bias` and `mask` have four dimensions; `lengths` are those of keys. Each of them may be None.
    """
    queries, keys = q.shape[1], k.shape[1]
    tiles = tiles or Tiles(*(_tile(queries, keys, *most) for most in ((512, 512), (128, 64), (64, 64))))
    sizes = [padded_to(n, max(each[side] for each in tiles)) for side, n in enumerate((queries, keys))]
    before, after = (None, None) if window is None else window
    after = 0 if causal and after is None else min(after, 0) if causal else after
    how = Flash(scale, before, after, None if keys == sizes[1] else keys, tiles, walk)
    features = max(1 << (q.shape[3] - 1).bit_length(), _LEAST)
    rows = [_rows(x, size, features) for x, size in ((q, sizes[0]), (k, sizes[1]), (v, sizes[1]))]
    mean, logs = attention(how, Arrays(*rows, _added(bias, mask, queries, keys, sizes), _ids(lengths, sizes)))
    return mean[:, :, :queries, : q.shape[3]].swapaxes(1, 2), logs[:, :, :queries]


# --- helpers


def _tile(queries: int, keys: int, most_q: int, most_k: int) -> tuple[int, int]:
    return _side(queries, most_q), _side(keys, most_k)


def _side(size: int, most: int) -> int:
    """The size of a tile along one side: a power of two, the largest one that adds no more than an eighth."""
    whole = max(1 << (size - 1).bit_length(), _LEAST)
    least = padded_to(size, 128)
    fitting = [n for n in _SIZES if n <= most and 8 * padded_to(size, n) <= 9 * least]
    return min(whole, max([*fitting, min(most, 128)]))


def _rows(x: Any, size: int, features: int) -> Any:
    """An array (b, t, n, h) as (b, n, t, h), with zeros up to these sizes."""
    x = x.swapaxes(1, 2)
    return _padded(x, (*x.shape[:2], size, features))


def _padded(x: Any, shape: tuple[int, ...]) -> Any:
    margins = [(0, size - n) for n, size in zip(x.shape, shape, strict=True)]
    return jnp.pad(x, margins) if x.shape != shape else x


def _added(bias: Any, mask: Any, queries: int, keys: int, sizes: list[int]) -> Any:
    """The bias with the mask in it, for whole tiles; None without either."""
    if mask is not None:
        bias = jnp.where(mask, np.float32(0) if bias is None else bias.astype(np.float32), np.float32(NEVER))
    if bias is None:
        return None
    wide = jnp.broadcast_to(bias, (*bias.shape[:2], queries, keys))
    return _padded(wide, (*bias.shape[:2], *sizes))


def _ids(lengths: Any, sizes: list[int]) -> Sides | None:
    """0 for the queries and for the keys that there are, 1 for keys beyond the end."""
    if lengths is None:
        return None
    there = jnp.arange(sizes[1]) < lengths[:, None]
    return Sides(jnp.zeros((len(lengths), sizes[0]), np.int32), jnp.where(there, np.int32(0), np.int32(1)))
