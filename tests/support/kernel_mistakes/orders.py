"""Planted mistakes: programs without an order, results that no program wrote, rules of the targets."""
from __future__ import annotations

from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.support.checked_calls import (
    ANY,
    F32,
    GPU,
    I32,
    TPU,
    Parallel,
    call,
    copied_by,
    copy,
    floats,
    like,
    matmul,
    rows,
)
from tests.support.kernel_mistakes.table import mistake
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu, triton as plgpu

# --- programs without an order


@mistake("reads elements of o that program (0, 0, 0) writes, but the two have no order", "o", (0, 0, 1))
def sum_over_a_grid_of_a_gpu() -> Any:
    return matmul((2, 1, 2), GPU, "ijk")


@mistake("reads elements of o that program (0, 0, 0) writes", "o", (0, 0, 1))
def sum_over_a_parallel_axis() -> Any:
    return matmul((2, 1, 2), ANY, "ijk", compiler_params=Parallel(("parallel", "parallel", "parallel")))


@mistake("writes elements of o that program (0,) writes, but they have no order", "o", (1,))
def one_block_for_all_programs() -> Any:
    return copied_by(rows(4), pl.BlockSpec((4,), lambda i: 0), 2, 4, GPU)


@mistake("writes elements of o that program (0,) writes", "o", (1,))
def races_without_a_target() -> Any:
    return copied_by(rows(4), pl.BlockSpec((4,), lambda i: 0), 2, 4, pltpu.InterpretParams(detect_races=True))


@mistake("reads elements of o that program (0,) writes", "o", (1,))
def sum_so_far() -> Any:
    def kernel(x: Any, o: Any) -> None:
        i = pl.program_id(0)
        o[i] = jnp.where(i == 0, 0.0, o[jnp.maximum(i - 1, 0)]) + x[i]

    return call(kernel, like(4), GPU, grid=4)(floats(4))


@mistake("no order", "counts", (1,))
def histogram_of_all_programs() -> Any:
    def kernel(x: Any, start: Any, counts: Any) -> None:
        counts[x[pl.program_id(0)]] += 1

    return call(kernel, like(4, dtype=I32), GPU, grid=4, input_output_aliases={1: 0})(
        np.int32([1, 1, 0, 2]), np.zeros(4, I32)
    )


@mistake("has written, as a result has the same memory; read the result", "x", (1,))
def shift_in_place() -> Any:
    def kernel(x: Any, o: Any) -> None:
        i = pl.program_id(0)
        o[i] = x[jnp.maximum(i - 1, 0)]

    return call(kernel, like(4), GPU, grid=4, input_output_aliases={0: 0})(floats(4))


@mistake("writes elements of o that several programs read", "o", (3,))
def last_added_in_place() -> Any:
    def kernel(x: Any, o: Any) -> None:
        i = pl.program_id(0)
        o[i] = x[3] + i

    return call(kernel, like(4), GPU, grid=4, input_output_aliases={0: 0})(floats(4))


@mistake("reads elements of total that program (0,) writes", "total", (1,))
def scratch_over_a_parallel_axis() -> Any:
    def kernel(x: Any, o: Any, total: Any) -> None:
        total[...] = jnp.where(pl.program_id(0) == 0, 0.0, total[...]) + x[...]
        o[...] = total[...]

    return call(kernel, like(16, 128), TPU, grid=2, in_specs=[rows(8, 128)], out_specs=rows(8, 128),
                scratch_shapes=[pltpu.VMEM((8, 128), F32)],
                compiler_params=Parallel(("parallel",)))(floats(16, 128))  # fmt: skip


@mistake("element (4,) of o depends on total before anything wrote it", "o", (1,))
def scratch_from_another_program_of_a_gpu() -> Any:
    def kernel(x: Any, o: Any, total: Any) -> None:
        total[...] = jnp.where(pl.program_id(0) == 0, 0.0, total[...]) + x[...]
        o[...] = total[...]

    return call(kernel, like(8), GPU, grid=2, in_specs=[rows(4)], out_specs=rows(4),
                scratch_shapes=[pltpu.VMEM((4,), F32)])(floats(8))  # fmt: skip


