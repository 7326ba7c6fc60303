"""How attention's kernels go through tiles, by an axis of the grid or by a loop, and what a program sees of arrays.

An array's axes are written as letters: b the example, n the head of queries, m the head of keys, t the query, s the
key, h the features, 1 an axis of size 1. A walk says for each letter the size of a program's block, and its index.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.kernels.flash_tiles import Flash, Reach, Sides, keys_of, queries_of
from xlamini.nn.kernels.targets import GRID, LOOP, Hints
from xlamini.numpy.indexing.slices import ds
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.pallas.api import pallas_call
from xlamini.transforms.pallas.control_flow import when
from xlamini.transforms.pallas.grid import program_id
from xlamini.transforms.pallas.specs import VMEM, BlockSpec

TILE = "tile"
"""No walk: a tile is a program."""
Ids = Sequence[Any]
State = list[Any]


class Named(NamedTuple):
    """An array, or the type of a result, and the letters of its axes."""

    axes: str
    array: Any


class Sizes(NamedTuple):
    """The sizes of axes; `shared` query heads in a row have one head of keys; t and s are in whole blocks."""

    b: int
    n: int
    shared: int
    t: int
    s: int
    h: int


class Place(NamedTuple):
    """A tile: which of the query heads that share keys, and the blocks of queries and of keys."""

    head: Any
    blocks: Sides


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

    def meets(self, place: Place) -> Any:
        """Whether a query of the tile may see a key of it."""
        return keys_of(self.how, place.blocks.queries, self._count).holds(place.blocks.keys)

    def place(self, ids: Ids, step: Any) -> Place:
        """The tile of a step."""
        return Place(0, Sides(ids[2], step))

    def parts(self, place: Place) -> dict[str, Any]:
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

    def meets(self, place: Place) -> Any:
        """Whether a query of the tile may see a key of it."""
        return queries_of(self.how, place.blocks.keys, self._count).holds(place.blocks.queries)

    def place(self, ids: Ids, step: Any) -> Place:
        """The tile of a step."""
        reach = queries_of(self.how, ids[2], self._count)
        if self.walk == GRID:
            head, i = self._tile(step, self._count)
            return Place(head, Sides(i, ids[2]))
        head, i = self._tile(step, reach.stop - reach.first)
        return Place(head, Sides(reach.first + i, ids[2]))

    def parts(self, place: Place) -> dict[str, Any]:
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

    def block(self) -> dict[str, int | None]:
        """The size of a program's block in each axis; None for an axis that the ref does not have."""
        how = self.how
        return {"b": None, "n": None, "m": None, "t": how.block_q, "s": how.block_k, "h": self.sizes.h, "1": 1}

    def index(self, b: Any, n: Any, i: Any, j: Any) -> dict[str, Any]:
        """The index of the block in each axis."""
        return {"b": b, "n": n, "m": _head_of_keys(n, self.sizes), "t": i, "s": j, "h": 0, "1": 0}

    def place(self, ids: Ids, step: Any) -> Place:
        """The tile of a program."""
        return Place(0, Sides(ids[2], ids[3]))

    def parts(self, place: Place) -> dict[str, Any]:
        """Where the tile is in a block that has more than it."""
        return {}


Walk = OverKeys | OverQueries | OverTiles


class Start(NamedTuple):
    """An array of a kernel's state: its shape, its dtype, and the number it is filled with at first."""

    shape: tuple[int, ...]
    dtype: Any
    number: float = 0.0

    def array(self) -> Any:
        """The array at first."""
        return jnp.full(self.shape, self.number, self.dtype)


class Steps(NamedTuple):
    """What a kernel computes: its state at first, after one more tile, and the results of the last state.

    `fold(state, parts, blocks)` takes the parts of the arrays that belong to a tile.
    """

    start: Sequence[Start]
    fold: Callable[[State, list[Any], Sides], State]
    results: Callable[[State], Sequence[Any]]


