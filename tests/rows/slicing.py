"""Rows of the operations that cut, join, pad, read and write: lax.slice to lax.scatter."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.rows.row import BOOLS, COMPLEXES, FLOATS, INTS, Arg, Array, Row
from xlamini import lax

NUMBERS = FLOATS + INTS + COMPLEXES
ALL = NUMBERS + BOOLS
WIDE_FLOATS = ("float32", "float64")


def index(*shape: int, low: int = 0, high: int = 3) -> Arg:
    """Random integers in [low, high]."""
    return Arg(shape, (low, high), "int32")


def padded(x: Array, value: Array, config: Any) -> Array:
    """lax.pad of a matrix, one dimension after the other, by hand."""
    for axis, (low, high, between) in enumerate(config):
        x = np.moveaxis(x, axis, 0)
        wide = np.full((max(0, len(x) * (between + 1) - between), *x.shape[1:]), value, x.dtype)
        wide[:: between + 1] = x
        edges = [np.full((max(0, n), *x.shape[1:]), value, x.dtype) for n in (low, high)]
        wide = np.concatenate([edges[0], wide, edges[1]])
        wide = wide[max(0, -low) : len(wide) - max(0, -high)]
        x = np.moveaxis(wide, 0, axis)
    return x


def pad_row(name: str, config: Any, *shape: int) -> Row:
    return Row(
        name,
        lambda x, v: lax.pad(x, v, config),
        lambda x, v: padded(x, v, config),
        samples=[[Arg(shape), Arg(())]],
        dtypes=ALL,
        linear=True,
        exact=True,
    )


def moved_inside(starts: tuple[Any, ...], shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[int]:
    """Starts of a box as dynamic_slice takes them."""
    counted = [int(s) + (n if s < 0 else 0) for s, n in zip(starts, shape, strict=True)]
    return [min(max(s, 0), n - k) for s, n, k in zip(counted, shape, sizes, strict=True)]


def box(x: Array, starts: tuple[Any, ...], sizes: tuple[int, ...]) -> Array:
    begins = moved_inside(starts, x.shape, sizes)
    return x[tuple(slice(s, s + k) for s, k in zip(begins, sizes, strict=True))]


def updated(x: Array, update: Array, starts: tuple[Any, ...]) -> Array:
    begins = moved_inside(starts, x.shape, update.shape)
    out = x.copy()
    out[tuple(slice(s, s + k) for s, k in zip(begins, update.shape, strict=True))] = update
    return out


CUTTING = [
    Row(
        "broadcasted_iota",
        lambda x: lax.broadcasted_iota(x.dtype, (2, 3), 0),
        lambda x: np.broadcast_to(np.arange(2)[:, None], (2, 3)).astype(x.dtype),
        samples=[[Arg(())]],
        dtypes=("float32", "int8"),
        differentiable=False,
        exact=True,
    ),
    Row(
        "dynamic_slice_in_dim",
        lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=1),
        lambda x, i: box(x, (0, i), (2, 2)),
        samples=[[Arg((2, 5)), index(low=-5, high=6)]],
        linear=True,
        exact=True,
    ),
    Row(
        "dynamic_update_slice_in_dim",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        lambda x, u, i: updated(x, u, (0, i)),
        samples=[[Arg((2, 5)), Arg((2, 2)), index(low=-5, high=6)]],
        linear=True,
        exact=True,
    ),
    Row(
        "iota",
        lambda x: lax.broadcasted_iota(x.dtype, (2, 3), 1),
        lambda x: np.broadcast_to(np.arange(3), (2, 3)).astype(x.dtype),
        samples=[[Arg(())]],
        dtypes=("float32", "int8"),
        differentiable=False,
        batched=False,
        exact=True,
    ),
    Row(
        "slice",
        lambda x: lax.slice(x, (1, 0), (4, 3)),
        lambda x: x[1:4, :3],
        samples=[[Arg((5, 3))]],
        dtypes=ALL,
        linear=True,
        exact=True,
    ),
    Row(
        "slice: with strides",
        lambda x: lax.slice(x, (1, 0), (5, 6), (3, 2)),
        lambda x: x[1:5:3, :6:2],
        samples=[[Arg((5, 7))]],
        linear=True,
        exact=True,
    ),
    Row(
        "slice_in_dim",
        lambda x: lax.slice_in_dim(x, -4, -1, 2, axis=1),
        lambda x: x[:, -4:-1:2],
        samples=[[Arg((2, 5))]],
        linear=True,
        exact=True,
    ),
    Row(
        "index_in_dim",
        lambda x: lax.index_in_dim(x, -2, 1, keepdims=False),
        lambda x: x[:, -2],
        samples=[[Arg((2, 5))]],
        linear=True,
        exact=True,
    ),
    pad_row("pad", ((1, 2, 0), (0, 0, 1)), 2, 3),
    pad_row("pad: cutting off", ((-1, 2, 1), (1, -2, 0)), 3, 4),
    pad_row("pad: of nothing", ((1, 2, 3), (0, 0, 1)), 0, 2),
    Row(
        "concatenate",
        lambda x, y, z: lax.concatenate([x, y, z], 1),
        lambda x, y, z: np.concatenate([x, y, z], 1),
        samples=[[Arg((2, 3)), Arg((2, 0)), Arg((2, 2))]],
        dtypes=ALL,
        linear=True,
        exact=True,
    ),
    Row(
        "split",
        lambda x: lax.split(x, (1, 0, 3), axis=1),
        lambda x: [x[:, :1], x[:, 1:1], x[:, 1:]],
        samples=[[Arg((2, 4))]],
        dtypes=ALL,
        linear=True,
        exact=True,
    ),
]

DYNAMIC = [
    Row(
        "dynamic_slice",
        lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
        lambda x, i, j: box(x, (i, j), (2, 3)),
        samples=[[Arg((4, 5)), index(low=-4, high=6), index(low=-5, high=6)]],
        dtypes=ALL,
        linear=True,
        exact=True,
    ),
    Row(
        "dynamic_index_in_dim",
        lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False),
        lambda x, i: x[:, i],
        samples=[[Arg((2, 5)), index(low=-5, high=4)]],
        linear=True,
        exact=True,
    ),
    Row(
        "dynamic_slice: by a vector",
        lambda x, i: lax.dynamic_slice(x, i, (2, 3)),
        lambda x, i: box(x, tuple(i), (2, 3)),
        samples=[[Arg((4, 5)), index(2, high=6)]],
        linear=True,
        exact=True,
    ),
    Row(
        "dynamic_update_slice",
        lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
        lambda x, u, i, j: updated(x, u, (i, j)),
        samples=[[Arg((4, 5)), Arg((2, 3)), index(low=-4, high=6), index(low=-5, high=6)]],
        dtypes=ALL,
        linear=True,
        exact=True,
    ),
    Row(
        "dynamic_update_index_in_dim",
        lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 1),
        lambda x, u, i: updated(x, u[:, None], (0, i)),
        samples=[[Arg((2, 5)), Arg((2,)), index(low=-5, high=4)]],
        linear=True,
        exact=True,
    ),
]

# --- gather and scatter: rows of a matrix, elements of a matrix, and rows that run along with a batch

ROWS_OF = lax.GatherDimensionNumbers((1,), (0,), (0,))
ELEMENTS = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
ALONG = lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
WINDOWS = lax.GatherDimensionNumbers((1, 2), (), (1, 0))


def as_scatter(numbers: lax.GatherDimensionNumbers) -> lax.ScatterDimensionNumbers:
    return lax.ScatterDimensionNumbers(*numbers)


def filled(x: Array, i: Array, fill: float) -> Array:
    """Rows of a matrix, or rows of `fill` for indices out of bounds."""
    inside = (i >= 0) & (i < len(x))
    return np.where(inside, x[np.clip(i, 0, len(x) - 1)[:, 0]], np.asarray(fill, x.dtype))


def gather_row(name: str, numbers: Any, sizes: tuple[int, ...], reference: Any, where: Arg, **options: Any) -> Row:
    return Row(
        name,
        lambda x, i: lax.gather(x, i, numbers, sizes, **options),
        reference,
        samples=[[Arg((4, 3)), where]],
        dtypes=ALL if options.get("mode") == "clip" else WIDE_FLOATS,
        linear=True,
        exact=True,
    )


def window_at(x: Array, i: Array) -> Array:
    """A box of 2 by 2 at each index vector, whose components are exchanged."""
    return np.stack([box(x, (b, a), (2, 2)) for a, b in np.maximum(i, 0)])


ANYWHERE = index(5, 1, low=-2, high=6)

FILL = {"mode": "fill", "fill_value": 7}

GATHERS = [
    gather_row("gather", ROWS_OF, (1, 3), lambda x, i: x[i[:, 0]], index(5, 1), mode="clip"),
    gather_row("gather: with clipping", ROWS_OF, (1, 3), lambda x, i: x[np.clip(i[:, 0], 0, 3)], ANYWHERE, mode="clip"),
    gather_row("gather: with filling", ROWS_OF, (1, 3), lambda x, i: filled(x, i, 7), ANYWHERE, **FILL),
    gather_row("gather: of elements", ELEMENTS, (1, 1), lambda x, i: x[i[..., 0], i[..., 1]], index(2, 5, 2, high=2)),
    gather_row("gather: along a batch", ALONG, (1, 1), lambda x, i: x[np.arange(4), i[:, 0]], index(4, 1, high=2)),
    gather_row("gather: of windows", WINDOWS, (2, 2), window_at, index(5, 2, low=-1, high=4), mode="clip"),
]


def at(ufunc: Any, x: Array, i: Array, updates: Array) -> Array:
    """NumPy's way of updating repeatedly; indices out of bounds are left out."""
    out = x.copy()
    inside = (i[:, 0] >= 0) & (i[:, 0] < len(x))
    ufunc.at(out, i[inside, 0], updates[inside])
    return out