@mistake("writes elements of o that program (0,) reads, but they have no order", "o", (1,))
def counter_read_while_others_add() -> Any:
    def kernel(start: Any, o: Any, last: Any) -> None:
        plgpu.atomic_add(o, (0,), 1)
        last[0] = o[0]

    whole = pl.BlockSpec(memory_space=pl.ANY)
    counter = call(kernel, (like(1, dtype=I32), like(4, dtype=I32)), GPU, grid=4, in_specs=[whole],
                   out_specs=(whole, rows(1)), input_output_aliases={0: 0})  # fmt: skip
    return counter(np.zeros(1, I32))


# --- results that no program wrote


@mistake("no block of any program has element (4,) of o, and 3 more", "o", ())
def grid_too_short() -> Any:
    return copied_by(rows(4), rows(4), 1)


@mistake("no program writes element (0, 2) of o, and 3 more", "o", (0,))
def half_of_a_block() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[:, 0:2] = x[:, 0:2]

    return call(kernel, like(2, 4), grid=2, in_specs=[rows(1, 4)], out_specs=rows(1, 4))(floats(2, 4))


@mistake("no program writes element (0,) of largest, and 0 more; write all of the block", "largest", ())
def second_result_forgotten() -> Any:
    def kernel(x: Any, o: Any, largest: Any) -> None:
        o[...] = x[...]

    return call(kernel, (like(4), like(1)))(floats(4))


@mistake("no program writes element (1,) of o", "o", ())
def every_other_element() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[pl.ds(0, 4, 2)] = x[...]

    return call(kernel, like(8))(floats(4))


# --- blocks that come back on a TPU


@mistake("comes back to the block of o that program (0, 0, 0) had, and others between did not", "o", (1, 0, 0))
def sum_over_the_first_axis() -> Any:
    return matmul((2, 2, 1), TPU, "kij", 128)


@mistake("comes back to the block of o that program (0,) had", "o", (2,))
def alternate_blocks() -> Any:
    spec = pl.BlockSpec((8, 128), lambda i: (i % 2, 0))
    return call(copy, like(16, 128), TPU, grid=4, in_specs=[rows(8, 128)], out_specs=spec)(floats(32, 128))


# --- rules of the targets


@mistake("the block (3,) of x has a size 3, which is no power of two, as a GPU needs; take 4", "x", None)
def three_elements_on_a_gpu() -> Any:
    return copied_by(rows(3), rows(3), 3, params=GPU)


@mistake("the block (4, 128) of x, of the array float32[16,128], is not in tiles of (8, 128)", "x", None)
def four_rows_on_a_tpu() -> Any:
    return call(copy, like(16, 128), TPU, grid=4, in_specs=[rows(4, 128)], out_specs=rows(4, 128))(floats(16, 128))


@mistake("take (8, 128)", "o", None)
def narrow_block_on_a_tpu() -> Any:
    spec = pl.BlockSpec((8, 64), lambda i: (0, i))
    return call(copy, like(8, 256), TPU, grid=2, in_specs=[pl.BlockSpec((8, 64), memory_space=pltpu.ANY)],
                out_specs=spec)(floats(8, 64))  # fmt: skip


@mistake("take 24.0 MiB of VMEM (x 8.0, o 8.0, buffer 8.0), and the limit is 16.0", "x", None)
def too_much_memory_on_a_tpu() -> Any:
    def kernel(x: Any, o: Any, buffer: Any) -> None:
        o[...] = x[...]

    spec = rows(1024, 1024)
    return call(kernel, like(2048, 1024), TPU, grid=2, in_specs=[spec], out_specs=spec,
                scratch_shapes=[pltpu.VMEM((2048, 1024), F32)])(np.zeros((2048, 1024), F32))  # fmt: skip


# --- the user's own checks


@mistake("debug_check failed: the input is positive", None, (1,))
def checked_condition() -> Any:
    def kernel(x: Any, o: Any) -> None:
        pl.debug_check((x[...] > 0).all(), "the input is positive")
        o[...] = x[...]

    return call(kernel, like(4), grid=2, in_specs=[rows(2)], out_specs=rows(2))(np.float32([1, 2, -3, 4]))


@mistake("debug_check failed: few trips", None, ())
def checked_condition_in_a_loop() -> Any:
    def kernel(x: Any, o: Any) -> None:
        def body(i: Any, v: Any) -> Any:
            pl.debug_check(i < 3, "few trips")
            return v + 1

        o[...] = lax.fori_loop(0, 5, body, x[...])

    return call(kernel, like(4))(floats(4))
