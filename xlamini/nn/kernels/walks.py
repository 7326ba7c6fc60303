"""Kernels that go through blocks one after the other, by an axis of the grid or by a loop, with a state that goes on.

An array's axes are written as letters. A walk says for each letter the size of a program's block, and its index.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from xlamini import numpy as jnp
from xlamini.nn.kernels.targets import GRID, LOOP, Hints
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


class Sides(NamedTuple):
    """What belongs to the queries and what belongs to the keys of a tile."""

    queries: Any
    keys: Any


class Reach(NamedTuple):
    """The blocks that are met: from `first` on, below `stop`."""

    first: Any
    stop: Any

    def holds(self, block: Any) -> Any:
        """Whether a block is met."""
        return (block >= self.first) & (block < self.stop)

    def nearest(self, block: Any) -> Any:
        """The block itself, or the nearest one of those that are met."""
        return jnp.minimum(jnp.maximum(block, self.first), self.stop - 1)


class WalkPlace(NamedTuple):
    """A tile: which of the query heads that share keys, and the blocks of queries and of keys."""

    head: Any
    blocks: Sides


class BlockWalk(Protocol):
    """How a kernel goes through blocks; `walk` is GRID, LOOP or TILE."""

    @property
    def walk(self) -> str: ...

    @property
    def grid(self) -> tuple[int, ...]:
        """In a walk by the grid, its last axis counts the steps."""
        ...

    @property
    def threads(self) -> tuple[int, int]:
        """How many warps of a GPU a program has, and in how many stages its loop copies ahead."""
        ...

    def block(self) -> dict[str, int | None]:
        """The size of a program's block in each axis; None for an axis that the ref does not have."""
        ...

    @property
    def index(self) -> Callable[..., dict[str, Any]]:
        """A function of the indices of a program: the index of the block in each axis."""
        ...

    def steps(self, ids: Ids) -> Reach:
        """The steps of a loop."""
        ...

    def meets(self, place: WalkPlace) -> Any:
        """Whether a step of a grid has something to do."""
        ...

    def place(self, ids: Ids, step: Any) -> WalkPlace:
        """The tile of a step."""
        ...

    def parts(self, place: WalkPlace) -> dict[str, Any]:
        """Where the tile is in a block that has more than it."""
        ...


class WalkStart(NamedTuple):
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

    start: Sequence[WalkStart]
    fold: Callable[[State, list[Any], Sides], State]
    results: Callable[[State], Sequence[Any]]


def walked(name: str, walk: BlockWalk, steps: Steps, arrays: Sequence[Named], outs: Sequence[Named]) -> list[Any]:
    """The results of a kernel, from arrays."""
    program = {LOOP: _in_loop, GRID: _in_grid, TILE: _in_tile}[walk.walk]

    def kernel(*refs: Any) -> None:
        program(walk, steps, arrays, refs)

    warps, stages = walk.threads
    call = pallas_call(
        kernel,
        [x.array for x in outs],
        grid=walk.grid,
        in_specs=[_spec(walk, x) for x in arrays],
        out_specs=[_spec(walk, x) for x in outs],
        scratch_shapes=[VMEM(x.shape, x.dtype) for x in steps.start] if walk.walk == GRID else [],
        name=name,
        compiler_params=Hints(_semantics(walk), num_warps=warps, num_stages=stages),
    )
    return list(call(*(x.array for x in arrays)))


# --- helpers


def _semantics(walk: BlockWalk) -> tuple[str, ...]:
    axes = ["parallel"] * len(walk.grid)
    return (*axes[:-1], "arbitrary") if walk.walk == GRID else tuple(axes)


def _in_loop(walk: BlockWalk, steps: Steps, arrays: Sequence[Named], refs: Sequence[Any]) -> None:
    ids = [program_id(axis) for axis in range(len(walk.grid))]

    def turn(step: Any, state: State) -> State:
        place = walk.place(ids, step)
        return steps.fold(state, _parts(walk, place, arrays, refs), place.blocks)

    reach = walk.steps(ids)
    last = fori_loop(reach.first, reach.stop, turn, [x.array() for x in steps.start])
    _write(refs[len(arrays) :], steps.results(last))


def _in_tile(walk: BlockWalk, steps: Steps, arrays: Sequence[Named], refs: Sequence[Any]) -> None:
    place = walk.place([program_id(axis) for axis in range(len(walk.grid))], 0)
    last = steps.fold([], _parts(walk, place, arrays, refs), place.blocks)
    _write(refs[len(arrays) :], steps.results(last))


def _in_grid(walk: BlockWalk, steps: Steps, arrays: Sequence[Named], refs: Sequence[Any]) -> None:
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


def _parts(walk: BlockWalk, place: WalkPlace, arrays: Sequence[Named], refs: Sequence[Any]) -> list[Any]:
    block, parts = walk.block(), walk.parts(place)
    return [_part(x, ref, block, parts) for x, ref in zip(arrays, refs, strict=False)]


def _part(x: Named, ref: Any, block: dict[str, int | None], parts: dict[str, Any]) -> Any:
    kept = [(axis, n) for axis, n in zip(x.axes, x.array.shape, strict=True) if block[axis] is not None]
    where = [parts.get(axis, slice(None)) if not _is_single(axis, n) or axis not in parts else 0 for axis, n in kept]
    return ref[tuple(where)]


def _is_single(axis: str, size: int) -> bool:
    """Whether an array has one part for all examples or query heads."""
    return axis in "bn" and size == 1


def _spec(walk: BlockWalk, x: Named) -> BlockSpec:
    block = walk.block()
    single = [_is_single(axis, n) for axis, n in zip(x.axes, x.array.shape, strict=True)]

    def index(*ids: Any) -> tuple[Any, ...]:
        found = walk.index(*ids)
        return tuple(0 if one else found[axis] for axis, one in zip(x.axes, single, strict=True))

    sizes = [1 if one and block[axis] else block[axis] for axis, one in zip(x.axes, single, strict=True)]
    return BlockSpec(sizes, index)
