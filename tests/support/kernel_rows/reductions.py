"""Kernels that reduce, scan, sort out the largest, multiply matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.row import Row, bools, floats, ints, like, of_whole_arrays, tolerance_of
from xlamini import lax

SHAPE = (8, 128)
CUBE = (4, 8, 128)

Pair = tuple[Callable[..., Any], Callable[..., Any]]


def one(
    name: str,
    pair: Pair,
    operands: list[np.ndarray],
    shape: Any,
    dtype: Any,
    tolerance: float | None = None,
    **options: Any,
) -> Row:
    """A kernel of one function of whole arrays; NumPy computes on float64."""
    library, numpy = pair
    wide = lambda x: x if x.dtype.kind in "iub" else x.astype(np.float64)
    expected = lambda *xs: np.asarray(numpy(*map(wide, xs))).astype(dtype)
    tolerance = tolerance_of(dtype) if tolerance is None else tolerance
    return Row(name, of_whole_arrays([library], [like(shape, dtype)]), operands, expected, tolerance, **options)


def _without(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reduction(
    name: str, library: Any, numpy: Any, x: np.ndarray, axes: tuple[int, ...], keep: bool = True, dtype: Any = None
) -> Row:
    """A reduction along axes."""
    shape = _without(x.shape, axes, keep)
    pair = lambda x: library(x, axis=axes, keepdims=keep), lambda x: numpy(x, axis=axes, keepdims=keep)
    text = "".join(map(str, axes)) + ("" if keep else " dropped")
    return one(f"{name} {x.dtype.name}{list(x.shape)} along {text}", pair, [x], shape, dtype or x.dtype)


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    for dtype in (np.float32, ml_dtypes.bfloat16, np.float16, np.int32, np.uint32):
        x = floats(*SHAPE, dtype=dtype, low=-0.5) if np.dtype(dtype).kind not in "iu" else ints(*SHAPE, dtype=dtype)
        for axes in ((0,), (1,)):
            if np.dtype(dtype).kind not in "iu":
                yield reduction(
                    "sum",
                    lambda x, **k: x.astype(jnp.float32).sum(**k),
                    lambda x, **k: x.sum(**k),
                    x,
                    axes,
                    dtype=np.float32,
                )
            else:
                yield reduction(
                    "sum", jnp.sum, lambda x, axis, keepdims: x.sum(axis, x.dtype, keepdims=keepdims), x, axes
                )
            yield reduction("max", jnp.max, np.max, x, axes)
            yield reduction("min", jnp.min, np.min, x, axes)
    x = floats(*SHAPE)
    yield reduction("prod", jnp.prod, np.prod, 1 + 0.01 * x, (1,))
    yield reduction("sum", jnp.sum, np.sum, x, (0,), False)
    yield reduction("sum", jnp.sum, np.sum, x, (1,), False)
    cube = floats(*CUBE)
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        yield reduction("sum", jnp.sum, np.sum, cube, axes)
    yield from of_bools()


def of_bools() -> Iterator[Row]:
    """Reductions of bools and of NaN."""
    x = floats(*SHAPE)
    cube = floats(*CUBE)
    yield reduction("max", jnp.max, np.max, cube, (0,), False)
    yield reduction("mean", jnp.mean, np.mean, cube, (2,))
    yield one("sum of all", (lambda x: x.sum().reshape(1, 1), lambda x: x.sum().reshape(1, 1)), [x], (1, 1), np.float32)
    yield one("sum of all to a row", (lambda x: x + x.sum(), lambda x: x + x.sum()), [x], SHAPE, np.float32, 1e-4)
    bits = bools(*SHAPE)
    yield one("any", (lambda x: x.any(1, keepdims=True), lambda x: x.any(1, keepdims=True)), [bits], (8, 1), bool)
    yield one(
        "all",
        (lambda x: (x | x[0:1]).all(1, keepdims=True), lambda x: (x | x[0:1]).all(1, keepdims=True)),
        [bits],
        (8, 1),
        bool,
    )
    yield one(
        "count",
        (lambda x: (x > 0).sum(1, keepdims=True), lambda x: (x > 0).sum(1, keepdims=True)),
        [x],
        (8, 1),
        np.int32,
    )
    nans = x.copy()
    nans[2, 5] = np.nan
    yield reduction("max with a NaN", jnp.max, np.max, nans, (1,))
    yield from arguments()
    yield from scans()


def arguments() -> Iterator[Row]:
    """argmax and argmin; the first of equal elements counts."""
    x = np.round(floats(*SHAPE) * 4)
    many = np.round(floats(*SHAPE, seed=5) * 4).astype(np.int32)
    for axis in (0, 1):
        for array in (x, many):
            shape = _without(SHAPE, (axis,), True)
            for name, library, numpy in (("argmax", jnp.argmax, np.argmax), ("argmin", jnp.argmin, np.argmin)):
                pair = (
                    lambda x, f=library, axis=axis: f(x, axis=axis, keepdims=True),
                    lambda x, f=numpy, axis=axis: f(x, axis=axis, keepdims=True),
                )
                yield one(f"{name} {array.dtype.name} along {axis}", pair, [array], shape, np.int32)
    nans = x.copy()
    nans[2, 5] = nans[2, 9] = np.nan
    pair = lambda x: jnp.argmax(x, axis=1, keepdims=True), lambda x: np.argmax(x, axis=1, keepdims=True)
    yield one("argmax with a NaN", pair, [nans], (8, 1), np.int32)


def scans() -> Iterator[Row]:
    """Sums and other results so far."""
    x = floats(*SHAPE)
    for axis in (0, 1):
        pair = lambda x, axis=axis: jnp.cumsum(x, axis=axis), lambda x, axis=axis: np.cumsum(x, axis=axis)
        yield one(f"cumsum along {axis}", pair, [x], SHAPE, np.float32, 1e-4)
        pair = lambda x, axis=axis: lax.cummax(x, axis=axis), lambda x, axis=axis: np.maximum.accumulate(x, axis=axis)
        yield one(f"cummax along {axis}", pair, [x], SHAPE, np.float32)
    reverse = lambda x: lax.cumsum(x, axis=1, reverse=True), lambda x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
    yield one("cumsum from the end", reverse, [x], SHAPE, np.float32, 1e-4)
