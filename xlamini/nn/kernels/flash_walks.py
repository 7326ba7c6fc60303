"""How attention's kernels go through tiles, and what a program sees of arrays.

Axes have one letter each: b the example, n the head of queries, m the head of keys, t the query, s the key, h the
features, 1 an axis of size 1.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xlamini import lax
from xlamini.nn.kernels.flash_tiles import Flash, keys_of, queries_of
from xlamini.nn.kernels.targets import GRID, LOOP
from xlamini.nn.kernels.walks import TILE, Ids, Reach, Sides, WalkPlace
from xlamini.numpy.indexing.slices import ds


class Sizes(NamedTuple):
    """The sizes of axes; `shared` query heads in a row have one head of keys; t and s are in whole blocks."""

    b: int
    n: int
    shared: int
    t: int
    s: int
    h: int


@dataclass(frozen=True)
class OverKeys:
    """A program for each block of queries, which goes through the blocks of keys that it sees."""

    how: Flash
    sizes: Sizes
    walk: str

    @property
    def grid(self) -> tuple[int, ...]:
        own = self.sizes.b, self.sizes.n, self.sizes.t // self.how.block_q
        return own if self.walk == LOOP else (*own, self._count)

    @property
    def threads(self) -> tuple[int, int]:
        return _threads(self.how, self.sizes.h)

    @property
    def _count(self) -> int:
        return self.sizes.s // self.how.block_k

    def block(self) -> dict[str, int | None]:
        """The size of a program's block in each axis; None for an axis that the ref does not have."""
        rest = {"b": None, "n": None, "m": None, "t": self.how.block_q, "h": self.sizes.h, "1": 1}
        return {**rest, "s": self.sizes.s if self.walk == LOOP else self.how.block_k}

    def index(self, b: Any, n: Any, i: Any, j: Any = None) -> dict[str, Any]:
        """The index of the block in each axis."""
        m = _head_of_keys(n, self.sizes)
        s = 0 if j is None else keys_of(self.how, i, self._count).nearest(j)
        return {"b": b, "n": n, "m": m, "t": i, "s": s, "h": 0, "1": 0}

    def steps(self, ids: Ids) -> Reach:
        """The steps of a loop."""
        return keys_of(self.how, ids[2], self._count)

    def meets(self, place: WalkPlace) -> Any:
        """Whether a query of the tile may see a key of it."""
        return keys_of(self.how, place.blocks.queries, self._count).holds(place.blocks.keys)

    def place(self, ids: Ids, step: Any) -> WalkPlace:
        """The tile of a step."""
        return WalkPlace(0, Sides(ids[2], step))

    def parts(self, place: WalkPlace) -> dict[str, Any]:
        """Where the tile is in a block that has more than it."""
        return {"s": ds(place.blocks.keys * self.how.block_k, self.how.block_k)} if self.walk == LOOP else {}


@dataclass(frozen=True)
class OverQueries:
    """A program for each block of keys, which goes through the blocks of queries that see it, of each head."""

    how: Flash
    sizes: Sizes
    walk: str

    @property
    def grid(self) -> tuple[int, ...]:
        own = self.sizes.b, self.sizes.n // self.sizes.shared, self.sizes.s // self.how.block_k
        return own if self.walk == LOOP else (*own, self.sizes.shared * self._count)

    @property
    def threads(self) -> tuple[int, int]:
        return _threads(self.how, self.sizes.h)

    @property
    def _count(self) -> int:
        return self.sizes.t // self.how.block_q

    def block(self) -> dict[str, int | None]:
        """The size of a program's block in each axis; None for an axis that the ref does not have."""
        rest = {"b": None, "m": None, "s": self.how.block_k, "h": self.sizes.h, "1": 1}
        if self.walk == LOOP:
            return {**rest, "n": self.sizes.shared, "t": self.sizes.t}
        return {**rest, "n": None, "t": self.how.block_q}

    def index(self, b: Any, m: Any, j: Any, step: Any = None) -> dict[str, Any]:
        """The index of the block in each axis."""
        rest = {"b": b, "m": m, "s": j, "h": 0, "1": 0}
        if step is None:
            return {**rest, "n": m, "t": 0}
        head, i = self._tile(step, self._count)
        return {**rest, "n": m * self.sizes.shared + head, "t": queries_of(self.how, j, self._count).nearest(i)}

    def steps(self, ids: Ids) -> Reach:
        """The steps of a loop."""
        reach = queries_of(self.how, ids[2], self._count)
        return Reach(np.int32(0), self.sizes.shared * (reach.stop - reach.first))

    def meets(self, place: WalkPlace) -> Any:
        """Whether a query of the tile may see a key of it."""
        return queries_of(self.how, place.blocks.keys, self._count).holds(place.blocks.queries)

    def place(self, ids: Ids, step: Any) -> WalkPlace:
        """The tile of a step."""
        reach = queries_of(self.how, ids[2], self._count)
        if self.walk == GRID:
            head, i = self._tile(step, self._count)
            return WalkPlace(head, Sides(i, ids[2]))
        head, i = self._tile(step, reach.stop - reach.first)
        return WalkPlace(head, Sides(reach.first + i, ids[2]))

    def parts(self, place: WalkPlace) -> dict[str, Any]:
        """Where the tile is in a block that has more than it."""
        if self.walk == GRID:
            return {}
        return {"n": place.head, "t": ds(place.blocks.queries * self.how.block_q, self.how.block_q)}

    def _tile(self, step: Any, count: Any) -> tuple[Any, Any]:
        if self.sizes.shared == 1:
            return np.int32(0), step
        return lax.div(step, np.int32(count) if isinstance(count, int) else count), lax.rem(step, count)


@dataclass(frozen=True)
class OverTiles:
    """A program for each tile."""

    how: Flash
    sizes: Sizes
    walk: str = TILE

    @property
    def grid(self) -> tuple[int, ...]:
        return self.sizes.b, self.sizes.n, self.sizes.t // self.how.block_q, self.sizes.s // self.how.block_k

    @property
    def threads(self) -> tuple[int, int]:
        return _threads(self.how, self.sizes.h)

    def block(self) -> dict[str, int | None]:
        """The size of a program's block in each axis; None for an axis that the ref does not have."""
        how = self.how
        return {"b": None, "n": None, "m": None, "t": how.block_q, "s": how.block_k, "h": self.sizes.h, "1": 1}

    def index(self, b: Any, n: Any, i: Any, j: Any) -> dict[str, Any]:
        """The index of the block in each axis."""
        return {"b": b, "n": n, "m": _head_of_keys(n, self.sizes), "t": i, "s": j, "h": 0, "1": 0}

    def place(self, ids: Ids, step: Any) -> WalkPlace:
        """The tile of a program."""
        return WalkPlace(0, Sides(ids[2], ids[3]))

    def steps(self, ids: Ids) -> Reach:
        """One."""
        return Reach(0, 1)

    def meets(self, place: WalkPlace) -> Any:
        """Whether a query of the tile may see a key of it."""
        return True

    def parts(self, place: WalkPlace) -> dict[str, Any]:
        """Where the tile is in a block that has more than it."""
        return {}


# --- helpers


def _head_of_keys(n: Any, sizes: Sizes) -> Any:
    return n if sizes.shared == 1 else lax.div(n, np.int32(sizes.shared))


def _threads(how: Flash, features: int) -> tuple[int, int]:
    """The fastest on an H200: more warps wait for each other, and more stages take the room of another program."""
    return 8 if how.block_q * how.block_k > 128 * 64 else 4, 3 if how.block_q >= 128 and features <= 64 else 2
