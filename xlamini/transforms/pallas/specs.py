"""What a user says of a kernel's grid and blocks: `BlockSpec`, `GridSpec`, and the memories of a TPU."""
from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from xlamini.core import ShapedArray
from xlamini.core.program.kernels import BlockDim, Blocked, BoundedSlice, Element, Squeezed
from xlamini.core.program.ref_types import AbstractRef


class MemorySpace(enum.Enum):
    """A memory of a TPU; called with a shape and a dtype, it is a buffer there, for `scratch_shapes`.

    >>> MemorySpace.VMEM((8, 128), "float32")
    MemoryRef(shape=(8, 128), dtype=dtype('float32'), memory_space='vmem')
    """

    ANY = "any"
    HBM = "hbm"
    VMEM = "vmem"
    SMEM = "smem"
    SEMAPHORE = "semaphore"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return MemoryRef(tuple(map(operator.index, shape)), np.dtype(dtype), self.value)


@dataclass(frozen=True)
class MemoryRef:
    """A buffer of a kernel's own: its shape, its dtype, and the memory it is in (None: the target's usual one).

    >>> pltpu.VMEM((8, 128), "float32").shape
    (8, 128)
    """

    shape: tuple[int, ...]
    dtype: Any
    memory_space: str | None = None

    def ref_type(self, vma: frozenset[Any] = frozenset()) -> AbstractRef:
        """The type of its ref, whose value varies along these manual axes."""
        return AbstractRef(ShapedArray(self.shape, self.dtype, vma=vma), None, self.memory_space)


squeezed: Final = Squeezed()
ANY, HBM, VMEM, SMEM = MemorySpace.ANY, MemorySpace.HBM, MemorySpace.VMEM, MemorySpace.SMEM


@dataclass(frozen=True)
class Buffered:
    """How many buffers of a block there are, while others are copied: `BlockSpec(pipeline_mode=)`.

    >>> BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=Buffered(3)).pipeline_mode.buffer_count
    3
    """

    buffer_count: int
    use_lookahead: bool = False

    def __post_init__(self) -> None:
        if static_int("Buffered: buffer_count", self.buffer_count) < 1:
            raise ValueError(f"Buffered: buffer_count must be 1 or more, got {self.buffer_count}; write Buffered(2)")


@dataclass(eq=False)
class BlockSpec:
    """How the programs of a grid see an array: the shape of a program's block of it, and which block that is.

    Args:
      block_shape: for each dimension the size of the block; None for one element, a dimension that the ref does not
        have; or `Element`, `Squeezed`, `Blocked`. By default the block is the whole array.
      index_map: takes the indices of the program in the grid, and returns one index for each dimension, which counts
        blocks. By default all are 0.
      pipeline_mode: `Buffered(n)`, on a TPU.
      memory_space: the memory that the block is in, on a TPU; `ANY` leaves the array where it is.

    >>> BlockSpec((8, None), lambda i: (i, 0)).block_shape
    (8, None)
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    memory_space: Any = None

    def __post_init__(self) -> None:
        if callable(self.block_shape):
            raise TypeError("BlockSpec: the block's shape comes first, then the index map; swap the two")
        if self.block_shape is not None and not isinstance(self.block_shape, Iterable):
            raise TypeError(f"BlockSpec: block_shape must be a tuple of sizes, got {self.block_shape!r}; write (8,)")
        if self.index_map is not None and not callable(self.index_map):
            raise TypeError(f"BlockSpec: index_map must be a function of the grid's indices, got {self.index_map!r}")
        if self.pipeline_mode is not None and not isinstance(self.pipeline_mode, Buffered):
            raise TypeError(f"BlockSpec: pipeline_mode must be Buffered(n) or None, got {self.pipeline_mode!r}")
        memory_name(self.memory_space)


class _NoBlockSpec:
    """No BlockSpec: the whole array.

    >>> pl.no_block_spec
    no_block_spec
    """

    def __repr__(self) -> str:
        return "no_block_spec"


no_block_spec: Final = _NoBlockSpec()


@dataclass(eq=False)
class GridSpec:
    """A grid, the blocks of operands and results, and scratch memory, as one argument of `pallas_call`.

    >>> GridSpec(grid=(2,), in_specs=[BlockSpec((4,), lambda i: (i,))]).grid
    (2,)
    """

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()

    num_scalar_prefetch = 0


@dataclass(eq=False)
class PrefetchScalarGridSpec(GridSpec):
    """A `GridSpec` whose first operands are small arrays of ints that index maps may read.

    The kernel and the index maps take their refs: the kernel before those of blocks, the index maps after the indices.

    >>> def copy(order, x, o):
    ...     o[...] = x[...]
    >>> row = BlockSpec((1, 2), lambda i, order: (order[i], 0))
    >>> spec = PrefetchScalarGridSpec(1, (3,), [row], BlockSpec((1, 2), lambda i, order: (i, 0)))
    >>> out = xlamini.ShapeDtypeStruct((3, 2), "int32")
    >>> pl.pallas_call(copy, out, grid_spec=spec)(jnp.array([2, 0, 1]), jnp.arange(6).reshape(3, 2))
    Array([[4, 5],
           [0, 1],
           [2, 3]], dtype=int32)
    """

    num_scalar_prefetch: int = 0  # type: ignore[misc]

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = static_int("PrefetchScalarGridSpec: num_scalar_prefetch", num_scalar_prefetch)
        if self.num_scalar_prefetch < 0:
            raise ValueError(
                f"PrefetchScalarGridSpec: num_scalar_prefetch must be 0 or more, got {num_scalar_prefetch}; count the "
                "operands that index maps read"
            )


def static_int(what: str, x: Any) -> int:
    """An int that a user gave; TypeError for what is none."""
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(f"{what} must be an int, got {x!r}") from None


def block_dim(size: Any) -> BlockDim:
    """One dimension of a block shape."""
    if size is None:
        return Squeezed()
    if isinstance(size, Blocked | Squeezed | Element | BoundedSlice):
        static_int(f"BlockSpec: the block_size of {type(size).__name__}", size.block_size)
        return size
    try:
        return Blocked(operator.index(size))
    except TypeError:
        raise TypeError(
            f"BlockSpec: a block size must be an int or None, got {size!r}; shapes of blocks are static"
        ) from None


def memory_name(space: Any) -> str | None:
    """The name of a memory space that a user gave; ValueError for one that there is not."""
    if space is None:
        return None
    name = str(getattr(space, "value", space)).lower()
    if name not in [each.value for each in MemorySpace] and name != "dma_semaphore":
        names = ", ".join(each.name for each in MemorySpace)
        raise ValueError(f"BlockSpec: memory_space must be one of pallas.tpu's {names}, or None, got {space!r}")
    return name
