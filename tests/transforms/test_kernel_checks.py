"""Kernels under checks: each planted mistake is found, with its program, ref and line; right kernels run as ever."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import ShapeDtypeStruct, lax
from xlamini.errors import KernelCheckError
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

F32, I32 = "float32", "int32"
TPU, GPU, ANY = (pltpu.InterpretParams(target=target) for target in ("tpu", "gpu", None))


class Parallel(NamedTuple):
    """The params of a compiler that runs axes of the grid at the same time."""

    dimension_semantics: tuple[str, ...]
    vmem_limit_bytes: int | None = None


class Mistake(NamedTuple):
    """A call of a kernel with a mistake, and what the error says: a part of its text, the ref, and the program."""

    call: Callable[[], Any]
    text: str
    ref: str | None
    program: tuple[int, ...] | None


MISTAKES: dict[str, Mistake] = {}


def mistake(text: str, ref: str | None, program: tuple[int, ...] | None) -> Callable[[Callable[[], Any]], None]:
    def add(call: Callable[[], Any]) -> None:
        MISTAKES[call.__name__] = Mistake(call, text, ref, program)

    return add


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(F32)


def ints(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=I32).reshape(shape)


def like(*shape: int, dtype: str = F32) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype)


def rows(size: int, *rest: int) -> pl.BlockSpec:
    """Blocks of some rows, by the last index of the program."""
    return pl.BlockSpec((size, *rest), lambda *ids: (ids[-1], *[0] * len(rest)))


def call(kernel: Callable[..., None], out: Any, params: Any = ANY, **options: Any) -> Callable[..., Any]:
    return pl.pallas_call(kernel, out, interpret=params, **options)


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def copied_by(x: pl.BlockSpec, o: pl.BlockSpec, grid: int, size: int = 8, params: Any = ANY) -> Any:
    """A copy of 8 floats by these blocks."""
    return call(copy, like(size), params, grid=grid, in_specs=[x], out_specs=o)(floats(8))


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

    spec = pl.BlockSpec((pl.Element(6, (1, 1)),), lambda i: 4 * i - 1)
    return call(kernel, like(8), grid=2, in_specs=[spec], out_specs=rows(4))(floats(8))


# --- programs without an order


def _matmul(grid: tuple[int, ...], params: Any, order: str, size: int = 8, **options: Any) -> Any:
    """A product of blocks that adds up over the axis k of the grid."""
    k = order.index("k")

    def kernel(x: Any, y: Any, o: Any) -> None:
        start = jnp.where(pl.program_id(k) == 0, 0.0, o[...])
        o[...] = start + jnp.dot(x[...], y[...])

    def blocks(axes: str) -> pl.BlockSpec:
        return pl.BlockSpec((size, size), lambda *ids: tuple(ids[order.index(a)] for a in axes))

    specs = [blocks("ik"), blocks("kj")]
    product = call(kernel, like(2 * size, size), params, grid=grid, in_specs=specs, out_specs=blocks("ij"), **options)
    return product(floats(2 * size, 2 * size), floats(2 * size, size))


@mistake("reads elements of o that program (0, 0, 0) writes, but the two have no order", "o", (0, 0, 1))
def sum_over_a_grid_of_a_gpu() -> Any:
    return _matmul((2, 1, 2), GPU, "ijk")


@mistake("reads elements of o that program (0, 0, 0) writes", "o", (0, 0, 1))
def sum_over_a_parallel_axis() -> Any:
    return _matmul((2, 1, 2), ANY, "ijk", compiler_params=Parallel(("parallel", "parallel", "parallel")))


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
    return _matmul((2, 2, 1), TPU, "kij", 128)


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


WITHOUT_LINE = {
    *("grid_too_short", "half_of_a_block", "second_result_forgotten", "every_other_element"),
    *("alternate_blocks", "sum_over_the_first_axis"),
}  # fmt: skip
"""Mistakes of no line: of the grid, or of a line that is missing."""


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_found(name: str) -> None:
    planted = MISTAKES[name]
    with pytest.raises(KernelCheckError) as found:
        planted.call()
    message = str(found.value)
    assert planted.text in message
    assert (found.value.ref, found.value.program) == (planted.ref, planted.program)
    has_line = planted.program is not None and name not in WITHOUT_LINE and "is not in its array" not in message
    assert not has_line or f"{__file__}:" in str(found.value.place)
    assert planted.program is None or f"program {planted.program}" in message


def test_enough_mistakes() -> None:
    assert len(MISTAKES) >= 40


# --- right kernels


class Right(NamedTuple):
    """A call of a right kernel, and the values that NumPy gives."""

    call: Callable[[], Any]
    values: Callable[[], Any]


def _rms_norm(params: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Of rows of 100 in blocks of 128 columns; a mask leaves out those beyond the edge."""

    def kernel(x: Any, g: Any, o: Any) -> None:
        v = jnp.where(lax.broadcasted_iota(I32, (8, 128), 1) < 100, x[...], 0.0)
        o[...] = v * lax.rsqrt((v * v).sum(-1, keepdims=True) / 100 + 1e-6) * g[...]

    blocks, whole = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((1, 128), lambda i: (0, 0))
    norm = call(kernel, like(30, 100), params, grid=4, in_specs=[blocks, whole], out_specs=blocks)
    return norm, floats(30, 100), floats(1, 100)


