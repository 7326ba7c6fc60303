"""Planted mistakes: blocks and indices outside, memory that nothing wrote, values from beyond the edge."""
from __future__ import annotations

from typing import Any

import numpy as np

import xlamini
import xlamini.numpy as jnp
from tests.support.checked_calls import (
    F32,
    GPU,
    I32,
    call,
    copied_by,
    floats,
    ints,
    like,
    rows,
)
from tests.support.kernel_mistakes.table import mistake
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu, triton as plgpu

# --- blocks and indices outside


@mistake("the block of x is not in its array: its index map leads to elements 8 to 12 along axis 0", "x", (1,))
def block_behind_the_end() -> Any:
    return copied_by(pl.BlockSpec((4,), lambda i: i + 1), rows(4), 2)


@mistake("leads to elements -4 to 0 along axis 0", "x", (0,))
def block_before_the_start() -> Any:
    return copied_by(pl.BlockSpec((4,), lambda i: i - 1), rows(4), 2)


@mistake("the block of o is not in its array", "o", (2,))
def grid_too_long() -> Any:
    return copied_by(pl.BlockSpec((4,), lambda i: 0), rows(4), 3)


@mistake("leads to elements 6 to 10 along axis 0, of which there are 8", "x", (1,))
def element_block_past_the_end() -> Any:
    return copied_by(pl.BlockSpec((pl.Element(4),), lambda i: 6 * i), rows(4), 2)


@mistake("the block of x is not in its array", "x", (1,))
def prefetched_block_number() -> Any:
    def kernel(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    x_map = pl.BlockSpec((4,), lambda i, t: t[i])
    spec = pltpu.PrefetchScalarGridSpec(1, 2, [x_map], pl.BlockSpec((4,), lambda i, t: i))
    return call(kernel, like(8), grid_spec=spec)(np.int32([0, 2]), floats(8))


@mistake("reads table at index 2 along axis 0, which has 2 elements", "table", (1,))
def index_map_past_the_table() -> Any:
    def kernel(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    x_map = pl.BlockSpec((4,), lambda i, t: t[i + 1])
    spec = pltpu.PrefetchScalarGridSpec(1, 2, [x_map], pl.BlockSpec((4,), lambda i, t: i))
    return call(kernel, like(8), grid_spec=spec)(np.int32([0, 1]), floats(8))


@mistake("reads x at index 6 along axis 0, which has 6 elements; keep the index below the size", "x", (1,))
def slice_past_the_end() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(4 * pl.program_id(0), 4)]

    return call(kernel, like(8), grid=2, out_specs=rows(4))(floats(6))


@mistake("reads x at index 9 along axis 0", "x", ())
def traced_index_past_the_end() -> Any:
    def kernel(n: Any, x: Any, o: Any) -> None:
        o[...] = x[n[0]]

    return call(kernel, like(2))(np.int32([9]), floats(4, 2))


@mistake("reads x at index -1 along axis 0, which has 4 elements; a traced index does not count from", "x", (0,))
def negative_traced_index() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[0] = x[pl.program_id(0) - 1]

    return call(kernel, like(4), grid=4, out_specs=rows(1))(floats(4))


@mistake("writes o at index 4 along axis 0", "o", (3,))
def slice_written_past_the_end() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[pl.ds(pl.program_id(0), 2)] = x[0:2]

    return call(kernel, like(4), grid=4)(floats(4))


@mistake("reads x at index 7 along axis 1, which has 4 elements", "x", ())
def indices_past_the_end() -> Any:
    def kernel(x: Any, i: Any, o: Any) -> None:
        o[...] = x[0, i[...]]

    return call(kernel, like(3))(floats(2, 4), np.int32([0, 7, 1]))


@mistake("writes o at index -2 along axis 0", "o", ())
def negative_indices_written() -> Any:
    def kernel(x: Any, i: Any, o: Any) -> None:
        o[...] = x[...]
        o[i[...]] = x[0:2]

    return call(kernel, like(4))(floats(4), np.int32([1, -2]))


@mistake("reads x at index 8 along axis 0", "x", (2,))
def strided_slice_past_the_end() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(pl.program_id(0), 4, 2)]

    return call(kernel, like(12), grid=3, out_specs=rows(4))(floats(8))


