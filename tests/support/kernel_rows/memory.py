"""Kernels whose work is in which block a program sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import xlamini
from tests.support.kernel_rows.row import Row, floats, like, numbers_of
from xlamini.experimental import pallas as pl

TPU, GPU = ("tpu",), ("cuda",)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def blocks() -> Iterator[Row]:
    """Which block a program sees."""
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int8, np.uint32, np.bool_):
        x = numbers_of(dtype, 30, 128)
        call = pl.pallas_call(copy, like((30, 128), dtype), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
        yield Row(f"ragged copy {np.dtype(dtype).name}", call, [x], lambda x: x, 0.0)
    tile = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    specs = [tile, pl.BlockSpec((1, 128), lambda i, j: (0, j))]
    added = lambda x, y, o: o.set(x[...] + y[...])
    call = pl.pallas_call(added, like((40, 256), "float32"), grid=(5, 2), in_specs=specs, out_specs=tile)
    yield Row("a grid of two axes", call, [floats(40, 256), floats(1, 256)], lambda x, y: x + y)
    backwards = pl.BlockSpec((8, 128), lambda i: (3 - i, 0))
    call = pl.pallas_call(copy, like((32, 128), "float32"), grid=(4,), in_specs=[backwards], out_specs=ROWS)
    yield Row("blocks backwards", call, [floats(32, 128)], lambda x: x.reshape(4, 8, 128)[::-1].reshape(32, 128))
    squeezed = pl.BlockSpec((None, 8, 128), lambda i, j: (i, j, 0))
    call = pl.pallas_call(copy, like((3, 20, 128), "float32"), grid=(3, 3), in_specs=[squeezed], out_specs=squeezed)
    yield Row("a squeezed dimension", call, [floats(3, 20, 128)], lambda x: x)
    middle = pl.BlockSpec((8, None, 128), lambda i: (0, i, 0))
    call = pl.pallas_call(
        copy,
        like((4, 8, 128), "float32"),
        grid=(4,),
        in_specs=[middle],
        out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
    )
    yield Row(
        "a squeezed dimension in the middle", call, [floats(8, 4, 128)], lambda x: x.transpose(1, 0, 2), targets=GPU
    )
    call = pl.pallas_call(
        copy,
        like((1024,), "float32"),
        grid=(2,),
        in_specs=[pl.BlockSpec((512,), lambda i: (i,))],
        out_specs=pl.BlockSpec((512,), lambda i: (i,)),
    )
    yield Row("vectors", call, [floats(1024)], lambda x: x)


def whole_squeezed_blocks() -> Iterator[Row]:
    """The whole array is the block, without its dimensions of size 1."""
    block = pl.BlockSpec((None, None, 8, 128), lambda: (0, 0, 0, 0))

    def kernel(x: Any, o: Any) -> None:
        o[...] = x[:, :] + 1

    call = pl.pallas_call(kernel, like((1, 1, 8, 128), np.float32), in_specs=[block], out_specs=block)
    yield Row("squeezed whole", call, [floats(1, 1, 8, 128)], lambda x: x + 1)


def squeezed_blocks() -> Iterator[Row]:
    """Blocks without a dimension, or that overlap."""
    call = pl.pallas_call(
        lambda x, o: o.set(x[...] * pl.program_id(0)),
        like((32, 128), "float32"),
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ROWS,
    )
    yield Row("by the program's number", call, [floats(32, 128)], lambda x: x * np.repeat(np.arange(4), 8)[:, None])
    call = pl.pallas_call(lambda a, x, o: o.set(x[...] * a[...]), like((8, 128), "float32"))
    yield Row("a scalar operand", call, [np.float32(2.5), floats(8, 128)], lambda a, x: a * x)
    overlapping = pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (4 * i, 0))
    call = pl.pallas_call(copy, like((24, 128), "float32"), grid=(3,), in_specs=[overlapping], out_specs=ROWS)
    yield Row(
        "blocks that overlap",
        call,
        [floats(16, 128)],
        lambda x: np.concatenate([x[4 * i : 4 * i + 8] for i in range(3)]),
    )
    three = pl.BlockSpec((8, 128), lambda a, b, c, d: (a * 8 + b * 4 + c * 2 + d, 0))
    call = pl.pallas_call(copy, like((128, 128), "float32"), grid=(2, 2, 2, 2), in_specs=[three], out_specs=three)
    yield Row("a grid of four axes", call, [floats(128, 128)], lambda x: x)


def odd_sizes() -> Iterator[Row]:
    """Arrays that no block divides, in both dimensions."""
    block = pl.BlockSpec((16, 128), lambda i, j: (i, j))
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int32):
        x = floats(37, 200, high=50).astype(dtype)
        call = pl.pallas_call(
            lambda x, o: o.set(x[...] + x[...]), like((37, 200), dtype), grid=(3, 2), in_specs=[block], out_specs=block
        )
        yield Row(f"ragged in both dimensions {np.dtype(dtype).name}", call, [x], lambda x: x + x)
    turned = pl.BlockSpec((128, 128), lambda i, j: (j, i))
    square = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    call = pl.pallas_call(
        lambda x, o: o.set(x[...].T), like((200, 150), "float32"), grid=(2, 2), in_specs=[square], out_specs=turned
    )
    yield Row("ragged transpose", call, [floats(150, 200)], lambda x: x.T)
    call = pl.pallas_call(lambda x, o: o.set(x[...] * 2), like((5, 77), "float32"))
    yield Row("a whole array of odd sizes", call, [floats(5, 77)], lambda x: 2 * x, targets=TPU)
    call = pl.pallas_call(lambda x, o: o.set(x[...].sum(0, keepdims=True)), like((1, 77), "float32"))
    yield Row("a sum of odd sizes", call, [floats(5, 77)], lambda x: x.sum(0, keepdims=True), targets=TPU)
    one = pl.BlockSpec((1, 128), lambda i: (i, 0))
    call = pl.pallas_call(
        lambda x, o: o.set(x[...] * 2), like((5, 128), "float32"), grid=(5,), in_specs=[one], out_specs=one
    )
    yield Row("single rows", call, [floats(5, 128)], lambda x: 2 * x, targets=GPU)
    call = pl.pallas_call(
        lambda x, o: o.set(x[...] * 2),
        like((700,), "float32"),
        grid=(2,),
        in_specs=[pl.BlockSpec((512,), lambda i: (i,))],
        out_specs=pl.BlockSpec((512,), lambda i: (i,)),
    )
    yield Row("ragged vectors", call, [floats(700)], lambda x: 2 * x)
    wide = pl.BlockSpec((8, 256), lambda i: (i, 0))
    call = pl.pallas_call(
        lambda x, o: o.set(x[...] * 2), like((16, 200), "float32"), grid=(2,), in_specs=[wide], out_specs=wide
    )
    yield Row("a block wider than the array", call, [floats(16, 200)], lambda x: 2 * x, targets=GPU)


def batches() -> Iterator[Row]:
    """vmap of kernels."""
    call = pl.pallas_call(
        lambda x, y, o: o.set(x[...] * y[...]),
        like((30, 128), "float32"),
        grid=(4,),
        in_specs=[ROWS, pl.BlockSpec((1, 128), lambda i: (0, 0))],
        out_specs=ROWS,
    )
    yield Row("vmap", xlamini.vmap(call), [floats(3, 30, 128), floats(3, 1, 128)], lambda x, y: x * y)
    yield Row(
        "vmap of one operand",
        xlamini.vmap(call, (1, None)),
        [floats(30, 3, 128), floats(1, 128)],
        lambda x, y: x.transpose(1, 0, 2) * y,
    )
    twice = xlamini.vmap(xlamini.vmap(call, (0, None)), (None, 0))
    yield Row("vmap of vmap", twice, [floats(2, 30, 128), floats(3, 1, 128)], lambda x, y: x[None] * y[:, None])


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    yield from blocks()
    yield from squeezed_blocks()
    yield from whole_squeezed_blocks()
    yield from odd_sizes()
    yield from batches()
