"""One tile of attention, some queries with some keys: the products, and which keys a query sees.

Axes have one letter each: b the example, n the head of queries, t the query, s the key, h the features.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.kernels.targets import GRID
from xlamini.nn.kernels.walks import Reach, Sides

NEVER = -0.7 * float(np.finfo(np.float32).max)
"""Instead of the product of a query with a key that it does not see."""
LEAST = NEVER / 2
"""The largest product before there is one: e**(NEVER - LEAST) is 0, so that a query that sees no key has no weights."""


class FlashTiles(NamedTuple):
    """The sizes of tiles, (queries, keys): in a grid, in a loop, and in the loop of derivatives."""

    grid: tuple[int, int]
    loop: tuple[int, int]
    loop_back: tuple[int, int]


@dataclass(frozen=True)
class Flash:
    """How attention is computed: the function, and the sizes of tiles.

    A query t sees the keys from t - `before` to t + `after` (None: all), and below `keys` (None: all). `walk` is that
    of `targets.for_target`. `block_q` and `block_k` are the tile of one kernel.
    """

    scale: float
    before: int | None = None
    after: int | None = None
    keys: int | None = None
    tiles: FlashTiles | None = None
    walk: str | None = None
    block_q: int = 0
    block_k: int = 0

    def at(self, walk: str, back: bool = False) -> Flash:
        """The same for a kernel that walks in this way."""
        assert self.tiles is not None
        q, k = self.tiles.grid if walk == GRID else self.tiles.loop_back if back else self.tiles.loop
        return replace(self, block_q=q, block_k=k)


def keys_of(how: Flash, block: Any, count: int) -> Reach:
    """The blocks of keys, of `count`, that the queries of a block see."""
    return _reach(block, how.block_q, how.before, how.after, how.block_k, count)


def queries_of(how: Flash, block: Any, count: int) -> Reach:
    """The blocks of queries, of `count`, that see keys of a block."""
    return _reach(block, how.block_k, how.after, how.before, how.block_q, count)


def _reach(block: Any, size: int, before: int | None, after: int | None, other: int, count: int) -> Reach:
    first: Any = np.int32(0)
    stop: Any = np.int32(count)
    if before is not None:
        first = lax.div(jnp.maximum(block * size - before, 0), np.int32(other))
    if after is not None:
        stop = jnp.minimum(lax.div(block * size + (size - 1 + after), np.int32(other)) + 1, stop)
    return Reach(first, stop)


def fits(how: Flash, q: Any, k: Any, bias: Any, blocks: Sides, ids: Sides | None) -> Any:
    """The products of a tile, of shape (queries, keys), NEVER where a query does not see the key."""
    return _hidden(how, _product(q, k) * how.scale, bias, blocks, ids, (0, 1))


def fits_across(how: Flash, q: Any, k: Any, bias: Any, blocks: Sides, ids: Sides | None) -> Any:
    """The same of shape (keys, queries)."""
    turned = None if bias is None else bias.T
    return _hidden(how, _product(k, q) * how.scale, turned, blocks, ids, (1, 0))


def wide(dtype: Any) -> Any:
    """The dtype of sums."""
    return jnp.promote_types(dtype, np.float32)


def product(x: Any, y: Any, sums: tuple[int, int]) -> Any:
    """The product of two matrices, over these axes, in the dtype of sums."""
    numbers = (((sums[0],), (sums[1],)), ((), ()))
    return lax.dot_general(x, y, numbers, preferred_element_type=wide(x.dtype))


# --- helpers


def _product(x: Any, y: Any) -> Any:
    return product(x, y, (1, 1))


def _hidden(how: Flash, fit: Any, bias: Any, blocks: Sides, ids: Sides | None, axes: tuple[int, int]) -> Any:
    if bias is not None:
        fit = fit + bias.astype(fit.dtype)
    seen = _seen(how, fit.shape, blocks, ids, axes)
    return fit if seen is None else jnp.where(seen, fit, NEVER)


def _seen(how: Flash, shape: tuple[int, ...], blocks: Sides, ids: Sides | None, axes: tuple[int, int]) -> Any:
    """Which keys a query sees; None if all."""
    t = blocks.queries * how.block_q + lax.broadcasted_iota(np.int32, shape, axes[0])
    s = blocks.keys * how.block_k + lax.broadcasted_iota(np.int32, shape, axes[1])
    found = [] if how.keys is None else [s < how.keys]
    if how.after is not None:
        found.append(s <= t + how.after)
    if how.before is not None:
        found.append(s >= t - how.before)
    if ids is not None:
        found.append(ids.queries == ids.keys)
    seen = None
    for each in found:
        seen = each if seen is None else seen & each
    return seen
