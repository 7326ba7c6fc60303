"""Kernels that read and write parts of refs, at fixed and at moving places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.row import Row, floats, like
from xlamini import lax
from xlamini.experimental import pallas as pl

TPU, GPU = ("tpu",), ("cuda",)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def moving(x: Any, o: Any) -> None:
    o[...] = x[pl.ds(pl.program_id(0) * 4, 8), :]


def strided(x: Any, o: Any) -> None:
    o[...] = x[pl.ds(pl.program_id(0), 8, 4), :]


def row_by_number(i: Any, x: Any, o: Any) -> None:
    o[...] = x[pl.ds(i[0], 8), :] + x[i[1]][None, :]


def loop(x: Any, o: Any) -> None:
    o[...] = lax.fori_loop(0, 4, lambda i, total: total + x[pl.ds(i * 8, 8), :], jnp.zeros((8, 128)))


def ragged(x: Any, o: Any) -> None:
    o[...] = x[pl.ds(8, 8), :] + x[pl.ds(0, 8), :]


def parts() -> Iterator[Row]:
    """Reads of parts of a ref."""
    x = floats(32, 128)
    read = lambda index: pl.pallas_call(lambda x, o: o.set(x[index]), like(x[index].shape, "float32"))
    for name, index in {
        "rows from a number on": np.s_[8:16, :], "odd rows": np.s_[4:20:2, :], "one row": np.s_[3:4, :],
        "columns": np.s_[:, 0:64], "a row without its dimension": np.s_[5], "rows that are not aligned": np.s_[3:11],
    }.items():  # fmt: skip
        yield Row(f"reads {name}", read(index), [x], lambda x, index=index: x[index])

    call = pl.pallas_call(moving, like((32, 128), "float32"), grid=(4,), out_specs=ROWS)
    yield Row("reads at a moving place", call, [x], lambda x: np.concatenate([x[4 * i : 4 * i + 8] for i in range(4)]))

    call = pl.pallas_call(strided, like((32, 128), "float32"), grid=(4,), out_specs=ROWS)
    yield Row("reads with a stride at a moving place", call, [x], lambda x: np.concatenate([x[i::4] for i in range(4)]))

    call = pl.pallas_call(
        row_by_number, like((8, 128), "float32"), in_specs=[pl.BlockSpec(memory_space=None), pl.BlockSpec()]
    )
    numbers = np.array([7, 21], np.int32)
    yield Row("reads at operands", call, [numbers, x], lambda i, x: x[i[0] : i[0] + 8] + x[i[1]][None], targets=GPU)

    call = pl.pallas_call(loop, like((8, 128), "float32"))
    yield Row("adds up parts in a loop", call, [x], lambda x: x.reshape(4, 8, 128).sum(0))

    block = pl.BlockSpec((16, 128), lambda i: (i, 0))
    call = pl.pallas_call(ragged, like((16, 128), "float32"), grid=(2,), in_specs=[block], out_specs=ROWS)
    expected = lambda x: np.concatenate([x[:8] + x[8:16], x[16:24] + x[24:32]])
    yield Row("parts of blocks", call, [x], expected)


def halves(x: Any, o: Any) -> None:
    o[0:8, :] = x[8:16, :]
    o[pl.ds(8, 8), :] = 2 * x[0:8, :]


def odd(x: Any, o: Any) -> None:
    o[...] = x[...]
    o[pl.ds(1, 8, 2), :] = -x[pl.ds(0, 8, 2), :]


def odd_expected(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[1::2] = -x[::2]
    return out


def numbers(x: Any, o: Any) -> None:
    o[...] = jnp.zeros_like(o)
    o[3] = x[5] + 1
    o[pl.ds(8, 4), :] += x[0:4, :]
    o[...] *= 2


def numbers_expected(x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    out[3], out[8:12] = 2 * x[5] + 2, 2 * x[:4]
    return out


def fill(o: Any) -> None:
    o[...] = jnp.full((8, 128), pl.program_id(0), "int32")


def in_place(x: Any, o: Any) -> None:
    o[...] = o[...] + x[...]


def replaced(x: Any, o: Any) -> None:
    o[...] = x[...] * 3


def chosen(x: Any, o: Any) -> None:
    o[...] = lax.cond(pl.program_id(0) % 2 == 0, lambda: x[...], lambda: -x[...])


def switched(x: Any, o: Any) -> None:
    v = x[...]
    o[...] = lax.switch(pl.program_id(0), [lambda v: v, lambda v: v * v, lambda v: -v], v)


def collatz(o: Any) -> None:
    step = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
    o[...] = jnp.full((8, 128), lax.while_loop(lambda s: s[0] != 1, step, (pl.program_id(0) + 5, 0))[1])


def when(x: Any, o: Any) -> None:
    o[...] = x[...]

    @pl.when(pl.program_id(0) > 1)
    def _() -> None:
        o[...] = o[...] + 1


def writes() -> Iterator[Row]:
    """Writes of parts of a ref, and of refs that have been written."""
    x = floats(16, 128)

    yield Row(
        "writes halves",
        pl.pallas_call(halves, like((16, 128), "float32")),
        [x],
        lambda x: np.concatenate([x[8:], 2 * x[:8]]),
    )

    yield Row("writes odd rows", pl.pallas_call(odd, like((16, 128), "float32")), [x], odd_expected)

    yield Row("writes and reads again", pl.pallas_call(numbers, like((16, 128), "float32")), [x], numbers_expected)

    call = pl.pallas_call(fill, like((32, 128), "int32"), grid=(4,), out_specs=ROWS)
    yield Row("no operand", call, [], lambda: np.repeat(np.arange(4), 8)[:, None] * np.ones((1, 128), int))

    call = pl.pallas_call(
        in_place, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS, input_output_aliases={0: 0}
    )
    yield Row("an alias", call, [floats(32, 128)], lambda x: 2 * x, targets=GPU)

    call = pl.pallas_call(
        replaced, like((32, 128), "float32"), grid=(2,), in_specs=[ROWS], out_specs=ROWS, input_output_aliases={0: 0}
    )
    yield Row(
        "an alias of which a part is written", call, [floats(32, 128)], lambda x: np.concatenate([3 * x[:16], x[16:]])
    )

    call = pl.pallas_call(chosen, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("a branch", call, [floats(32, 128)], lambda x: x * np.repeat([1, -1, 1, -1], 8)[:, None])

    call = pl.pallas_call(switched, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("a switch", call, [floats(32, 128)], lambda x: np.concatenate([x[:8], x[8:16] ** 2, -x[16:]]))

    call = pl.pallas_call(collatz, like((32, 128), "int32"), grid=(4,), out_specs=ROWS)
    yield Row("a while loop", call, [], lambda: np.repeat([5, 8, 16, 3], 8)[:, None] * np.ones((1, 128), int))

    call = pl.pallas_call(when, like((32, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("when", call, [floats(32, 128)], lambda x: x + np.repeat([0, 0, 1, 1], 8)[:, None])


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    yield from parts()
    yield from writes()
