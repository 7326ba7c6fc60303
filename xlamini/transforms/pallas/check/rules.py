"""The rules of a target on the sizes of blocks and on memory, before any program runs."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from xlamini.core.errors.kernel_errors import KernelCheckError
from xlamini.core.program.kernels import Block, Kernel
from xlamini.transforms.pallas.check.copies import SEMAPHORES
from xlamini.transforms.pallas.specs import Buffered

_TILE = (8, 128)
_SCOPED_VMEM = 16 * 2**20
_NOT_COPIED = ("any", "hbm", "smem", *SEMAPHORES)
_MIB = 2**20


def check_rules(kernel: Kernel, target: str | None) -> None:
    """KernelCheckError for a block that the target cannot tile, or for more memory than it has."""
    rules: Sequence[Callable[[Kernel], None]] = ()
    if target is not None:
        rules = (_check_tiles, _check_vmem) if target == "tpu" else (_check_powers,)
    for rule in rules:
        rule(kernel)


def _named_blocks(kernel: Kernel) -> Iterator[tuple[str, Block]]:
    """The blocks that are copied, with the names of their refs."""
    for i, block in enumerate(kernel.blocks):
        if block.memory_space not in _NOT_COPIED:
            yield kernel.name_of(kernel.num_prefetch + i), block


def _check_powers(kernel: Kernel) -> None:
    for name, block in _named_blocks(kernel):
        for size in block.shape:
            if size & (size - 1):
                _fail(
                    kernel, name, f"the block {block.shape} of {name} has a size {size}, which is no power of two, as "
                    f"a GPU needs; take {1 << size.bit_length()}, and mask what is beyond the end",
                )  # fmt: skip


def _check_tiles(kernel: Kernel) -> None:
    for name, block in _named_blocks(kernel):
        tile = _TILE if len(block.sizes) > 1 else (_TILE[1],)
        last = [*zip(block.sizes, block.array.shape, strict=True)][-len(tile) :]
        if any(size % unit and size != n for (size, n), unit in zip(last, tile[-len(last) :], strict=True)):
            _fail(
                kernel, name, f"the block {block.sizes} of {name}, of the array {block.array.str_short(False)}, is not "
                f"in tiles of {tile}: each of its last sizes must be a multiple of the tile's or all of the array's; "
                f"take {_in_tiles(block, tile)}",
            )  # fmt: skip


def _in_tiles(block: Block, tile: tuple[int, ...]) -> tuple[int, ...]:
    """The next larger block that is in tiles."""
    sizes = list(block.sizes)
    for i, unit in enumerate(reversed(tile), 1):
        if i <= len(sizes):
            sizes[-i] = min(math.ceil(sizes[-i] / unit) * unit, block.array.shape[-i])
    return tuple(sizes)


def _check_vmem(kernel: Kernel) -> None:
    """Blocks are in two buffers, of which one is copied while the other is used."""
    limit = getattr(kernel.compiler_params, "vmem_limit_bytes", None) or _SCOPED_VMEM
    sizes = {name: _buffers(kernel, block) * _nbytes(block) for name, block in _named_blocks(kernel)}
    first = len(kernel.refs()) - kernel.num_scratch
    for i, ref in enumerate(kernel.refs()[first:], first):
        if ref.aval.kind not in _NOT_COPIED:
            sizes[kernel.name_of(i)] = ref.aval.nbytes
    if sum(sizes.values()) > limit:
        largest = max(sizes, key=sizes.__getitem__)
        table = ", ".join(f"{name} {size / _MIB:.1f}" for name, size in sizes.items())
        _fail(
            kernel, largest, f"its blocks and scratch memory take {sum(sizes.values()) / _MIB:.1f} MiB of VMEM "
            f"({table}), and the limit is {limit / _MIB:.1f}; take a smaller block of {largest}, or raise "
            "vmem_limit_bytes in compiler_params",
        )  # fmt: skip


def _buffers(kernel: Kernel, block: Block) -> int:
    if isinstance(block.pipeline_mode, Buffered):
        return block.pipeline_mode.buffer_count
    return 1 if kernel.programs == 1 else 2


def _nbytes(block: Block) -> int:
    return math.prod(block.shape) * block.array.dtype.itemsize


def _fail(kernel: Kernel, ref: str, what: str) -> NoReturn:
    raise KernelCheckError(f"kernel {kernel.name}: {what}", None, ref)
