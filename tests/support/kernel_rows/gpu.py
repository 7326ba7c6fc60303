"""Kernels with what only a GPU's kernels have: masks, atomic updates, points that arrays name, hints."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.row import Row, bools, floats, ints, like
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import triton as plt

GPU = ("cuda",)


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    for row in (*masks(), *points(), *atomics(), *bits(), *values()):
        yield row._replace(targets=GPU)


def masks() -> Iterator[Row]:
    """Loads and stores with a mask."""
    x = floats(3, 20)

    def softmax(x: Any, o: Any) -> None:
        i, columns = pl.program_id(0), jnp.arange(32)
        inside = columns < 20
        v = plt.load(x.at[i, columns], mask=inside, other=-jnp.inf)
        e = jnp.exp(v - v.max())
        plt.store(o.at[i, columns], e / e.sum(), mask=inside)

    whole = lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)
    yield Row("softmax of masked rows", pl.pallas_call(softmax, like((3, 20), np.float32), grid=3), [x], whole)

    def beyond(x: Any, o: Any) -> None:
        part = pl.ds(pl.program_id(0) * 8, 8)
        inside = part.start + jnp.arange(8) < 30
        plt.store(o.at[part], 2 * plt.load(x.at[part], mask=inside), mask=inside)

    call = pl.pallas_call(beyond, like((30,), np.float32), grid=4)
    yield Row("masked parts beyond the end", call, [floats(30)], lambda x: 2 * x)

    def chosen(x: Any, m: Any, o: Any) -> None:
        o[...] = plt.load(x, mask=m[...], other=7)

    for dtype in (np.float32, np.int8, np.bool_):
        values = bools(4, 8) if dtype is np.bool_ else np.arange(32, dtype=dtype).reshape(4, 8)
        expected = lambda x, m: np.where(m, x, np.asarray(7, x.dtype))
        call = pl.pallas_call(_chosen_bools if dtype is np.bool_ else chosen, like((4, 8), dtype))
        yield Row(f"masked {np.dtype(dtype).name}", call, [values, bools(4, 8, seed=1)], expected, 0.0)

    blocks = pl.BlockSpec((8, 16), lambda i, j: (i, j))

    def positive(x: Any, o: Any) -> None:
        plt.store(o, x[...], mask=x[...] > 0)

    options = {"grid": (4, 2), "in_specs": [blocks, None], "out_specs": blocks, "input_output_aliases": {1: 0}}
    call = pl.pallas_call(lambda x, _, o: positive(x, o), like((30, 20), np.float32), **options)
    operands = [floats(30, 20), np.zeros((30, 20), np.float32)]
    yield Row("masks of ragged blocks", call, operands, lambda x, _: np.maximum(x, 0))


def _chosen_bools(x: Any, m: Any, o: Any) -> None:
    o[...] = plt.load(x, mask=m[...], other=True)


def points() -> Iterator[Row]:
    """Reads and writes of the points that arrays of indices name."""
    x, i = floats(20, 10), np.asarray([3, 19, 0, 7], np.int32)

    def read(name: str, get: Callable[..., Any], *more: np.ndarray) -> Row:
        def kernel(*refs: Any) -> None:
            *ins, o = refs
            o[...] = get(ins[0], *[r[...] for r in ins[1:]])

        expected = lambda x, *rest: get(x, *rest)
        return Row(name, pl.pallas_call(kernel, like(get(x, *more).shape, np.float32)), [x, *more], expected, 0.0)

    j = np.asarray([9, 0, 1, 4], np.int32)
    yield read("points by two arrays", lambda x, i, j: x[i, j], i, j)
    yield read("points by bytes", lambda x, i: x[i, 3], i.astype(np.uint8))
    yield read("points by a table", lambda x, i: x[i, i % 10], i.reshape(2, 2))
    yield read("a table of rows and columns", lambda x, i, j: x[i[:, None], j[None]], i, j)
    yield read("rows by an array, part of the columns", lambda x, i: x[i, 1:9], i)
    yield read("a row, columns by an array", lambda x, j: x[2, j], j)

    def scattered(x: Any, i: Any, o: Any) -> None:
        o[...] = jnp.zeros(32)
        o[i[...]] = x[...]

    expected = lambda x, i: np.put_along_axis(out := np.zeros(32, np.float32), i, x, 0) or out
    yield Row("points that are written", pl.pallas_call(scattered, like((32,), np.float32)), [floats(4), i], expected)

    def of_a_block(x: Any, o: Any) -> None:
        o[...] = x[jnp.arange(8)[::-1], :]

    block = pl.BlockSpec((8, 8), lambda i: (i, 0))
    call = pl.pallas_call(of_a_block, like((30, 8), np.float32), grid=4, in_specs=[block], out_specs=block)
    turned = lambda x: np.pad(x, ((0, 2), (0, 0))).reshape(4, 8, 8)[:, ::-1].reshape(32, 8)[:30]
    yield Row("points of ragged blocks", call, [floats(30, 8)], turned, 0.0)


def atomics() -> Iterator[Row]:
    """Atomic updates."""
    x = np.random.default_rng(0).integers(0, 10, 64).astype(np.int32)

    def histogram(x: Any, zeros: Any, o: Any) -> None:
        plt.atomic_add(o, x[...], 1)

    options = {"grid": 4, "in_specs": [pl.BlockSpec((16,), lambda i: (i,)), None], "input_output_aliases": {1: 0}}
    call = pl.pallas_call(histogram, like((10,), np.int32), **options)
    yield Row("histogram", call, [x, np.zeros(10, np.int32)], lambda x, _: np.bincount(x, minlength=10))
    updates = {"max": np.maximum, "min": np.minimum, "add": np.add, "xchg": lambda old, new: new}
    for dtype in (np.float32, np.int32, np.uint32):
        for name, expected in updates.items():
            yield _update(name, expected, dtype)


def bits() -> Iterator[Row]:
    for name, expected in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
        yield _update(name, expected, np.int32)

    def swapped(x: Any, o: Any, old: Any) -> None:
        old[0] = plt.atomic_cas(o.at[2], 5, 7)
        old[1] = plt.atomic_cas(o.at[3], 4, 7)

    for dtype in (np.int32, np.float32):
        values = np.full(4, 5, dtype)
        call = pl.pallas_call(swapped, [like((4,), dtype), like((2,), dtype)], input_output_aliases={0: 0})
        expected = lambda x: [np.asarray([5, 5, 7, 5], x.dtype), x[:2]]
        yield Row(f"compare and swap of {np.dtype(dtype).name}", call, [values], expected, 0.0)


def _update(name: str, expected: Callable[..., Any], dtype: Any) -> Row:
    """An update where a mask is true; the result, and the elements before."""
    update = getattr(plt, f"atomic_{name}")

    def kernel(x: Any, v: Any, o: Any, old: Any) -> None:
        old[...] = plt.load(x, mask=jnp.arange(16) < 0)
        plt.store(old, update(o, ..., v[...], mask=jnp.arange(16) < 12), mask=jnp.arange(16) < 12)

    make = floats if dtype is np.float32 else ints
    operands = [make(16, dtype=dtype), make(16, dtype=dtype, seed=1)]
    call = pl.pallas_call(kernel, [like((16,), dtype)] * 2, input_output_aliases={0: 0})
    first = np.arange(16) < 12
    after = lambda x, v: [np.where(first, expected(x, v), x), np.where(first, x, 0)]
    return Row(f"atomic {name} of {np.dtype(dtype).name}", call, operands, after, 1e-6)


def values() -> Iterator[Row]:
    """Hints, the barrier, and products."""
    x, y = np.round(floats(16, 32) * 8) / 8, np.round(floats(16, 32, seed=1) * 8) / 8

    def product(x: Any, y: Any, o: Any) -> None:
        o[...] = plt.dot(x[...], y[...], trans_b=True)

    call = pl.pallas_call(product, like((16, 16), np.float32))
    yield Row("product with a transpose", call, [x, y], lambda x, y: x @ y.T)

    def hinted(x: Any, o: Any) -> None:
        start = pl.multiple_of(pl.program_id(0) * 8, 8)
        plt.debug_barrier()
        o[...] = x[plt.max_contiguous(start + jnp.arange(8), 8)]

    call = pl.pallas_call(hinted, like((32,), np.float32), grid=4, out_specs=pl.BlockSpec((8,), lambda i: (i,)))
    yield Row("hints", call, [floats(32)], lambda x: x, 0.0)
