"""Kernels with loops, branches and calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import xlamini
import xlamini.numpy as jnp
from tests.support.kernel_rows.row import Row, floats, like
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

TPU, GPU = ("tpu",), ("cuda",)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def nested(x: Any, o: Any) -> None:
    v = x[...]
    inner = lambda i: lambda j, s: s + v * (i - j)
    o[...] = lax.fori_loop(0, 3, lambda i, s: lax.fori_loop(0, i + 1, inner(i), s), jnp.zeros((8, 128)))


def until(x: Any, o: Any) -> None:
    v, steps = lax.while_loop(lambda s: s[0].max() < 100, lambda s: (s[0] * 2 + 1, s[1] + 1), (jnp.abs(x[...]), 0))
    o[...] = v + steps


def until_expected(x: np.ndarray) -> np.ndarray:
    v, steps = np.abs(x), 0
    while v.max() < 100:
        v, steps = v * 2 + 1, steps + 1
    return v + steps


def branches(x: Any, o: Any) -> None:
    step = lambda i, v: lax.cond(i % 2 == 0, lambda v: v + 1, lambda v: v * 2, v)
    o[...] = lax.fori_loop(0, 5, step, x[...])


def by_operand(n: Any, x: Any, o: Any) -> None:
    o[...] = lax.fori_loop(0, n[0], lambda i, v: v + i, x[...])


def summed(x: Any, o: Any) -> None:
    o[...] = lax.scan(lambda s, i: (s + i * x[...], None), jnp.zeros((8, 128)), jnp.arange(4, dtype="float32"))[0]


def looped(x: Any, o: Any) -> None:
    o[...] = jnp.zeros_like(o)

    @pl.loop(0, 4)
    def _(i: Any) -> None:
        o[...] += x[...] * i


def nested_call(x: Any, o: Any) -> None:
    o[...] = xlamini.jit(lambda v: jnp.tanh(v) + 1)(x[...])


def loops() -> Iterator[Row]:
    """Loops and branches whose values are in registers."""
    x = floats(8, 128)

    total = sum(i - j for i in range(3) for j in range(i + 1))
    yield Row("nested loops", pl.pallas_call(nested, like((8, 128), "float32")), [x], lambda x: x * total)

    yield Row("a loop until a maximum", pl.pallas_call(until, like((8, 128), "float32")), [x], until_expected)

    yield Row(
        "branches in a loop",
        pl.pallas_call(branches, like((8, 128), "float32")),
        [x],
        lambda x: ((x + 1) * 2 + 1) * 2 + 1,
    )

    specs = [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()]
    call = pl.pallas_call(by_operand, like((8, 128), "float32"), in_specs=specs)
    yield Row("a loop of a number of trips", call, [np.array([5], np.int32), x], lambda n, x: x + 10, targets=TPU)
    call = pl.pallas_call(by_operand, like((8, 128), "float32"))
    yield Row("a loop of a number of trips, GPU", call, [np.array([5], np.int32), x], lambda n, x: x + 10, targets=GPU)
    for dtype in (np.uint8, np.int16, np.uint32):
        call = pl.pallas_call(lambda i, x, o: o.set(x[pl.ds(i[0], 8), :]), like((8, 128), "float32"))
        yield Row(
            f"a place of {np.dtype(dtype).name}",
            call,
            [np.array([200], dtype), floats(256, 128)],
            lambda i, x: x[200:208],
            targets=GPU,
        )

    yield Row("a scan", pl.pallas_call(summed, like((8, 128), "float32")), [x], lambda x: 6 * x)

    yield Row("a loop that writes", pl.pallas_call(looped, like((8, 128), "float32")), [x], lambda x: 6 * x)

    yield Row("a call", pl.pallas_call(nested_call, like((8, 128), "float32")), [x], lambda x: np.tanh(x) + 1)


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    yield from loops()
