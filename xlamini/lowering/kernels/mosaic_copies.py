"""Copies between memories, and semaphores, in Mosaic."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.program.ref_parts import Part
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.mosaic_memory import MosaicRef, part_of_buffer, segments

Operand = tuple[MosaicRef, Part, Sequence[Value]]
"""A part of a ref, with the operands in its starts."""


def _segments(operation: str, present: Sequence[int]) -> str:
    """How many of the operands are each; how many more there may be differs between versions of jaxlib."""
    # Imported here because the module of Mosaic's operations costs 0.1 s.
    from jaxlib.mosaic.python import _tpu_ops_gen

    count = len(getattr(_tpu_ops_gen, operation)._ODS_OPERAND_SEGMENTS)
    return segments([*present, *[0] * (count - len(present))])


def start_copy(ctx: Any, target: Operand, source: Operand, semaphore: Operand) -> None:
    """Copy from one part to another; the semaphore counts the bytes at the target."""
    to, what, counter = (part_of_buffer(ctx, *each) for each in (target, source, semaphore))
    counts = _segments("EnqueueDMAOp", [1, 0, 1, 1])
    ctx.emit("tpu.enqueue_dma", [what, to, counter], [], operandSegmentSizes=counts)


def wait_copy(ctx: Any, target: Operand, source: Operand, semaphore: Operand) -> None:
    """Wait until as many bytes have come as the target has."""
    to, what, counter = (part_of_buffer(ctx, *each) for each in (target, source, semaphore))
    ctx.emit("tpu.wait_dma2", [counter, what, to], [], operandSegmentSizes=segments([1, 1, 1, 0, 0]))


def signal_semaphore(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value], amount: Value) -> None:
    """Add to a semaphore."""
    counts = _segments("SemaphoreSignalOp", [1, 1])
    ctx.emit("tpu.sem_signal", [part_of_buffer(ctx, ref, part, indices), amount], [], operandSegmentSizes=counts)


def wait_semaphore(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value], amount: Value) -> None:
    """Wait until a semaphore has this count, and take it."""
    ctx.emit("tpu.sem_wait", [part_of_buffer(ctx, ref, part, indices), amount], [])


def read_semaphore(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value]) -> Value:
    """The count of a semaphore."""
    return ctx.one("tpu.sem_read", [part_of_buffer(ctx, ref, part, indices)], ctx.int32)
