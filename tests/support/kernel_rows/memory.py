"""Kernels whose work is in where they read and write: blocks, parts at moving places, scratch memory, aliases."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.row import Row, bools, floats, ints, like
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

TPU, GPU = ("tpu",), ("cuda",)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    yield from blocks()
    yield from parts()
    yield from writes()
    yield from of_a_tpu()


def blocks() -> Iterator[Row]:
    """Which block a program sees."""
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int8, np.uint32, np.bool_):
        x = bools(30, 128) if dtype is np.bool_ else ints(30, 128, dtype=dtype) if np.dtype(dtype).kind in "iu" else floats(30, 128, dtype=dtype)
        call = pl.pallas_call(copy, like((30, 128), dtype), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
        yield Row(f"ragged copy {np.dtype(dtype).name}", call, [x], lambda x: x, 0.0)
    square = pl.BlockSpec((16, 128), lambda i, j: (i, j))
    turned = pl.BlockSpec((128, 16), lambda i, j: (j, i))
    call = pl.pallas_call(lambda x, o: o.set(x[...].T), like((256, 64), "float32"), grid=(4, 2), in_specs=[square], out_specs=pl.BlockSpec((128, 64), lambda i, j: (j, 0)))
    del call, turned
    whole = pl.BlockSpec((8, 256), lambda i, j: (i, 0))
    call = pl.pallas_call(lambda x, y, o: o.set(x[...] + y[...]), like((40, 256), "float32"), grid=(5, 2),
                          in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j)), pl.BlockSpec((1, 128), lambda i, j: (0, j))], out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)))  # fmt: skip
    yield Row("a grid of two axes", call, [floats(40, 256), floats(1, 256)], lambda x, y: x + y)
    del whole
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