@mistake("element (0, 2) of o depends on x outside of its block", "o", ())
def undefined_value_of_a_lenient_read() -> Any:
    def kernel(x: Any, n: Any, o: Any) -> None:
        o[...] = x[:, pl.ds(n[0], 4)]

    params = pltpu.InterpretParams(out_of_bounds_reads="uninitialized")
    return call(kernel, like(2, 4), params)(floats(2, 4), np.int32([2]))


@mistake("reads x at index 6 along axis 0, which has 6 elements", "x", ())
def index_past_the_end_in_a_loop() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)

        @pl.loop(0, 4)
        def _(i: Any) -> None:
            o[...] += x[pl.ds(2 * i, 2)]

    return call(kernel, like(2))(floats(6))


@mistake("writes o at index 4 along axis 0", "o", (4,))
def index_past_the_end_in_a_branch() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[pl.program_id(0) % 4] = x[0]

        @pl.when(pl.program_id(0) == 4)
        def _() -> None:
            o[pl.program_id(0)] = x[1]

    return call(kernel, like(4), grid=5)(floats(4))


@mistake("reads x at index -1 along axis 0", "x", ())
def negative_index_in_a_call() -> Any:
    def kernel(x: Any, n: Any, o: Any) -> None:
        o[...] = xlamini.jit(lambda i: x[i] + x[i - 1])(n[0])

    return call(kernel, like(2))(floats(4, 2), np.int32([0]))


@mistake("reads x at index 6 along axis 0, which has 6 elements", "x", (1,))
def mask_too_wide() -> Any:
    def kernel(x: Any, o: Any) -> None:
        start = 4 * pl.program_id(0)
        o[...] = plgpu.load(x.at[pl.ds(start, 4)], mask=start + lax.iota(I32, 4) <= 6, other=0.0)

    specs = [pl.BlockSpec(memory_space=pl.ANY)]
    return call(kernel, like(8), GPU, grid=2, in_specs=specs, out_specs=rows(4))(floats(6))


# --- memory that nothing wrote


def _adds_up(dtype: str, first: int | None) -> Any:
    def kernel(x: Any, o: Any, total: Any) -> None:
        if first is not None:

            @pl.when(pl.program_id(0) == first)
            def _() -> None:
                total[...] = jnp.zeros_like(total)

        total[...] += x[...]
        o[...] = total[...]

    x = np.ones(8, dtype)
    return call(kernel, like(8, dtype=dtype), grid=2, in_specs=[rows(4)], out_specs=rows(4),
                scratch_shapes=[pltpu.VMEM((4,), dtype)])(x)  # fmt: skip


@mistake("element (0,) of o depends on total before anything wrote it (read at", "o", (0,))
def sum_without_a_start() -> Any:
    return _adds_up(F32, None)


@mistake("element (0,) of o depends on total before anything wrote it", "o", (0,))
def integer_sum_without_a_start() -> Any:
    return _adds_up(I32, None)


@mistake("depends on total before anything wrote it", "o", (0,))
def sum_started_by_the_wrong_program() -> Any:
    return _adds_up(F32, 1)


@mistake("element (0, 0) of o depends on o before anything wrote it", "o", (1,))
def result_added_to_without_a_start() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] += x[...]

    return call(kernel, like(2, 4), grid=2, in_specs=[rows(1, 4)])(floats(2, 4))


@mistake("element (1,) of o depends on flags before anything wrote it", "o", ())
def undefined_flags() -> Any:
    def kernel(x: Any, o: Any, flags: Any) -> None:
        flags[0] = x[0] > 0
        o[...] = flags[...]

    return call(kernel, like(4, dtype="bool"), scratch_shapes=[pltpu.VMEM((4,), "bool")])(floats(4))