def put(x: Array, i: Array, updates: Array) -> Array:
    out = x.copy()
    inside = i[:, 0] < len(x)
    out[i[inside, 0]] = updates[inside]
    return out


def scatter_row(name: str, op: Callable[..., Any], reference: Any, **options: Any) -> Row:
    return Row(
        name,
        lambda x, u, i: op(x, i, u, as_scatter(ROWS_OF)),
        lambda x, u, i: reference(x, i, u),
        dtypes=("float32", "float64", "int32"),
        **{"samples": [[Arg((4, 3)), Arg((6, 3)), index(6, 1, low=-1, high=5)]], **options},
    )


def distinct(*shape: int) -> Arg:
    """Index vectors that differ; one of them is out of bounds."""
    return Arg(shape, dtype="int32", values=lambda rng, _: rng.permutation(shape[0] + 1)[: shape[0], None])


SET = {"samples": [[Arg((4, 3)), Arg((4, 3)), distinct(4, 1)]]}


def unique(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, i, u, numbers: op(x, i, u, numbers, unique_indices=True)


SCATTERS = [
    scatter_row("scatter", lax.scatter, put, exact=True, linear=False, **SET),
    scatter_row("scatter: at unique indices", unique(lax.scatter), put, exact=True, linear=True, **SET),
    scatter_row("scatter_add", lax.scatter_add, lambda *a: at(np.add, *a), linear=True),
    scatter_row("scatter_sub", lax.scatter_sub, lambda *a: at(np.subtract, *a), linear=True),
    scatter_row("scatter_mul: at unique indices", unique(lax.scatter_mul), lambda *a: at(np.multiply, *a), **SET),
    scatter_row("scatter_min", lax.scatter_min, lambda *a: at(np.minimum, *a)),
    scatter_row("scatter_max", lax.scatter_max, lambda *a: at(np.maximum, *a)),
    Row(
        "scatter_add: with clipping",
        lambda x, u, i: lax.scatter_add(x, i, u, as_scatter(ROWS_OF), mode="clip"),
        lambda x, u, i: at(np.add, x, np.clip(i, 0, 3), u),
        samples=[[Arg((4, 3)), Arg((6, 3)), index(6, 1, low=-3, high=5)]],
        dtypes=WIDE_FLOATS,
        linear=True,
    ),
    Row(
        "scatter_add: along a batch",
        lambda x, u, i: lax.scatter_add(x, i, u, as_scatter(ALONG)),
        lambda x, u, i: x + np.eye(3)[i[:, 0]].astype(x.dtype) * u[:, None],
        samples=[[Arg((4, 3)), Arg((4,)), index(4, 1, high=2)]],
        dtypes=WIDE_FLOATS,
        linear=True,
    ),
    Row(
        "scatter_apply",
        lambda x, i: lax.scatter_apply(x, i, lambda e: e * 2 + 1, as_scatter(ROWS_OF), update_shape=(2, 3)),
        lambda x, i: np.where(np.isin(np.arange(4), i)[:, None], x * 2 + 1, x),
        samples=[[Arg((4, 3), diff=False), distinct(2, 1)]],
        dtypes=("float32", "float64", "int32"),
        exact=True,
    ),
]

ROWS = [*CUTTING, *DYNAMIC, *GATHERS, *SCATTERS]