def walked(name: str, walk: Walk, steps: Steps, arrays: Sequence[Named], outs: Sequence[Named]) -> list[Any]:
    """The results of a kernel, from arrays."""
    program = {LOOP: _in_loop, GRID: _in_grid, TILE: _in_tile}[walk.walk]

    def kernel(*refs: Any) -> None:
        program(walk, steps, arrays, refs)

    call = pallas_call(
        kernel,
        [x.array for x in outs],
        grid=walk.grid,
        in_specs=[_spec(walk, x) for x in arrays],
        out_specs=[_spec(walk, x) for x in outs],
        scratch_shapes=[VMEM(x.shape, x.dtype) for x in steps.start] if walk.walk == GRID else [],
        name=name,
        compiler_params=_hints(walk),
    )
    return list(call(*(x.array for x in arrays)))


# --- helpers


def _hints(walk: Walk) -> Hints:
    axes = ["parallel"] * len(walk.grid)
    if walk.walk == GRID:
        axes[-1] = "arbitrary"
    return Hints(tuple(axes), num_warps=8 if walk.how.block_q >= 128 else 4, num_stages=2)


def _head_of_keys(n: Any, sizes: Sizes) -> Any:
    return n if sizes.shared == 1 else lax.div(n, np.int32(sizes.shared))


def _in_loop(walk: Any, steps: Steps, arrays: Sequence[Named], refs: Sequence[Any]) -> None:
    ids = [program_id(axis) for axis in range(len(walk.grid))]

    def turn(step: Any, state: State) -> State:
        place = walk.place(ids, step)
        return steps.fold(state, _parts(walk, place, arrays, refs), place.blocks)

    reach = walk.steps(ids)
    last = fori_loop(reach.first, reach.stop, turn, [x.array() for x in steps.start])
    _write(refs[len(arrays) :], steps.results(last))


def _in_tile(walk: Any, steps: Steps, arrays: Sequence[Named], refs: Sequence[Any]) -> None:
    place = walk.place([program_id(axis) for axis in range(len(walk.grid))], 0)
    last = steps.fold([], _parts(walk, place, arrays, refs), place.blocks)
    _write(refs[len(arrays) :], steps.results(last))


def _in_grid(walk: Any, steps: Steps, arrays: Sequence[Named], refs: Sequence[Any]) -> None:
    ids, count = [program_id(axis) for axis in range(len(walk.grid))], len(steps.start)
    outs, state = refs[len(arrays) : -count], refs[-count:]
    place = walk.place(ids, ids[-1])

    @when(ids[-1] == 0)
    def _start() -> None:
        _write(state, [x.array() for x in steps.start])

    @when(walk.meets(place))
    def _fold() -> None:
        _write(state, steps.fold([x[...] for x in state], _parts(walk, place, arrays, refs), place.blocks))

    @when(ids[-1] == walk.grid[-1] - 1)
    def _end() -> None:
        _write(outs, steps.results([x[...] for x in state]))


def _write(refs: Sequence[Any], values: Sequence[Any]) -> None:
    for ref, value in zip(refs, values, strict=True):
        ref[...] = value.astype(ref.dtype)


def _parts(walk: Walk, place: Place, arrays: Sequence[Named], refs: Sequence[Any]) -> list[Any]:
    block, parts = walk.block(), walk.parts(place)
    return [_part(x, ref, block, parts) for x, ref in zip(arrays, refs, strict=False)]


def _part(x: Named, ref: Any, block: dict[str, int | None], parts: dict[str, Any]) -> Any:
    kept = [(axis, n) for axis, n in zip(x.axes, x.array.shape, strict=True) if block[axis] is not None]
    where = [parts.get(axis, slice(None)) if not _is_single(axis, n) or axis not in parts else 0 for axis, n in kept]
    return ref[tuple(where)]


def _is_single(axis: str, size: int) -> bool:
    """Whether an array has one part for all examples or heads."""
    return axis in "bn" and size == 1


def _spec(walk: Walk, x: Named) -> BlockSpec:
    block = walk.block()
    single = [_is_single(axis, n) for axis, n in zip(x.axes, x.array.shape, strict=True)]

    def index(*ids: Any) -> tuple[Any, ...]:
        found = walk.index(*ids)
        return tuple(0 if one else found[axis] for axis, one in zip(x.axes, single, strict=True))

    return BlockSpec([block[axis] and min(block[axis], n) for axis, n in zip(x.axes, x.array.shape, strict=True)], index)
