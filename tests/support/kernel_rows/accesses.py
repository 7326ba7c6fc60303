"""Kernels with what only one of the targets has: atomic updates, scratch memory, scalars that index maps read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.row import Row, floats, like, numbers_of
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu
from xlamini.transforms.pallas import triton_memory as pltriton

TPU, GPU = ("tpu",), ("cuda",)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def masked(x: Any, o: Any) -> None:
    keep = lax.broadcasted_iota("int32", (8, 128), 1) < 100
    pltriton.store(o, pltriton.load(x, mask=keep, other=-1.0) * 2)


def beyond(x: Any, o: Any) -> None:
    at = pl.program_id(0) * 64 + jnp.arange(64)
    value = pltriton.load(x.at[at], mask=at < 100, other=0.0)
    pltriton.store(o.at[at], value + 1, mask=at < 100)


def histogram(x: np.ndarray, start: np.ndarray) -> np.ndarray:
    return start + np.bincount(x % 4, minlength=4)


def count(x: Any, start: Any, o: Any) -> None:
    pltriton.atomic_add(o, x[...] % 4, jnp.ones(64, "int32"))


def locked(x: Any, start: Any, o: Any) -> None:
    pltriton.atomic_cas(o.at[pl.program_id(0)], 0, x[0])
    pltriton.atomic_add(o, 3, 1)


def updating(update: Callable[..., Any]) -> Callable[..., None]:
    """A kernel that updates its result by its first operand."""

    def kernel(x: Any, start: Any, o: Any) -> None:
        update(o, ..., x[...])

    return kernel


def of_a_gpu() -> Iterator[Row]:
    """What only a GPU has: accesses with a mask, at arrays of places, and atomic updates."""
    x = floats(8, 128)

    expected = lambda x: 2 * np.where(np.arange(128) < 100, x, -1)
    yield Row("a load with a mask", pl.pallas_call(masked, like((8, 128), "float32")), [x], expected, targets=GPU)

    call = pl.pallas_call(beyond, like((100,), "float32"), grid=(2,))
    yield Row("places beyond the end", call, [floats(100)], lambda x: x + 1, targets=GPU)

    block = pl.BlockSpec((64,), lambda i: (i,))
    every = pl.BlockSpec((4,), lambda i: (0,))
    call = pl.pallas_call(
        count, like((4,), "int32"), grid=(4,), in_specs=[block, every], out_specs=every, input_output_aliases={1: 0}
    )
    numbers = np.random.default_rng(0).integers(0, 99, 256).astype(np.int32)
    yield Row("a histogram", call, [numbers, np.arange(4, dtype=np.int32)], histogram, targets=GPU)
    whole = pl.BlockSpec((64,), lambda i: (0,))
    options = {"grid": (4,), "in_specs": [block, whole], "out_specs": whole, "input_output_aliases": {1: 0}}
    for name, combine in {"max": np.maximum, "min": np.minimum}.items():
        for dtype in (np.int32, np.uint32, np.float32):
            update = updating(getattr(pltriton, f"atomic_{name}"))
            call = pl.pallas_call(update, like((64,), dtype), **options)
            values, start = numbers_of(dtype, 256), numbers_of(dtype, 64, seed=3)
            expected = lambda x, start, f=combine: f.reduce([start, *x.reshape(4, 64)])
            yield Row(f"atomic {name} {np.dtype(dtype).name}", call, [values, start], expected, targets=GPU)

    call = pl.pallas_call(
        locked,
        like((4,), "int32"),
        grid=(3,),
        in_specs=[pl.BlockSpec((1,), lambda i: (i,)), every],
        out_specs=every,
        input_output_aliases={1: 0},
    )
    operands = [np.array([7, 8, 9], np.int32), np.array([0, 1, 0, 5], np.int32)]
    yield Row("a swap if equal", call, operands, lambda x, start: np.array([7, 1, 9, 8]), targets=GPU)
    take = lambda i, x, o: o.set(x[i[...], :])
    call = pl.pallas_call(take, like((16, 128), "float32"))
    places = np.random.default_rng(0).integers(0, 32, 16).astype(np.int32)
    yield Row("rows at places", call, [places, floats(32, 128)], lambda i, x: x[i], targets=GPU)


def running(x: Any, o: Any, total: Any) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    total[...] += x[...]
    o[...] = total[...]


def counted_in_scratch(o: Any, count: Any) -> None:
    count[0] = jnp.where(pl.program_id(0) == 0, 10, count[0] + 1)
    o[...] = jnp.full((8, 128), count[0])


def summed_over_grid(x: Any, o: Any) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o[...] = jnp.zeros_like(o)

    o[...] += x[...]


def of_a_tpu() -> Iterator[Row]:
    """What only a TPU has: programs in order, and scratch memory."""
    x = floats(32, 128)
    call = pl.pallas_call(
        running,
        like((32, 128), "float32"),
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ROWS,
        scratch_shapes=[pltpu.VMEM((8, 128), "float32")],
    )
    yield Row("scratch memory", call, [x], lambda x: np.cumsum(x.reshape(4, 8, 128), 0).reshape(32, 128), targets=TPU)
    call = pl.pallas_call(
        counted_in_scratch,
        like((32, 128), "int32"),
        grid=(4,),
        out_specs=ROWS,
        scratch_shapes=[pltpu.SMEM((1,), "int32")],
    )
    yield Row(
        "a scalar in scratch memory",
        call,
        [],
        lambda: np.repeat([10, 11, 12, 13], 8)[:, None] * np.ones((1, 128), int),
        targets=TPU,
    )
    call = pl.pallas_call(
        summed_over_grid,
        like((8, 128), "float32"),
        grid=(4,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
    )
    yield Row("sums over the grid", call, [x], lambda x: x.reshape(4, 8, 128).sum(0), targets=TPU)


def of_scalars() -> Iterator[Row]:
    """Scalars that index maps and kernels read."""
    x = floats(32, 128)
    spec = pltpu.PrefetchScalarGridSpec(
        1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, at: (at[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, at: (i, 0)),
    )
    call = pl.pallas_call(
        lambda at, x, o: o.set(x[...] + at[pl.program_id(0)]), like((32, 128), "float32"), grid_spec=spec
    )
    at = np.array([2, 0, 3, 3], np.int32)
    expected = lambda at, x: np.concatenate([x[8 * i : 8 * i + 8] + i for i in at])
    yield Row("prefetched scalars", call, [at, x], expected)
    smem = pl.BlockSpec(memory_space=pltpu.SMEM)
    call = pl.pallas_call(
        lambda s, x, o: o.set(x[...] * s[pl.program_id(0)]),
        like((32, 128), "float32"),
        grid=(4,),
        in_specs=[smem, ROWS],
        out_specs=ROWS,
    )
    yield Row("scalars in SMEM", call, [floats(4), x], lambda s, x: x * np.repeat(s, 8)[:, None], targets=TPU)


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    yield from of_a_gpu()
    yield from of_a_tpu()
    yield from of_scalars()