@mistake("an index of x depends on place before anything wrote it", "x", ())
def undefined_index() -> Any:
    def kernel(x: Any, o: Any, place: Any) -> None:
        o[...] = x[place[0]]

    return call(kernel, like(4), scratch_shapes=[pltpu.SMEM((1,), I32)])(floats(2, 4))


@mistake("the choice of a branch depends on state before anything wrote it", "state", ())
def undefined_branch() -> Any:
    def kernel(x: Any, o: Any, state: Any) -> None:
        o[...] = lax.cond(state[0] > 0, lambda v: v + 1, lambda v: v * 2, x[...])

    return call(kernel, like(4), scratch_shapes=[pltpu.SMEM((1,), F32)])(floats(4))


@mistake("the condition of a loop depends on left before anything wrote it", "left", ())
def undefined_number_of_trips() -> Any:
    def kernel(x: Any, o: Any, left: Any) -> None:
        n, v = lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, s[1] * 2), (left[0], x[...]))
        o[...] = v + n

    return call(kernel, like(4), scratch_shapes=[pltpu.SMEM((1,), I32)])(floats(4))


@mistake("depends on buffer 0 of run_scoped before anything wrote it", "o", (1,))
def scoped_memory_kept() -> Any:
    def kernel(x: Any, o: Any) -> None:
        def body(kept: Any) -> None:
            kept[...] = jnp.where(pl.program_id(0) == 0, x[...], kept[...])
            o[...] = kept[...]

        pl.run_scoped(body, pltpu.VMEM((4,), F32))

    return call(kernel, like(8), grid=2, in_specs=[rows(4)], out_specs=rows(4))(floats(8))


# --- values from beyond the edge


@mistake("element (4, 0) of o depends on x beyond the end of its array", "o", (1,))
def mean_of_rows_with_the_edge() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...] - x[...].mean(0)

    return call(kernel, like(6, 2), grid=2, in_specs=[rows(4, 2)], out_specs=rows(4, 2))(floats(6, 2))


@mistake("element (1,) of o depends on x beyond the end of its array", "o", (1,))
def integer_maximum_with_the_edge() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...].max(0, keepdims=True)

    return call(kernel, like(2, dtype=I32), grid=2, in_specs=[rows(4)], out_specs=rows(1))(ints(6))


@mistake("element (0, 0) of o depends on x beyond the end of its array", "o", ())
def softmax_with_the_edge() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = xlamini.nn.softmax(x[...], -1)

    blocks = pl.BlockSpec((2, 8), lambda: (0, 0))
    return call(kernel, like(2, 6), in_specs=[blocks], out_specs=blocks)(floats(2, 6))


@mistake("depends on x beyond the end of its array", "o", (1,))
def product_with_the_edge() -> Any:
    def kernel(x: Any, y: Any, o: Any) -> None:
        start = jnp.where(pl.program_id(0) == 0, 0.0, o[...])
        o[...] = start + jnp.dot(x[...], y[...])

    specs = [pl.BlockSpec((4, 4), lambda k: (0, k)), pl.BlockSpec((4, 4), lambda k: (k, 0))]
    return call(kernel, like(4, 4), grid=2, in_specs=specs)(floats(4, 6), floats(6, 4))


@mistake("element (5,) of o depends on x beyond the end of its array", "o", (1,))
def neighbour_beyond_the_edge() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.roll(x[...], -1)

    return call(kernel, like(6), grid=2, in_specs=[rows(4)], out_specs=rows(4))(floats(6))


@mistake("element (0,) of o depends on x beyond the end of its array", "o", (0,))
def padding_of_an_element_block() -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[0:4] + x[2:6]

    spec = pl.BlockSpec((pl.Element(6, (1, 1)),), lambda i: 4 * i)
    return call(kernel, like(8), grid=2, in_specs=[spec], out_specs=rows(4))(floats(8))
