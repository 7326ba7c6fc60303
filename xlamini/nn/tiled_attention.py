"""Attention by kernels that keep one tile of the products at a time: `dot_product_attention(implementation="flash")`.

The sizes of tiles are those that fit a core's memory: at most 1024 queries and 512 keys on a TPU, 128 and 64 on a GPU.
Axes are filled up to whole tiles, features to a power of two, as GPUs ask.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core.errors import ShapeError
from xlamini.nn.kernels.flash_attention import Arrays, attention, back_of, derivative
from xlamini.nn.kernels.flash_tiles import NEVER, Flash, FlashTiles
from xlamini.nn.kernels.targets import padded_to
from xlamini.nn.kernels.walks import Sides

_SIZES = (1024, 512, 256, 128)
_LEAST = 16
"""The smallest tile: GPUs multiply matrices from this size on."""


def attend(x: Arrays, how: Flash) -> tuple[Any, Any]:
    """The means, and the logarithms of the denominators, of shape (b, n, t).

    Queries are (b, n, t, h), keys and values (b, heads of keys, s, h), a bias (b or 1, n or 1, t or 1, s or 1), ids (b,
    t) and (b, s), none of them negative: a query sees keys of its own id.
    """
    _check_shapes(*x[:3])
    how, whole = _in_whole_tiles(x, how)
    mean, logs = attention(how, whole)
    return _first(mean, x.q), _first(logs, x.q)


def derivatives(x: Arrays, mean: Any, logs: Any, ct: Any, how: Flash) -> Sequence[Any]:
    """The cotangents of queries, keys and values of `attend` without ids, for that of the means."""
    how, whole, rest = _back(x, mean, logs, ct, how)
    return list(map(_first, derivative(how, back_of(whole, *rest)), x[:3]))


def masked(bias: Any, mask: Any) -> Any:
    """The bias with the mask in it; None without either."""
    if mask is None:
        return bias
    return jnp.where(mask, np.float32(0) if bias is None else bias.astype(np.float32), np.float32(NEVER))


def ids_of(lengths: Any, queries: int, keys: int) -> Sides:
    """0 for the queries and for the keys that there are, 1 for keys beyond the end."""
    there = jnp.arange(keys) < lengths[:, None]
    return Sides(jnp.zeros((len(lengths), queries), np.int32), jnp.where(there, np.int32(0), np.int32(1)))


# --- helpers


def _in_whole_tiles(x: Arrays, how: Flash) -> tuple[Flash, Arrays]:
    """The arrays filled up to whole tiles, and the tiles."""
    (queries, features), keys = x.q.shape[2:], x.k.shape[2]
    h = max(1 << (features - 1).bit_length(), _LEAST)
    tiles = how.tiles or _tiles(queries, keys, h * x.q.dtype.itemsize)
    t, s = (padded_to(n, max(each[side] for each in tiles)) for side, n in enumerate((queries, keys)))
    q, k, v = (_padded(a, (*a.shape[:2], size, h)) for a, size in zip(x[:3], (t, s, s), strict=True))
    bias, ids = x.bias, x.ids
    if bias is not None:
        bias = _padded(jnp.broadcast_to(bias, (*bias.shape[:2], queries, keys)), (*bias.shape[:2], t, s))
    if ids is not None:
        ids = Sides(*(_padded(a, (a.shape[0], size)) for a, size in zip(ids, (t, s), strict=True)))
    return replace(how, keys=None if keys == s else keys, tiles=tiles), Arrays(q, k, v, bias, ids)


def _back(x: Arrays, mean: Any, logs: Any, ct: Any, how: Flash) -> tuple[Flash, Arrays, list[Any]]:
    """The tiles, the arrays, and what a derivative is computed from besides, filled up."""
    how, whole = _in_whole_tiles(x, how)
    mean, ct = (_padded(a, whole.q.shape) for a in (mean, ct))
    logs = _padded(logs, whole.q.shape[:3])
    return how, whole, [mean, logs, ct, jnp.zeros_like(logs)]


def _first(x: Any, like: Any) -> Any:
    """The places and features of `x` that `like` has too."""
    return x[tuple(map(slice, like.shape[: x.ndim]))] if x.shape != like.shape[: x.ndim] else x


def _check_shapes(q: Any, k: Any, v: Any) -> None:
    """ShapeError unless keys and values are of one shape, that of queries but for heads and places."""
    fits = q.ndim == k.ndim == 4 and k.shape == v.shape and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not fits or q.shape[1] % max(k.shape[1], 1):
        raise ShapeError(
            f"attention: queries {q.shape}, keys {k.shape} and values {v.shape} must have the axes batch, heads, "
            "places and features; keys and values are of one shape, of as many heads as queries or a divisor of that"
        )


def _tiles(queries: int, keys: int, nbytes: int) -> FlashTiles:
    """The tiles for features of so many bytes: what goes into a core's memory, and into its registers."""
    grid = (1024, 512) if nbytes <= 512 else (512, 512)
    loop = (128, 64) if nbytes <= 256 else (64, 64) if nbytes <= 512 else (64, 32)
    back = (64, 64) if nbytes <= 256 else (32, 32)
    return FlashTiles(*(_tile(queries, keys, *most) for most in (grid, loop, back)))


def _tile(queries: int, keys: int, most_q: int, most_k: int) -> tuple[int, int]:
    return _side(queries, most_q), _side(keys, most_k)


def _side(size: int, most: int) -> int:
    """The size of a tile along one side: a power of two, the largest one that adds no more than an eighth."""
    whole = max(1 << (size - 1).bit_length(), _LEAST)
    least = padded_to(size, 128)
    fitting = [n for n in _SIZES if n <= most and 8 * padded_to(size, n) <= 9 * least]
    return min(whole, max([*fitting, min(most, 128)]))


def _padded(x: Any, shape: tuple[int, ...]) -> Any:
    margins = [(0, size - n) for n, size in zip(x.shape, shape, strict=True)]
    return jnp.pad(x, margins) if x.shape != shape else x