def _rms_norm_values() -> np.ndarray:
    x, g = floats(30, 100), floats(1, 100)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def _softmax() -> Any:
    def kernel(x: Any, o: Any) -> None:
        v = x[...]
        e = jnp.exp(v - v.max(-1, keepdims=True))
        o[...] = e / e.sum(-1, keepdims=True)

    return call(kernel, like(6, 16), GPU, grid=2, in_specs=[rows(4, 16)], out_specs=rows(4, 16))(floats(6, 16))


def _softmax_values() -> np.ndarray:
    e = np.exp(floats(6, 16))
    return e / e.sum(-1, keepdims=True)


def _attention() -> Any:
    """Flash attention: each program goes over the keys in blocks of 8."""

    def kernel(q: Any, k: Any, v: Any, o: Any) -> None:
        queries = q[...]

        def step(i: int, state: Any) -> Any:
            most, norm, total = state
            part = pl.ds(8 * i, 8)
            scores = jnp.dot(queries, k[part, :].T)
            top = jnp.maximum(most, scores.max(-1, keepdims=True))
            weights, scale = jnp.exp(scores - top), jnp.exp(most - top)
            return top, norm * scale + weights.sum(-1, keepdims=True), total * scale + jnp.dot(weights, v[part, :])

        state = jnp.full((8, 1), -jnp.inf), jnp.zeros((8, 1)), jnp.zeros((8, 4))
        for i in range(2):
            state = step(i, state)
        o[...] = state[2] / state[1]

    whole = pl.BlockSpec((16, 4), lambda i: (0, 0))
    specs = [rows(8, 4), whole, whole]
    return call(kernel, like(16, 4), GPU, grid=2, in_specs=specs, out_specs=rows(8, 4))(*_queries())


def _queries() -> list[np.ndarray]:
    return [floats(16, 4) + i for i in range(3)]


def _attention_values() -> np.ndarray:
    q, k, v = _queries()
    scores = q @ k.T
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def _in_place() -> Any:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = 2 * x[...] + y[...]

    blocks = [rows(4), rows(4)]
    double = call(kernel, like(8), GPU, grid=2, in_specs=blocks, out_specs=rows(4), input_output_aliases={0: 0})
    return double(floats(8), floats(8))


def _one_row_in_place() -> Any:
    """The rows that no program writes keep the operand's value."""

    def kernel(x: Any, o: Any) -> None:
        o[1] = x[1] + 1

    return call(kernel, like(4, 2), input_output_aliases={0: 0})(floats(4, 2))


def _sums() -> Any:
    """Of rows, in scratch memory that the first program starts and the last one hands over."""

    def kernel(x: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...].sum(0, keepdims=True)

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _() -> None:
            o[...] = total[...]

    return call(kernel, like(1, 128), TPU, grid=4, in_specs=[rows(8, 128)], out_specs=pl.BlockSpec((1, 128)),
                scratch_shapes=[pltpu.VMEM((1, 128), F32)])(floats(32, 128))  # fmt: skip


