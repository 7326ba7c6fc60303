"""A loop inside of a kernel over blocks of arrays in a TPU's main memory: `emit_pipeline`.

Each array has two buffers. While a program runs on one block of an operand, the next block is copied into the other
buffer; a block of a result is copied back while the next programs run. A block that the next program needs too stays.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import flatten
from xlamini.core.errors import ShapeError
from xlamini.core.program.kernels import BlockDim, Blocked, Squeezed
from xlamini.numpy.indexing.slices import ds
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.pallas.control_flow import when
from xlamini.transforms.pallas.copies import AsyncCopy, SemaphoreType, make_async_copy
from xlamini.transforms.pallas.grid import set_place
from xlamini.transforms.pallas.scratch import run_scoped
from xlamini.transforms.pallas.specs import VMEM, BlockSpec, block_dim

Ids = Sequence[Any]


class BlockWindow(NamedTuple):
    """An array in main memory, the blocks of it, and two buffers for them, each with a semaphore."""

    array: Any
    dims: Sequence[BlockDim]
    index_map: Callable[..., Any]
    buffers: Any = None
    semaphores: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a block's ref."""
        return tuple(d.block_size for d in self.dims if not isinstance(d, Squeezed))

    def index(self, ids: Ids) -> tuple[Any, ...]:
        """Which block the program has."""
        found = self.index_map(*ids)
        return tuple(found) if isinstance(found, tuple | list) else (found,)

    def read(self, ids: Ids, slot: Any) -> AsyncCopy:
        """The copy of the program's block into a buffer."""
        return make_async_copy(self._block(ids), self.buffers.at[slot], self.semaphores.at[slot])

    def write(self, ids: Ids, slot: Any) -> AsyncCopy:
        """The copy of a buffer into the program's block."""
        return make_async_copy(self.buffers.at[slot], self._block(ids), self.semaphores.at[slot])

    def _block(self, ids: Ids) -> Any:
        at = [
            i if isinstance(d, Squeezed) else ds(i * d.block_size, d.block_size)
            for i, d in zip(self.index(ids), self.dims, strict=True)
        ]
        return self.array.at[tuple(at)]


class BlockLoop(NamedTuple):
    """The programs of a grid, in their order."""

    grid: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.grid)

    def ids(self, number: Any) -> list[Any]:
        """The indices of a program by its number."""
        found: list[Any] = []
        for size in reversed(self.grid):
            found.insert(0, np.int32(0) if size == 1 else number % size)
            number = number // size if size > 1 else number
        return found


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: int | Sequence[int],
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Any = None,
    core_axis: Any = None,
    core_axis_name: Any = None,
    dimension_semantics: Any = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """A function of refs to whole arrays, in a kernel for a TPU, that runs `body` on blocks of them.

    Args:
      body: takes the refs of blocks of operands, then of results; it writes the results. In it, `program_id` is the
        place in this grid.
      grid: the number of programs along each axis, ints.
      in_specs, out_specs: a `BlockSpec` for each operand and result, whose blocks divide the array.
      no_pipelining: wait for each copy before anything else.
      tiling, dimension_semantics, trace_scopes: accepted for compatibility, and ignored.

    Returns a function of the refs of operands, then of results, which are in main memory (`memory_space=ANY`).

    Raises ShapeError for a block that does not divide its array, NotImplementedError for several cores.

    >>> def kernel(x, o):
    ...     def double(x, o):
    ...         o[...] = 2 * x[...]
    ...     rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    ...     pltpu.emit_pipeline(double, grid=2, in_specs=[rows], out_specs=[rows])(x, o)
    >>> where = pl.BlockSpec(memory_space=pltpu.ANY)
    >>> shape = xlamini.ShapeDtypeStruct((16, 128), "float32")
    >>> pl.pallas_call(kernel, shape, in_specs=[where], out_specs=where)(jnp.ones((16, 128))).sum()
    Array(4096., dtype=float32)
    """
    if core_axis is not None or core_axis_name is not None or _explicit_indices:
        raise NotImplementedError("emit_pipeline: several cores are not built; leave out core_axis and core_axis_name")
    specs = [*_listed(in_specs), *_listed(out_specs)]
    count = len(_listed(in_specs))
    sizes: Any = grid if isinstance(grid, tuple | list) else (grid,)
    loop = BlockLoop(tuple(map(operator.index, sizes)))

    def run(*refs: Any) -> None:
        if len(refs) != len(specs):
            raise TypeError(f"emit_pipeline: {len(specs)} specs, but {len(refs)} refs; give one ref for each spec")
        windows = [_window(ref, spec) for ref, spec in zip(refs, specs, strict=True)]
        buffers = [VMEM((2, *w.shape), w.array.dtype) for w in windows]
        semaphores = [SemaphoreType.DMA((2,)) for _ in windows]

        def scoped(buffers: Any, semaphores: Any) -> None:
            every = zip(windows, buffers, semaphores, strict=True)
            filled = [w._replace(buffers=b, semaphores=s) for w, b, s in every]
            _run(loop, body, filled[:count], filled[count:], overlaps=not no_pipelining)

        run_scoped(scoped, buffers, semaphores)

    return run


