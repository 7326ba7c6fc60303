"""Whole kernels, as users write them: norms, softmax, products in tiles, attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.products import eighths
from tests.support.kernel_rows.row import Row, floats, like
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
SCALE = pl.BlockSpec((1, 128), lambda i: (0, 0))


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    yield from norms()
    yield from products()
    yield from attention()
    yield from pipelines()


def rms_norm(x: Any, scale: Any, o: Any) -> None:
    v = x[...].astype(jnp.float32)
    o[...] = (v * lax.rsqrt((v * v).mean(-1, keepdims=True) + 1e-6) * scale[...]).astype(o.dtype)


def layer_norm(x: Any, scale: Any, o: Any) -> None:
    v = x[...]
    centred = v - v.mean(-1, keepdims=True)
    o[...] = centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale[...]


def softmax(x: Any, o: Any) -> None:
    v = x[...]
    e = jnp.exp(v - v.max(-1, keepdims=True))
    o[...] = e / e.sum(-1, keepdims=True)


def masked_softmax(x: Any, o: Any) -> None:
    """The first 100 columns count."""
    v = jnp.where(lax.broadcasted_iota("int32", (8, 128), 1) < 100, x[...], -jnp.inf)
    e = jnp.exp(v - v.max(-1, keepdims=True))
    o[...] = e / e.sum(-1, keepdims=True)


def rms(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    v = x.astype(np.float64)
    return v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-6) * scale


def normed(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    v = x.astype(np.float64) - x.mean(-1, keepdims=True)
    return v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-5) * scale


def soft(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norms() -> Iterator[Row]:
    """Kernels on rows, of which the last block has some beyond the end."""

    for dtype in (np.float32, ml_dtypes.bfloat16):
        call = pl.pallas_call(rms_norm, like((30, 128), dtype), grid=(4,), in_specs=[ROWS, SCALE], out_specs=ROWS)
        yield Row(
            f"rms norm {np.dtype(dtype).name}",
            call,
            [floats(30, 128, dtype=dtype), floats(1, 128)],
            rms,
            1e-5 if dtype is np.float32 else 3e-2,
        )

    call = pl.pallas_call(layer_norm, like((30, 128), "float32"), grid=(4,), in_specs=[ROWS, SCALE], out_specs=ROWS)
    yield Row("layer norm", call, [floats(30, 128), floats(1, 128)], normed)

    call = pl.pallas_call(softmax, like((30, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    yield Row("softmax", call, [floats(30, 128, high=9)], soft)
    call = pl.pallas_call(masked_softmax, like((30, 128), "float32"), grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    expected = lambda x: np.concatenate([soft(x[:, :100]), np.zeros((30, 28))], 1)
    yield Row("softmax of some columns", call, [floats(30, 128, high=9)], expected)


def added(x: Any, y: Any, o: Any) -> None:
    o[...] = jnp.where(pl.program_id(2) == 0, 0.0, o[...]) + x[...] @ y[...]


def with_scratch(x: Any, y: Any, o: Any, total: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == 1)
    def _() -> None:
        o[...] = total[...].astype(o.dtype)


def looped(x: Any, y: Any, o: Any) -> None:
    def step(k: Any, total: Any) -> Any:
        return total + x[:, pl.ds(k * 64, 64)] @ y[pl.ds(k * 64, 64), :]

    o[...] = lax.fori_loop(0, 4, step, jnp.zeros((16, 64), jnp.float32))


def products() -> Iterator[Row]:
    """Matrix products in tiles."""
    x, y = eighths(32, 256), eighths(256, 128, seed=1)
    wide = lambda x, y: x.astype(np.float64) @ y.astype(np.float64)

    tiles = [pl.BlockSpec((16, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))]
    out = pl.BlockSpec((16, 128), lambda i, j, k: (i, j))
    call = pl.pallas_call(added, like((32, 128), "float32"), grid=(2, 1, 2), in_specs=tiles, out_specs=out)
    yield Row("product that adds up over the grid", call, [x, y], wide, 1e-4, ("tpu",))

    scratch = [pltpu.VMEM((16, 128), "float32")]
    call = pl.pallas_call(
        with_scratch, like((32, 128), "bfloat16"), grid=(2, 1, 2), in_specs=tiles, out_specs=out, scratch_shapes=scratch
    )
    operands = [x.astype(ml_dtypes.bfloat16), y.astype(ml_dtypes.bfloat16)]
    yield Row("product with a total in scratch memory", call, operands, wide, 1e-2, ("tpu",))

    specs = [pl.BlockSpec((16, 256), lambda i, j: (i, 0)), pl.BlockSpec((256, 64), lambda i, j: (0, j))]
    call = pl.pallas_call(
        looped,
        like((32, 128), "float32"),
        grid=(2, 2),
        in_specs=specs,
        out_specs=pl.BlockSpec((16, 64), lambda i, j: (i, j)),
    )
    yield Row("product with a loop", call, [x, y], wide, 1e-4, ("cuda",))


def flash(q: Any, k: Any, v: Any, o: Any) -> None:
    def step(i: Any, state: Any) -> Any:
        best, total, out = state
        scores = jnp.dot(q[...], k[pl.ds(i * 32, 32), :].T, preferred_element_type=jnp.float32)
        new = jnp.maximum(best, scores.max(-1, keepdims=True))
        weights, shrink = jnp.exp(scores - new), jnp.exp(best - new)
        part = jnp.dot(weights.astype(v.dtype), v[pl.ds(i * 32, 32), :], preferred_element_type=jnp.float32)
        return new, total * shrink + weights.sum(-1, keepdims=True), out * shrink + part

    start = jnp.full((16, 1), -jnp.inf), jnp.zeros((16, 1)), jnp.zeros((16, 128))
    _, total, out = lax.fori_loop(0, 4, step, start)
    o[...] = (out / total).astype(o.dtype)


def plain(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.exp(q @ k.transpose(0, 2, 1))
    return scores / scores.sum(-1, keepdims=True) @ v


def attention() -> Iterator[Row]:
    """Flash attention: softmax of the scores, one block of keys after the other."""

    some, all_ = (
        pl.BlockSpec((None, 16, 128), lambda h, i: (h, i, 0)),
        pl.BlockSpec((None, 128, 128), lambda h, i: (h, 0, 0)),
    )
    for dtype in (np.float32, ml_dtypes.bfloat16):
        call = pl.pallas_call(
            flash, like((2, 32, 128), dtype), grid=(2, 2), in_specs=[some, all_, all_], out_specs=some
        )
        operands = [0.25 * floats(2, n, 128, seed=n) for n in (32, 128, 128)]
        yield Row(f"flash attention {np.dtype(dtype).name}", call, [x.astype(dtype) for x in operands], plain, 1e-2)


def program(x: Any, y: Any, o: Any) -> None:
    total = jnp.dot(x[...], y[...])
    o[...] = jnp.where(pl.program_id(2) == 0, total, o[...] + total)


def pipelines() -> Iterator[Row]:
    """Loops over blocks of arrays in a TPU's main memory."""
    where = pl.BlockSpec(memory_space=pltpu.ANY)
    specs = [pl.BlockSpec((8, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))]
    out = pl.BlockSpec((8, 128), lambda i, j, k: (i, j))

    for no_pipelining in (False, True):

        def kernel(x: Any, y: Any, o: Any, plain: bool = no_pipelining) -> None:
            loop = pltpu.emit_pipeline(program, grid=(2, 2, 3), in_specs=specs, out_specs=[out], no_pipelining=plain)
            loop(x, y, o)

        call = pl.pallas_call(kernel, like((16, 256), np.float32), in_specs=[where, where], out_specs=where)
        name = f"pipeline{' without overlap' if no_pipelining else ''}"
        yield Row(name, call, [eighths(16, 384), eighths(384, 256)], lambda x, y: x @ y, 1e-4, ("tpu",))
