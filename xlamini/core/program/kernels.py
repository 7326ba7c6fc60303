"""A kernel: a program over refs to blocks of arrays, and the grid of its runs."""
from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from xlamini.core.caching.structure import structural_key
from xlamini.core.program.avals import ShapedArray
from xlamini.core.program.jaxpr import Jaxpr


@dataclass(frozen=True)
class Blocked:
    """A dimension of a block of `block_size` elements; its index counts blocks. An int in a block shape is the same.

    >>> pl.BlockSpec((Blocked(8), Blocked(128)), lambda i: (i, 0)).block_shape
    (Blocked(block_size=8), Blocked(block_size=128))
    """

    block_size: int


@dataclass(frozen=True)
class Squeezed:
    """A dimension of a block of one element, which the ref does not have; None in a block shape is the same.

    >>> def double(x, o):
    ...     o[...] = 2 * x[...]  # x and o have the shape (4,)
    >>> row = pl.BlockSpec((Squeezed(), 4), lambda i: (i, 0))
    >>> out = xlamini.ShapeDtypeStruct((3, 4), "float32")
    >>> pl.pallas_call(double, out, grid=3, in_specs=[row], out_specs=row)(jnp.ones((3, 4))).sum()
    Array(24., dtype=float32)
    """

    block_size = 1


@dataclass(frozen=True)
class Element:
    """A dimension of a block of `block_size` elements; its index counts elements, padding included.

    The array has `padding` more elements in front and behind, whose values are not defined; 0 is the first in front.

    >>> def sums(x, o):
    ...     o[0] = x[...].sum()
    >>> three, one = pl.BlockSpec((Element(3),), lambda i: (i,)), pl.BlockSpec((1,), lambda i: (i,))
    >>> out = xlamini.ShapeDtypeStruct((4,), "float32")
    >>> pl.pallas_call(sums, out, grid=4, in_specs=[three], out_specs=one)(jnp.arange(6.0))
    Array([ 3.,  6.,  9., 12.], dtype=float32)
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class BoundedSlice:
    """A dimension of a block of at most `block_size` elements; its index is a slice `ds(start, size)`.

    It is not built: `pallas_call` refuses it, where `Element` and a mask do the same.

    >>> BoundedSlice(8)
    BoundedSlice(block_size=8)
    """

    block_size: int


BlockDim = Blocked | Squeezed | Element | BoundedSlice
"""One dimension of a block: how many elements it has, and what its index counts.

>>> pl.BlockDim
xlamini.core.program.kernels.Blocked | xlamini.core.program.kernels.Squeezed | ...
"""


@dataclass(frozen=True)
class Block:
    """How the programs of a grid see one operand or result: the shape of their block of it, and which block it is.

    `index_map` takes the grid's indices, int32, then the refs of prefetched scalars; it returns an int32 for each
    dimension. `memory_space` is the name of the memory that the ref is in, "any" for an array that is not copied.
    """

    array: ShapedArray
    dims: tuple[BlockDim, ...]
    index_map: Jaxpr
    memory_space: str | None = None
    pipeline_mode: Any = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of the block in each dimension of the array."""
        return tuple(d.block_size for d in self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the ref."""
        return tuple(d.block_size for d in self.dims if type(d) is not Squeezed)

    @property
    def is_whole(self) -> bool:
        """Whether each program sees the whole array."""
        return self.sizes == self.array.shape and not any(any(getattr(d, "padding", ())) for d in self.dims)

    def _key(self) -> Any:
        return self.array, self.dims, structural_key(self.index_map), self.memory_space, self.pipeline_mode

    def __eq__(self, other: object) -> bool:
        return type(other) is Block and (self is other or self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())


class CostEstimate(NamedTuple):
    """What one call of a kernel costs, as the user says: `pallas_call(..., cost_estimate=)`.

    >>> CostEstimate(flops=1024, transcendentals=0, bytes_accessed=8192).flops
    1024
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


_SCOPED = " of run_scoped"


@dataclass(frozen=True)
class Kernel:
    """A kernel and its grid.

    `jaxpr` takes the indices of the program in the grid, int32, then refs: of prefetched scalars, of the blocks of
    operands, of those of results, and of scratch memory, whose type says in which memory it is (`AbstractRef.kind`).
    It returns nothing. `blocks` are those of operands, then of results. `aliases` are pairs of an operand, counted with
    the prefetched scalars, and the result that starts with its value. `compiler_params` are for one target.
    """

    name: str
    jaxpr: Jaxpr
    grid: tuple[int, ...]
    blocks: tuple[Block, ...]
    num_outputs: int
    num_prefetch: int = 0
    aliases: tuple[tuple[int, int], ...] = ()
    interpret: Any = False
    compiler_params: Any = None
    cost_estimate: CostEstimate | None = None
    ref_names: tuple[str, ...] = ()
    """The kernel function's names of the refs, for messages."""

    @property
    def num_inputs(self) -> int:
        """The number of operands that are not prefetched scalars."""
        return len(self.blocks) - self.num_outputs

    @property
    def num_scratch(self) -> int:
        """The number of buffers of its own."""
        return len(self.jaxpr.invars) - len(self.grid) - self.num_prefetch - len(self.blocks)

    @property
    def programs(self) -> int:
        """The number of runs."""
        return math.prod(self.grid)

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the results."""
        return [block.array for block in self.blocks[self.num_inputs :]]

    def operand_avals(self) -> list[ShapedArray]:
        """The types of the operands: the prefetched scalars', and the arrays'."""
        first = len(self.grid)
        prefetch = [_value_type(v) for v in self.jaxpr.invars[first : first + self.num_prefetch]]
        return [*prefetch, *(block.array for block in self.blocks[: self.num_inputs])]

    def refs(self) -> list[Any]:
        """The variables of the refs."""
        return self.jaxpr.invars[len(self.grid) :]

    def name_of(self, ref: int) -> str:
        """The name of a ref, by its position among them; buffers of `run_scoped` come after those with names."""
        names = self.ref_names
        return names[ref] if ref < len(names) else f"buffer {ref - len(names)}{_SCOPED}"

    def is_scoped(self, ref: int) -> bool:
        """Whether a ref is a buffer of `run_scoped`, which is undefined at the start of each program."""
        return self.name_of(ref).endswith(_SCOPED)

    def _key(self) -> Any:
        rest = [getattr(self, f.name) for f in fields(self) if f.name != "jaxpr"]
        return structural_key(self.jaxpr), *rest

    def __eq__(self, other: object) -> bool:
        return type(other) is Kernel and (self is other or self._key() == other._key())

    def __hash__(self) -> int:
        return hash((structural_key(self.jaxpr), self.grid, self.num_outputs))


def _value_type(ref: Any) -> ShapedArray:
    return ref.aval.inner_aval
