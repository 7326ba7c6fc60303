"""Which blocks the memory of a TPU holds: its tiles are 8 sublanes of 128 lanes."""
from __future__ import annotations

from xlamini.core import ShapedArray
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.kernels import Block, Element, Kernel
from xlamini.lowering.kernels.calls import name_of_block

_SUBLANES, _LANES = 8, 128


def check_blocks(kernel: Kernel) -> None:
    """KernelError for a block that Mosaic refuses."""
    for i, block in enumerate(kernel.blocks):
        check_dtype(f"pallas_call: {name_of_block(kernel, i)} of {kernel.name}", block.array)
        if any(isinstance(dim, Element) and dim.padding[0] for dim in block.dims):
            raise KernelError(
                f"pallas_call: {kernel.name}: {name_of_block(kernel, i)} has an Element with padding in front, which a "
                "TPU's kernel does not have; pad the array before the call"
            )
        if block.memory_space in (None, "vmem") and not block.is_whole:
            _check(kernel, block, name_of_block(kernel, i))
        if block.memory_space in ("any", "hbm") and block.shape != block.array.shape:
            raise KernelError(
                f"pallas_call: {kernel.name}: {name_of_block(kernel, i)} stays in the main memory of a TPU, so it has "
                "no blocks; leave out the block shape, and copy parts with make_async_copy or emit_pipeline"
            )


def check_dtype(what: str, aval: ShapedArray) -> None:
    """KernelError for complex numbers."""
    if aval.dtype.kind == "c":
        raise KernelError(
            f"{what} is of dtype {aval.dtype.name}, which a TPU's kernel does not have; pass the real and the "
            "imaginary part"
        )


def _units(block: Block) -> tuple[int, ...]:
    """What the last sizes of a block must be multiples of, where they are not the array's."""
    if block.array.ndim > 1:
        return _SUBLANES, _LANES
    return (_LANES * max(4 // block.array.dtype.itemsize, 1),)


def _check(kernel: Kernel, block: Block, name: str) -> None:
    units, shape = _units(block), block.array.shape
    sizes = block.sizes[-len(units) :]
    whole = shape[-len(units) :]
    fits = [_fitting(*each) for each in zip(sizes, whole, units, strict=True)]
    if list(sizes) == fits:
        return
    near = (*block.sizes[: -len(units)], *fits)
    units_text, kind = " and ".join(map(str, units)), block.array.str_short(short_dtypes=False)
    raise KernelError(
        f"pallas_call: {kernel.name}: the block {block.sizes} of {name}, an array {kind}, does not fit a TPU: its "
        f"last {'sizes' if len(units) > 1 else 'size'} must be multiples of {units_text}, or the array's own; the "
        f"nearest block that fits is {near}"
    )


def _fitting(size: int, whole: int, unit: int) -> int:
    """The nearest size that fits."""
    if size == whole or size % unit == 0:
        return size
    below, above = size // unit * unit, min(-(-size // unit) * unit, whole)
    return below if below and size - below <= above - size else above