_TABLE = np.int32([2, 0, 1])


def _permuted() -> Any:
    def kernel(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...] + table[pl.program_id(0)]

    x_map = pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))
    spec = pltpu.PrefetchScalarGridSpec(1, 3, [x_map], pl.BlockSpec((8, 128), lambda i, t: (i, 0)))
    return call(kernel, like(24, 128), TPU, grid_spec=spec)(_TABLE, floats(24, 128))


def _permuted_values() -> np.ndarray:
    return (floats(24, 128).reshape(3, 8, 128)[_TABLE] + _TABLE[:, None, None]).reshape(24, 128)


def _counts() -> Any:
    """How often each number is there, by integers alone, of 10 elements in blocks of 4."""

    def kernel(x: Any, o: Any) -> None:
        i = pl.program_id(0)
        place = 4 * i + lax.iota(I32, 4)
        hits = (x[...][:, None] == lax.iota(I32, 4)) & (place < 10)[:, None]
        o[...] = jnp.where(i == 0, 0, o[...]) + hits.sum(0, dtype=I32)

    return call(kernel, like(4, dtype=I32), grid=3, in_specs=[rows(4)], out_specs=pl.BlockSpec((4,)))(ints(10) % 4)


def _gathered() -> Any:
    def kernel(x: Any, i: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)
        o[i[...]] = x[i[...], 1]

    return call(kernel, like(4), GPU)(floats(4, 2), np.int32([3, 0]))


def _gathered_values() -> np.ndarray:
    x = floats(4, 2)
    return np.float32([x[0, 1], 0, 0, x[3, 1]])


def _neighbours() -> Any:
    """Of element blocks with padding, whose values a mask leaves out."""

    def kernel(x: Any, o: Any) -> None:
        left = jnp.where((pl.program_id(0) == 0) & (lax.iota(I32, 4) == 0), 0.0, x[0:4])
        o[...] = left + x[1:5]

    spec = pl.BlockSpec((pl.Element(6, (1, 1)),), lambda i: 4 * i - 1)
    return call(kernel, like(8), grid=2, in_specs=[spec], out_specs=rows(4))(floats(8))


