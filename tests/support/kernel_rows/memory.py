"""Kernels whose work is in where they read and write: blocks, parts at moving places, scratch memory, aliases."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import xlamini
import xlamini.numpy as jnp
from tests.support.kernel_rows.row import Row, bools, floats, ints, like
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu
from xlamini.transforms.pallas import triton_memory as pltriton

TPU, GPU = ("tpu",), ("cuda",)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def _done(x: Any) -> None:
    """Nothing, as a kernel returns."""


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    yield from blocks()
    yield from parts()
    yield from writes()
    yield from of_a_tpu()
    yield from odd_sizes()
    yield from batches()
    yield from loops()
    yield from of_a_gpu()


def blocks() -> Iterator[Row]:
    """Which block a program sees."""
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int8, np.uint32, np.bool_):
        x = bools(30, 128) if dtype is np.bool_ else ints(30, 128, dtype=dtype) if np.dtype(dtype).kind in "iu" else floats(30, 128, dtype=dtype)
        call = pl.pallas_call(copy, like((30, 128), dtype), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
        yield Row(f"ragged copy {np.dtype(dtype).name}", call, [x], lambda x: x, 0.0)
    call = pl.pallas_call(lambda x, y, o: o.set(x[...] + y[...]), like((40, 256), "float32"), grid=(5, 2),
                          in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j)), pl.BlockSpec((1, 128), lambda i, j: (0, j))], out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)))  # fmt: skip
    yield Row("a grid of two axes", call, [floats(40, 256), floats(1, 256)], lambda x, y: x + y)
    backwards = pl.BlockSpec((8, 128), lambda i: (3 - i, 0))
    call = pl.pallas_call(copy, like((32, 128), "float32"), grid=(4,), in_specs=[backwards], out_specs=ROWS)
    yield Row("blocks backwards", call, [floats(32, 128)], lambda x: x.reshape(4, 8, 128)[::-1].reshape(32, 128))
    squeezed = pl.BlockSpec((None, 8, 128), lambda i, j: (i, j, 0))
    call = pl.pallas_call(copy, like((3, 20, 128), "float32"), grid=(3, 3), in_specs=[squeezed], out_specs=squeezed)
    yield Row("a squeezed dimension", call, [floats(3, 20, 128)], lambda x: x)
    middle = pl.BlockSpec((8, None, 128), lambda i: (0, i, 0))
    call = pl.pallas_call(copy, like((4, 8, 128), "float32"), grid=(4,), in_specs=[middle], out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)))
    yield Row("a squeezed dimension in the middle", call, [floats(8, 4, 128)], lambda x: x.transpose(1, 0, 2), targets=GPU)
    call = pl.pallas_call(copy, like((1024,), "float32"), grid=(2,), in_specs=[pl.BlockSpec((512,), lambda i: (i,))], out_specs=pl.BlockSpec((512,), lambda i: (i,)))
    yield Row("vectors", call, [floats(1024)], lambda x: x)
    call = pl.pallas_call(lambda x, o: o.set(x[...] * pl.program_id(0)), like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("by the program's number", call, [floats(32, 128)], lambda x: x * np.repeat(np.arange(4), 8)[:, None])
    call = pl.pallas_call(lambda a, x, o: o.set(x[...] * a[...]), like((8, 128), "float32"))
    yield Row("a scalar operand", call, [np.float32(2.5), floats(8, 128)], lambda a, x: a * x)
    overlapping = pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (4 * i, 0))
    call = pl.pallas_call(copy, like((24, 128), "float32"), grid=(3,), in_specs=[overlapping], out_specs=ROWS)
    yield Row("blocks that overlap", call, [floats(16, 128)], lambda x: np.concatenate([x[4 * i : 4 * i + 8] for i in range(3)]))
    three = pl.BlockSpec((8, 128), lambda a, b, c, d: (a * 8 + b * 4 + c * 2 + d, 0))
    call = pl.pallas_call(copy, like((128, 128), "float32"), grid=(2, 2, 2, 2), in_specs=[three], out_specs=three)
    yield Row("a grid of four axes", call, [floats(128, 128)], lambda x: x)


def parts() -> Iterator[Row]:
    """Reads of parts of a ref."""
    x = floats(32, 128)
    read = lambda index: pl.pallas_call(lambda x, o: o.set(x[index]), like(x[index].shape, "float32"))
    for name, index in {
        "rows from a number on": np.s_[8:16, :], "odd rows": np.s_[4:20:2, :], "one row": np.s_[3:4, :],
        "columns": np.s_[:, 0:64], "a row without its dimension": np.s_[5], "rows that are not aligned": np.s_[3:11],
    }.items():  # fmt: skip
        yield Row(f"reads {name}", read(index), [x], lambda x, index=index: x[index])

    def moving(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(pl.program_id(0) * 4, 8), :]

    call = pl.pallas_call(moving, like((32, 128), "float32"), grid=(4,), out_specs=ROWS)
    yield Row("reads at a moving place", call, [x], lambda x: np.concatenate([x[4 * i : 4 * i + 8] for i in range(4)]))

    def strided(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(pl.program_id(0), 8, 4), :]

    call = pl.pallas_call(strided, like((32, 128), "float32"), grid=(4,), out_specs=ROWS)
    yield Row("reads with a stride at a moving place", call, [x], lambda x: np.concatenate([x[i::4] for i in range(4)]))

    def row_by_number(i: Any, x: Any, o: Any) -> None:
        o[...] = x[pl.ds(i[0], 8), :] + x[i[1]][None, :]

    call = pl.pallas_call(row_by_number, like((8, 128), "float32"), in_specs=[pl.BlockSpec(memory_space=None), pl.BlockSpec()])
    numbers = np.array([7, 21], np.int32)
    yield Row("reads at operands", call, [numbers, x], lambda i, x: x[i[0] : i[0] + 8] + x[i[1]][None], targets=GPU)

    def loop(x: Any, o: Any) -> None:
        o[...] = lax.fori_loop(0, 4, lambda i, total: total + x[pl.ds(i * 8, 8), :], jnp.zeros((8, 128)))

    call = pl.pallas_call(loop, like((8, 128), "float32"))
    yield Row("adds up parts in a loop", call, [x], lambda x: x.reshape(4, 8, 128).sum(0))

    def ragged(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(8, 8), :] + x[pl.ds(0, 8), :]

    block = pl.BlockSpec((16, 128), lambda i: (i, 0))
    call = pl.pallas_call(ragged, like((16, 128), "float32"), grid=(2,), in_specs=[block], out_specs=ROWS)
    expected = lambda x: np.concatenate([x[:8] + x[8:16], x[16:24] + x[24:32]])
    yield Row("parts of blocks", call, [x], expected)


def writes() -> Iterator[Row]:
    """Writes of parts of a ref, and of refs that have been written."""
    x = floats(16, 128)

    def halves(x: Any, o: Any) -> None:
        o[0:8, :] = x[8:16, :]
        o[pl.ds(8, 8), :] = 2 * x[0:8, :]

    yield Row("writes halves", pl.pallas_call(halves, like((16, 128), "float32")), [x], lambda x: np.concatenate([x[8:], 2 * x[:8]]))

    def odd(x: Any, o: Any) -> None:
        o[...] = x[...]
        o[pl.ds(1, 8, 2), :] = -x[pl.ds(0, 8, 2), :]

    def odd_expected(x: np.ndarray) -> np.ndarray:
        out = x.copy()
        out[1::2] = -x[::2]
        return out

    yield Row("writes odd rows", pl.pallas_call(odd, like((16, 128), "float32")), [x], odd_expected)

    def numbers(x: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)
        o[3] = x[5] + 1
        o[pl.ds(8, 4), :] += x[0:4, :]
        o[...] *= 2

    def numbers_expected(x: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        out[3], out[8:12] = 2 * x[5] + 2, 2 * x[:4]
        return out

    yield Row("writes and reads again", pl.pallas_call(numbers, like((16, 128), "float32")), [x], numbers_expected)

    def fill(o: Any) -> None:
        o[...] = jnp.full((8, 128), pl.program_id(0), "int32")

    call = pl.pallas_call(fill, like((32, 128), "int32"), grid=(4,), out_specs=ROWS)
    yield Row("no operand", call, [], lambda: np.repeat(np.arange(4), 8)[:, None] * np.ones((1, 128), int))

    def in_place(x: Any, o: Any) -> None:
        o[...] = o[...] + x[...]

    call = pl.pallas_call(in_place, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS, input_output_aliases={0: 0})
    yield Row("an alias", call, [floats(32, 128)], lambda x: 2 * x, targets=GPU)

    def replaced(x: Any, o: Any) -> None:
        o[...] = x[...] * 3

    call = pl.pallas_call(replaced, like((32, 128), "float32"), grid=(2,), in_specs=[ROWS], out_specs=ROWS, input_output_aliases={0: 0})
    yield Row("an alias of which a part is written", call, [floats(32, 128)], lambda x: np.concatenate([3 * x[:16], x[16:]]))

    def chosen(x: Any, o: Any) -> None:
        o[...] = lax.cond(pl.program_id(0) % 2 == 0, lambda: x[...], lambda: -x[...])

    call = pl.pallas_call(chosen, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("a branch", call, [floats(32, 128)], lambda x: x * np.repeat([1, -1, 1, -1], 8)[:, None])

    def switched(x: Any, o: Any) -> None:
        v = x[...]
        o[...] = lax.switch(pl.program_id(0), [lambda v: v, lambda v: v * v, lambda v: -v], v)

    call = pl.pallas_call(switched, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("a switch", call, [floats(32, 128)], lambda x: np.concatenate([x[:8], x[8:16] ** 2, -x[16:]]))

    def collatz(o: Any) -> None:
        step = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
        o[...] = jnp.full((8, 128), lax.while_loop(lambda s: s[0] != 1, step, (pl.program_id(0) + 5, 0))[1])

    call = pl.pallas_call(collatz, like((32, 128), "int32"), grid=(4,), out_specs=ROWS)
    yield Row("a while loop", call, [], lambda: np.repeat([5, 8, 16, 3], 8)[:, None] * np.ones((1, 128), int))

    def when(x: Any, o: Any) -> None:
        o[...] = x[...]

        @pl.when(pl.program_id(0) > 1)
        def _() -> None:
            o[...] = o[...] + 1

    call = pl.pallas_call(when, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("when", call, [floats(32, 128)], lambda x: x + np.repeat([0, 0, 1, 1], 8)[:, None])


def odd_sizes() -> Iterator[Row]:
    """Arrays that no block divides, in both dimensions."""
    block = pl.BlockSpec((16, 128), lambda i, j: (i, j))
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int32):
        x = floats(37, 200, high=50).astype(dtype)
        call = pl.pallas_call(lambda x, o: o.set(x[...] + x[...]), like((37, 200), dtype), grid=(3, 2), in_specs=[block], out_specs=block)
        yield Row(f"ragged in both dimensions {np.dtype(dtype).name}", call, [x], lambda x: x + x)
    turned = pl.BlockSpec((128, 128), lambda i, j: (j, i))
    square = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    call = pl.pallas_call(lambda x, o: o.set(x[...].T), like((200, 150), "float32"), grid=(2, 2), in_specs=[square], out_specs=turned)
    yield Row("ragged transpose", call, [floats(150, 200)], lambda x: x.T)
    call = pl.pallas_call(lambda x, o: o.set(x[...] * 2), like((5, 77), "float32"))
    yield Row("a whole array of odd sizes", call, [floats(5, 77)], lambda x: 2 * x, targets=TPU)
    call = pl.pallas_call(lambda x, o: o.set(x[...].sum(0, keepdims=True)), like((1, 77), "float32"))
    yield Row("a sum of odd sizes", call, [floats(5, 77)], lambda x: x.sum(0, keepdims=True), targets=TPU)
    one = pl.BlockSpec((1, 128), lambda i: (i, 0))
    call = pl.pallas_call(lambda x, o: o.set(x[...] * 2), like((5, 128), "float32"), grid=(5,), in_specs=[one], out_specs=one)
    yield Row("single rows", call, [floats(5, 128)], lambda x: 2 * x, targets=GPU)
    call = pl.pallas_call(lambda x, o: o.set(x[...] * 2), like((700,), "float32"), grid=(2,), in_specs=[pl.BlockSpec((512,), lambda i: (i,))], out_specs=pl.BlockSpec((512,), lambda i: (i,)))
    yield Row("ragged vectors", call, [floats(700)], lambda x: 2 * x)
    wide = pl.BlockSpec((8, 256), lambda i: (i, 0))
    call = pl.pallas_call(lambda x, o: o.set(x[...] * 2), like((16, 200), "float32"), grid=(2,), in_specs=[wide], out_specs=wide)
    yield Row("a block wider than the array", call, [floats(16, 200)], lambda x: 2 * x, targets=GPU)


def batches() -> Iterator[Row]:
    """vmap of kernels."""
    call = pl.pallas_call(lambda x, y, o: o.set(x[...] * y[...]), like((30, 128), "float32"), grid=(4,), in_specs=[ROWS, pl.BlockSpec((1, 128), lambda i: (0, 0))], out_specs=ROWS)
    yield Row("vmap", xlamini.vmap(call), [floats(3, 30, 128), floats(3, 1, 128)], lambda x, y: x * y)
    yield Row("vmap of one operand", xlamini.vmap(call, (1, None)), [floats(30, 3, 128), floats(1, 128)], lambda x, y: x.transpose(1, 0, 2) * y)
    twice = xlamini.vmap(xlamini.vmap(call, (0, None)), (None, 0))
    yield Row("vmap of vmap", twice, [floats(2, 30, 128), floats(3, 1, 128)], lambda x, y: x[None] * y[:, None])


def loops() -> Iterator[Row]:
    """Loops and branches whose values are in registers."""
    x = floats(8, 128)

    def nested(x: Any, o: Any) -> None:
        v = x[...]
        inner = lambda i: lambda j, s: s + v * (i - j)
        o[...] = lax.fori_loop(0, 3, lambda i, s: lax.fori_loop(0, i + 1, inner(i), s), jnp.zeros((8, 128)))

    total = sum(i - j for i in range(3) for j in range(i + 1))
    yield Row("nested loops", pl.pallas_call(nested, like((8, 128), "float32")), [x], lambda x: x * total)

    def until(x: Any, o: Any) -> None:
        v, steps = lax.while_loop(lambda s: s[0].max() < 100, lambda s: (s[0] * 2 + 1, s[1] + 1), (jnp.abs(x[...]), 0))
        o[...] = v + steps

    def until_expected(x: np.ndarray) -> np.ndarray:
        v, steps = np.abs(x), 0
        while v.max() < 100:
            v, steps = v * 2 + 1, steps + 1
        return v + steps

    yield Row("a loop until a maximum", pl.pallas_call(until, like((8, 128), "float32")), [x], until_expected)

    def branches(x: Any, o: Any) -> None:
        step = lambda i, v: lax.cond(i % 2 == 0, lambda v: v + 1, lambda v: v * 2, v)
        o[...] = lax.fori_loop(0, 5, step, x[...])

    yield Row("branches in a loop", pl.pallas_call(branches, like((8, 128), "float32")), [x], lambda x: ((x + 1) * 2 + 1) * 2 + 1)

    def by_operand(n: Any, x: Any, o: Any) -> None:
        o[...] = lax.fori_loop(0, n[0], lambda i, v: v + i, x[...])

    specs = [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()]
    call = pl.pallas_call(by_operand, like((8, 128), "float32"), in_specs=specs)
    yield Row("a loop of a number of trips", call, [np.array([5], np.int32), x], lambda n, x: x + 10, targets=TPU)
    call = pl.pallas_call(by_operand, like((8, 128), "float32"))
    yield Row("a loop of a number of trips, GPU", call, [np.array([5], np.int32), x], lambda n, x: x + 10, targets=GPU)
    for dtype in (np.uint8, np.int16, np.uint32):
        call = pl.pallas_call(lambda i, x, o: o.set(x[pl.ds(i[0], 8), :]), like((8, 128), "float32"))
        yield Row(f"a place of {np.dtype(dtype).name}", call, [np.array([200], dtype), floats(256, 128)], lambda i, x: x[200:208], targets=GPU)

    def summed(x: Any, o: Any) -> None:
        o[...] = lax.scan(lambda s, i: (s + i * x[...], None), jnp.zeros((8, 128)), jnp.arange(4, dtype="float32"))[0]

    yield Row("a scan", pl.pallas_call(summed, like((8, 128), "float32")), [x], lambda x: 6 * x)

    def looped(x: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)

        @pl.loop(0, 4)
        def _(i: Any) -> None:
            o[...] += x[...] * i

    yield Row("a loop that writes", pl.pallas_call(looped, like((8, 128), "float32")), [x], lambda x: 6 * x)

    def nested_call(x: Any, o: Any) -> None:
        o[...] = xlamini.jit(lambda v: jnp.tanh(v) + 1)(x[...])

    yield Row("a call", pl.pallas_call(nested_call, like((8, 128), "float32")), [x], lambda x: np.tanh(x) + 1)


def of_a_gpu() -> Iterator[Row]:
    """What only a GPU has: accesses with a mask, at arrays of places, and atomic updates."""
    x = floats(8, 128)

    def masked(x: Any, o: Any) -> None:
        keep = lax.broadcasted_iota("int32", (8, 128), 1) < 100
        pltriton.store(o, pltriton.load(x, mask=keep, other=-1.0) * 2)

    expected = lambda x: 2 * np.where(np.arange(128) < 100, x, -1)
    yield Row("a load with a mask", pl.pallas_call(masked, like((8, 128), "float32")), [x], expected, targets=GPU)

    def beyond(x: Any, o: Any) -> None:
        at = pl.program_id(0) * 64 + jnp.arange(64)
        value = pltriton.load(x.at[at], mask=at < 100, other=0.0)
        pltriton.store(o.at[at], value + 1, mask=at < 100)

    call = pl.pallas_call(beyond, like((100,), "float32"), grid=(2,))
    yield Row("places beyond the end", call, [floats(100)], lambda x: x + 1, targets=GPU)

    def histogram(x: np.ndarray, start: np.ndarray) -> np.ndarray:
        return start + np.bincount(x % 4, minlength=4)

    def count(x: Any, start: Any, o: Any) -> None:
        pltriton.atomic_add(o, x[...] % 4, jnp.ones(64, "int32"))

    block = pl.BlockSpec((64,), lambda i: (i,))
    every = pl.BlockSpec((4,), lambda i: (0,))
    call = pl.pallas_call(count, like((4,), "int32"), grid=(4,), in_specs=[block, every], out_specs=every, input_output_aliases={1: 0})
    numbers = np.random.default_rng(0).integers(0, 99, 256).astype(np.int32)
    yield Row("a histogram", call, [numbers, np.arange(4, dtype=np.int32)], histogram, targets=GPU)
    for name, combine in {"max": np.maximum, "min": np.minimum}.items():
        for dtype in (np.int32, np.uint32, np.float32):
            update = getattr(pltriton, f"atomic_{name}")
            call = pl.pallas_call(lambda x, start, o, f=update: _done(f(o, ..., x[...])), like((64,), dtype), grid=(4,), in_specs=[block, pl.BlockSpec((64,), lambda i: (0,))],
                                  out_specs=pl.BlockSpec((64,), lambda i: (0,)), input_output_aliases={1: 0})  # fmt: skip
            values = floats(256, dtype=dtype) if dtype is np.float32 else ints(256, dtype=dtype)
            start = floats(64, dtype=dtype, seed=3) if dtype is np.float32 else ints(64, dtype=dtype, seed=3)
            expected = lambda x, start, f=combine: f.reduce([start, *x.reshape(4, 64)])
            yield Row(f"atomic {name} {np.dtype(dtype).name}", call, [values, start], expected, targets=GPU)

    def locked(x: Any, start: Any, o: Any) -> None:
        pltriton.atomic_cas(o.at[pl.program_id(0)], 0, x[0])
        pltriton.atomic_add(o, 3, 1)

    call = pl.pallas_call(locked, like((4,), "int32"), grid=(3,), in_specs=[pl.BlockSpec((1,), lambda i: (i,)), every], out_specs=every, input_output_aliases={1: 0})
    operands = [np.array([7, 8, 9], np.int32), np.array([0, 1, 0, 5], np.int32)]
    yield Row("a swap if equal", call, operands, lambda x, start: np.array([7, 1, 9, 8]), targets=GPU)
    take = lambda i, x, o: o.set(x[i[...], :])
    call = pl.pallas_call(take, like((16, 128), "float32"))
    places = np.random.default_rng(0).integers(0, 32, 16).astype(np.int32)
    yield Row("rows at places", call, [places, floats(32, 128)], lambda i, x: x[i], targets=GPU)


def of_a_tpu() -> Iterator[Row]:
    """What only a TPU has: programs in order, scratch memory, scalars that index maps read."""
    x = floats(32, 128)

    def running(x: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...]
        o[...] = total[...]

    call = pl.pallas_call(running, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS, scratch_shapes=[pltpu.VMEM((8, 128), "float32")])
    yield Row("scratch memory", call, [x], lambda x: np.cumsum(x.reshape(4, 8, 128), 0).reshape(32, 128), targets=TPU)

    def counted(o: Any, count: Any) -> None:
        count[0] = jnp.where(pl.program_id(0) == 0, 10, count[0] + 1)
        o[...] = jnp.full((8, 128), count[0])

    call = pl.pallas_call(counted, like((32, 128), "int32"), grid=(4,), out_specs=ROWS, scratch_shapes=[pltpu.SMEM((1,), "int32")])
    yield Row("a scalar in scratch memory", call, [], lambda: np.repeat([10, 11, 12, 13], 8)[:, None] * np.ones((1, 128), int), targets=TPU)

    def summed(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    call = pl.pallas_call(summed, like((8, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)))
    yield Row("sums over the grid", call, [x], lambda x: x.reshape(4, 8, 128).sum(0), targets=TPU)

    spec = pltpu.PrefetchScalarGridSpec(1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, at: (at[i], 0))], out_specs=pl.BlockSpec((8, 128), lambda i, at: (i, 0)))
    call = pl.pallas_call(lambda at, x, o: o.set(x[...] + at[pl.program_id(0)]), like((32, 128), "float32"), grid_spec=spec)
    at = np.array([2, 0, 3, 3], np.int32)
    expected = lambda at, x: np.concatenate([x[8 * i : 8 * i + 8] + i for i in at])
    yield Row("prefetched scalars", call, [at, x], expected)

    smem = pl.BlockSpec(memory_space=pltpu.SMEM)
    call = pl.pallas_call(lambda s, x, o: o.set(x[...] * s[pl.program_id(0)]), like((32, 128), "float32"), grid=(4,), in_specs=[smem, ROWS], out_specs=ROWS)
    yield Row("scalars in SMEM", call, [floats(4), x], lambda s, x: x * np.repeat(s, 8)[:, None], targets=TPU)
