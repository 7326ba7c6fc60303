"""Copies and semaphores under checks: planted mistakes are found, and right copies run."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.checked_calls import ANY, F32, call, floats, like, rows
from xlamini.errors import KernelCheckError
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

pytestmark = pytest.mark.skipif(not hasattr(pltpu, "make_async_copy"), reason="kernels have no copies")


def _run(body: Callable[..., None], params: Any = ANY, size: int = 4) -> Any:
    """A kernel of two programs on refs of an array, a result, a buffer, two semaphores of copies and one of counts."""
    kinds = pltpu.SemaphoreType
    scratch = [pltpu.VMEM((4,), F32), kinds.DMA((2,)), kinds.REGULAR]

    def kernel(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
        body(x, o, buffer, sems, count)

    whole = pl.BlockSpec(memory_space=pl.ANY)
    return call(kernel, like(size), params, grid=2, in_specs=[whole], out_specs=rows(size // 2),
                scratch_shapes=scratch)(floats(8))  # fmt: skip


def _part(x: Any) -> Any:
    return x.at[pl.ds(4 * pl.program_id(0), 4)]


def copies(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    copy = pltpu.make_async_copy(_part(x), buffer, sems.at[0])
    copy.start()
    copy.wait()
    o[...] = buffer[...]


@pytest.mark.parametrize("mode", ["eager", "on_wait"])
def test_right_copies(mode: str) -> None:
    found = _run(copies, pltpu.InterpretParams(dma_execution_mode=mode), 8)
    np.testing.assert_array_equal(found, floats(8))


def test_counts() -> None:
    def body(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
        pltpu.semaphore_signal(count, 2)
        pltpu.semaphore_wait(count, 1)
        pltpu.semaphore_wait(count, 1)
        pltpu.sync_copy(_part(x), buffer)
        o[...] = buffer[...]

    np.testing.assert_array_equal(_run(body, size=8), floats(8))


def no_wait(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    o[...] = x[0:2]
    pltpu.async_copy(_part(x), buffer, sems.at[0])


def early_read(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    copy = pltpu.async_copy(_part(x), buffer, sems.at[0])
    o[...] = buffer[0:2]
    copy.wait()


def no_start(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    pltpu.make_async_copy(_part(x), buffer, sems.at[1]).wait()
    o[...] = buffer[0:2]


def other_semaphore(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    pltpu.async_copy(_part(x), buffer, sems.at[0])
    pltpu.make_async_copy(_part(x), buffer, sems.at[1]).wait()
    o[...] = buffer[0:2]


def source_written(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    buffer[...] = x[0:4]
    copy = pltpu.async_copy(buffer.at[0:2], o, sems.at[0])
    buffer[...] = x[4:8]
    copy.wait()


def target_written(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    copy = pltpu.async_copy(_part(x), buffer, sems.at[0])
    buffer[...] = x[4:8]
    copy.wait()
    o[...] = buffer[0:2]


def part_outside(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    pltpu.sync_copy(x.at[pl.ds(5 * pl.program_id(0), 4)], buffer)
    o[...] = buffer[0:2]


def count_left(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    o[...] = x[0:2]
    pltpu.semaphore_signal(count, 1)


def endless_wait(x: Any, o: Any, buffer: Any, sems: Any, count: Any) -> None:
    o[...] = x[0:2]
    pltpu.semaphore_signal(count, 1)
    pltpu.semaphore_wait(count, 2)


MISTAKES: list[tuple[Callable[..., None], str, str, tuple[int, ...]]] = [
    (no_wait, "a copy to buffer by sems has no wait", "buffer", (0,)),
    (early_read, "element (0,) of o depends on buffer before the wait for a copy to it", "o", (0,)),
    (no_start, "waits by sems for a copy to buffer that nobody has started", "sems", (0,)),
    (other_semaphore, "waits by sems for a copy to buffer that nobody has started", "sems", (0,)),
    (source_written, "buffer was written while it was copied", "buffer", (0,)),
    (target_written, "buffer was written while it was the target of a copy", "buffer", (0,)),
    (part_outside, "reads x at index 8 along axis 0", "x", (1,)),
    (count_left, "count counts 2 at the end, and must count 0", "count", (1,)),
    (endless_wait, "waits without an end: count counts 1, and the wait is for 2", "count", (0,)),
]


@pytest.mark.parametrize(("body", "text", "ref", "program"), MISTAKES, ids=[m[0].__name__ for m in MISTAKES])
def test_mistake_is_found(body: Callable[..., None], text: str, ref: str, program: tuple[int, ...]) -> None:
    with pytest.raises(KernelCheckError) as found:
        _run(body)
    assert text in str(found.value)
    assert (found.value.ref, found.value.program) == (ref, program)
    assert f"{__file__}:" in str(found.value.place)