RIGHT = {
    "masked edge": Right(lambda: _rms_norm(TPU)[0](*_rms_norm(TPU)[1:]), _rms_norm_values),
    "product": Right(lambda: _matmul((2, 1, 2), TPU, "ijk", 128), lambda: floats(256, 256) @ floats(256, 128)),
    "softmax": Right(_softmax, _softmax_values),
    "attention": Right(_attention, _attention_values),
    "alias": Right(_in_place, lambda: 3 * floats(8)),
    "part of an alias": Right(_one_row_in_place, lambda: floats(4, 2) + np.float32([[0], [1], [0], [0]])),
    "scratch": Right(_sums, lambda: floats(32, 128).sum(0, keepdims=True)),
    "prefetched scalars": Right(_permuted, _permuted_values),
    "integers": Right(_counts, lambda: np.bincount(np.arange(10) % 4)),
    "gather and scatter": Right(_gathered, _gathered_values),
    "padding": Right(_neighbours, lambda: floats(8) + np.concatenate([[0], floats(8)[:-1]])),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernel(name: str) -> None:
    np.testing.assert_allclose(RIGHT[name].call(), RIGHT[name].values(), rtol=1e-4, atol=1e-5)


def test_transformed() -> None:
    """The checked kernel has the values and derivatives of the scan, and its mistakes, under transformations too."""
    norm, x, g = _rms_norm(ANY)
    fast = _rms_norm(True)[0]
    np.testing.assert_allclose(xlamini.jit(norm)(x, g), norm(x, g), rtol=1e-6)
    stack = np.stack([x, 2 * x])
    batches = [xlamini.vmap(f, (0, None))(stack, g) for f in (norm, fast)]
    np.testing.assert_allclose(*batches, rtol=1e-5)
    slopes = [xlamini.value_and_grad(lambda x, f=f: (f(x, g) ** 3).sum())(x) for f in (norm, fast)]
    np.testing.assert_allclose(slopes[0][0], slopes[1][0], rtol=1e-5)
    np.testing.assert_allclose(slopes[0][1], slopes[1][1], rtol=1e-4, atol=1e-5)


def _mean(x: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...] - x[...].mean(0)

    return call(kernel, like(6, 2), grid=2, in_specs=[rows(4, 2)], out_specs=rows(4, 2))(x)


@pytest.mark.parametrize(
    ("transformed", "program"),
    [
        (xlamini.jit(_mean), (1,)),
        (xlamini.jit(xlamini.value_and_grad(lambda x: _mean(x).sum())), (1,)),
        (lambda x: xlamini.vmap(_mean)(x[None]), (0, 1)),
        (xlamini.grad(lambda x: _mean(x).sum()), (1,)),
    ],
)
def test_mistake_under_transformations(transformed: Callable[..., Any], program: tuple[int, ...]) -> None:
    with pytest.raises(KernelCheckError, match="depends on x beyond the end of its array") as found:
        xlamini.block_until_ready(transformed(floats(6, 2)))
    assert found.value.program == program


# --- parameters


def test_order_of_programs() -> None:
    seen: list[tuple[int, ...]] = []
    params = pltpu.InterpretParams(
        detect_races=True, random_seed=3, grid_point_recorder=lambda ids, core: seen.append(tuple(map(int, ids)))
    )
    copied_by(rows(1), rows(1), 8, params=params)
    assert seen != sorted(seen)
    assert sorted(seen) == [(i,) for i in range(8)]


def test_memory_of_zeros() -> None:
    """Memory that nothing wrote is 0, and no mistake."""

    def kernel(x: Any, o: Any, total: Any) -> None:
        total[...] += x[...]
        o[0:2] = total[0:2]

    params = pltpu.InterpretParams(uninitialized_memory="zero")
    found = call(kernel, like(4), params, scratch_shapes=[pltpu.VMEM((4,), F32)])(np.ones(4, F32))
    np.testing.assert_array_equal(found, [1, 1, 0, 0])


def test_operations_of_floats_skipped() -> None:
    params = pltpu.InterpretParams(skip_floating_point_ops=True)
    found = call(lambda x, o: o.set(x[...] + 1, slice(None)), like(4), params)(floats(4))
    np.testing.assert_array_equal(found, np.full(4, np.inf))


def test_choices_of_params() -> None:
    with pytest.raises(ValueError, match="target must be None or 'tpu' or 'gpu', got 'cpu'"):
        pltpu.InterpretParams(target="cpu")


def test_other_runs_ignore_checks() -> None:
    def kernel(x: Any, o: Any) -> None:
        pl.debug_check(x[0] > 0, "the input is positive")
        o[...] = x[...]

    def run(x: Any) -> Any:
        return pl.pallas_call(kernel, like(2), interpret=True)(x)

    x = np.float32([-1, 2])
    np.testing.assert_array_equal(run(x), x)
    np.testing.assert_array_equal(xlamini.vmap(run)(x[None])[0], x)
    np.testing.assert_array_equal(xlamini.jit(xlamini.grad(lambda x: run(x).sum()))(x), [1, 1])
    with pytest.raises(TypeError, match="debug_check: the condition must be a bool, got float32"):
        pl.debug_check(np.float32(1.0), "a number")


def test_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Once a program, in the checking interpreter and in the scan."""

    def kernel(x: Any, o: Any) -> None:
        pl.debug_print("x is", x[0])
        pl.debug_print("program {}", pl.program_id(0))
        o[...] = x[...]

    for params in (ANY, True):
        run = call(kernel, like(2), params, grid=2, in_specs=[rows(1)], out_specs=rows(1))
        xlamini.block_until_ready(run(np.float32([3, 4])))
        xlamini.effects_barrier()
        assert capsys.readouterr().out.split("\n")[:-1] == ["x is 3.0", "program 0", "x is 4.0", "program 1"]