def _listed(specs: Any) -> list[Any]:
    return flatten(specs, lambda x: isinstance(x, BlockSpec))[0]


def _window(ref: Any, spec: BlockSpec) -> BlockWindow:
    sizes = ref.shape if spec.block_shape is None else spec.block_shape
    dims = tuple(map(block_dim, sizes))
    if len(dims) != len(ref.shape) or not all(isinstance(d, Blocked | Squeezed) for d in dims):
        raise ShapeError(f"emit_pipeline: the block shape {tuple(sizes)} does not fit an array of shape {ref.shape}")
    if any(n % d.block_size for n, d in zip(ref.shape, dims, strict=True)):
        raise ShapeError(
            f"emit_pipeline: blocks of {tuple(sizes)} do not divide an array of shape {ref.shape}; pad it, or choose "
            "sizes that divide it"
        )
    return BlockWindow(ref, dims, spec.index_map or (lambda *_: (0,) * len(dims)))


def _run(
    loop: BlockLoop,
    body: Callable[..., None],
    ins: Sequence[BlockWindow],
    outs: Sequence[BlockWindow],
    overlaps: bool,
) -> None:
    if not loop.count:
        return
    first = loop.ids(np.int32(0))
    for window in ins:
        window.read(first, 0).start()
        window.read(first, 0).wait()

    def program(number: Any, slots: Any) -> Any:
        """One program; `slots` are the buffers of its blocks, and how many blocks of each result were copied back."""
        read, written = slots
        ids, after = loop.ids(number), loop.ids(number + 1)
        more = number + 1 < loop.count
        changes = [_both(more, _differs(w.index(ids), w.index(after))) for w in ins]
        _each(changes, [w.read(after, 1 - slot).start for w, slot in zip(ins, read, strict=True)])
        set_place(ids, loop.grid)
        buffers = [*zip(ins, read, strict=True), *((w, n % 2) for w, n in zip(outs, written, strict=True))]
        body(*(w.buffers.at[slot] for w, slot in buffers))
        ends = [_either(number + 1 == loop.count, _differs(w.index(ids), w.index(after))) for w in outs]
        for window, n, end in zip(outs, written, ends, strict=True):
            _copy_back(window, ids, n, end, overlaps)
        _each(changes, [w.read(after, 1 - slot).wait for w, slot in zip(ins, read, strict=True)])
        flipped = [_chosen(c, 1 - slot, slot) for c, slot in zip(changes, read, strict=True)]
        return flipped, [_chosen(end, n + 1, n) for end, n in zip(ends, written, strict=True)]

    zeros = [np.int32(0)] * len(ins), [np.int32(0)] * len(outs)
    _, written = fori_loop(0, loop.count, program, zeros)
    if overlaps:
        last = loop.ids(np.int32(loop.count - 1))
        for window, n in zip(outs, written, strict=True):
            window.write(last, (n - 1) % 2).wait()


def _copy_back(window: BlockWindow, ids: Ids, n: Any, is_last: Any, overlaps: bool) -> None:
    """After the last program of a block: copy it back, once the block before has been copied back."""

    def start() -> None:
        copy = window.write(ids, n % 2)
        if overlaps:
            when(n > 0)(window.write(ids, (n + 1) % 2).wait)
        copy.start()
        if not overlaps:
            copy.wait()

    when(is_last)(start)


def _each(conditions: Sequence[Any], actions: Sequence[Callable[[], None]]) -> None:
    for condition, action in zip(conditions, actions, strict=True):
        when(condition)(action)


def _differs(first: Sequence[Any], second: Sequence[Any]) -> Any:
    found: Any = False
    for a, b in zip(first, second, strict=True):
        found = _either(found, a != b)
    return found


def _both(a: Any, b: Any) -> Any:
    return b if a is True else a if b is True else False if a is False or b is False else a & b


def _either(a: Any, b: Any) -> Any:
    return b if a is False else a if b is False else True if a is True or b is True else a | b


def _chosen(condition: Any, new: Any, old: Any) -> Any:
    """`new` where the condition holds, of numbers."""
    if isinstance(condition, bool):
        return new if condition else old
    return condition * new + (1 - condition) * old
