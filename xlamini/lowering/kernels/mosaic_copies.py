"""Copies between memories, and semaphores, in Mosaic."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.program.ref_parts import Part
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.mosaic_memory import MosaicRef, segments, part_of_buffer

Operand = tuple[MosaicRef, Part, Sequence[Value]]
"""A part of a ref, with the operands in its starts."""


def start_copy(ctx: Any, target: Operand, source: Operand, semaphore: Operand) -> None:
    """Copy from one part to another; the semaphore counts the bytes at the target."""
    from jaxlib.mosaic.python._tpu_ops_gen import EnqueueDMAOp  # which knows how many operands may be absent

    to, what, counter = (part_of_buffer(ctx, *each) for each in (target, source, semaphore))
    present = [1, 0, 1, 1]
    counts = segments([*present, *[0] * (len(EnqueueDMAOp._ODS_OPERAND_SEGMENTS) - len(present))])
    ctx.emit("tpu.enqueue_dma", [what, to, counter], [], operandSegmentSizes=counts)


def wait_copy(ctx: Any, target: Operand, source: Operand, semaphore: Operand) -> None:
    """Wait until as many bytes have come as the target has."""
    to, what, counter = (part_of_buffer(ctx, *each) for each in (target, source, semaphore))
    ctx.emit("tpu.wait_dma2", [counter, what, to], [], operandSegmentSizes=segments([1, 1, 1, 0, 0]))


def signal_semaphore(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value], amount: Value) -> None:
    """Add to a semaphore."""
    from jaxlib.mosaic.python._tpu_ops_gen import SemaphoreSignalOp

    counts = segments([1, 1, *[0] * (len(SemaphoreSignalOp._ODS_OPERAND_SEGMENTS) - 2)])
    ctx.emit("tpu.sem_signal", [part_of_buffer(ctx, ref, part, indices), amount], [], operandSegmentSizes=counts)


def wait_semaphore(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value], amount: Value) -> None:
    """Wait until a semaphore has this count, and take it."""
    ctx.emit("tpu.sem_wait", [part_of_buffer(ctx, ref, part, indices), amount], [])


def read_semaphore(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value]) -> Value:
    """The count of a semaphore."""
    return ctx.one("tpu.sem_read", [part_of_buffer(ctx, ref, part, indices)], ctx.int32)
