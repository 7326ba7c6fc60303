"""Rows of what slides windows over arrays: convolution, pooling, reductions by a computation; references are loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.rows.reductions import LOOSE, REALS, distinct
from tests.rows.row import COMPLEXES, FLOATS, INTS, Arg, Array, Row
from xlamini import lax, numpy as jnp

WIDE = ("float32", "float64", "complex128", "int32")
FEW = ("float32", "float64")
ROUGH = {**LOOSE, "bfloat16": 2e-1, "float16": 2e-2, "float32": 2e-5}
PAIR = Arg((2, 4, 5, 4)), Arg((4, 2, 3, 2))


def spaced(x: Array, dims: Sequence[int], steps: Sequence[int], around: Sequence[Any], filler: Any) -> Array:
    """An array with holes between its elements along `dims`, and padding around."""
    shape, places = list(x.shape), [slice(None)] * x.ndim
    for d, step, (low, high) in zip(dims, steps, around, strict=True):
        reach = (x.shape[d] - 1) * step + 1
        shape[d], places[d] = low + reach + high, slice(low, low + reach, step)
    out = np.full(shape, filler, x.dtype)
    out[tuple(places)] = x
    return out


def convolved(
    x: Array, k: Array, strides: Sequence[int], around: Sequence[tuple[int, int]], base: Any = (1, 1),
    holes: Any = (1, 1), groups: int = 1,
) -> Array:  # fmt: skip
    """A convolution of NCHW with OIHW, window by window."""
    x, k = spaced(x, (2, 3), base, around, 0), spaced(k, (2, 3), holes, [(0, 0)] * 2, 0)
    counts = [(n - w) // s + 1 for n, w, s in zip(x.shape[2:], k.shape[2:], strides, strict=True)]
    out = np.zeros((x.shape[0], k.shape[0], *counts), x.dtype)
    for i, j in np.ndindex(*counts):
        at = x[:, :, i * strides[0] :, j * strides[1] :][:, :, : k.shape[2], : k.shape[3]]
        parts = [np.einsum("nihw,oihw->no", *p) for p in zip(np.split(at, groups, 1), np.split(k, groups), strict=True)]
        out[:, :, i, j] = np.concatenate(parts, 1)
    return out


def pooled(x: Array, reduce: Any, start: Any, window: Any, strides: Any, around: Any, base: Any, holes: Any) -> Array:
    """A reduction of every window."""
    x = spaced(x, range(x.ndim), base, around, start)
    reach = [(w - 1) * h + 1 for w, h in zip(window, holes, strict=True)]
    counts = [(n - r) // s + 1 for n, r, s in zip(x.shape, reach, strides, strict=True)]
    out = np.zeros(counts, x.dtype)
    for at in np.ndindex(*counts):
        box = [slice(i * s, i * s + r, h) for i, s, r, h in zip(at, strides, reach, holes, strict=True)]
        out[at] = reduce(x[tuple(box)])
    return out


def same(*sizes: int) -> list[tuple[int, int]]:
    return [((n - 1) // 2, n // 2) for n in sizes]


CONVOLUTIONS = [
    Row(
        "conv_general_dilated",
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=2),
        lambda x, k: convolved(x, k, (1, 1), same(3, 2), groups=2),
        samples=[PAIR], dtypes=(*WIDE, "bfloat16", "int8"), tolerance=ROUGH,
    ),
    Row(
        "conv_general_dilated: strides and dilations",
        lambda x, k: lax.conv_general_dilated(x, k, (2, 1), ((1, 2), (-1, 1)), (1, 2), (1, 3)),
        lambda x, k: convolved(x[..., :], k, (2, 1), ((1, 2), (0, 1)), (1, 2), (1, 3))[..., 1:],
        samples=[[Arg((2, 2, 4, 5)), Arg((3, 2, 3, 2))]], dtypes=FEW, tolerance=ROUGH,
    ),
    Row(
        "conv_general_dilated: groups of the batch",
        lambda x, k: lax.conv_general_dilated(x, k, (1, 2), "VALID", batch_group_count=2),
        lambda x, k: np.concatenate(
            [convolved(a, b, (1, 2), [(0, 0)] * 2) for a, b in zip(np.split(x, 2), np.split(k, 2), strict=True)], 1
        ),
        samples=[[Arg((4, 2, 4, 5)), Arg((4, 2, 3, 2))]], dtypes=FEW, tolerance=ROUGH,
    ),
    Row(
        "conv_general_dilated: channels last",
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        lambda x, k: np.moveaxis(
            convolved(np.moveaxis(x, 3, 1), k.transpose(3, 2, 0, 1), (1, 1), [(0, 0)] * 2), 1, 3
        ),
        samples=[[Arg((2, 4, 5, 2)), Arg((3, 2, 2, 3))]], dtypes=("float32", "float64", "complex128"), tolerance=ROUGH,
    ),
    Row(
        "conv", lambda x, k: lax.conv(x, k, (2, 2), "VALID"), lambda x, k: convolved(x, k, (2, 2), [(0, 0)] * 2),
        samples=[[Arg((1, 2, 4, 5)), Arg((3, 2, 2, 2))]], dtypes=FEW, tolerance=ROUGH, order=1,
    ),
    Row(
        "conv_with_general_padding",
        lambda x, k: lax.conv_with_general_padding(x, k, (1, 1), [(1, 0), (0, 1)], None, (2, 1)),
        lambda x, k: convolved(x, k, (1, 1), [(1, 0), (0, 1)], holes=(2, 1)),
        samples=[[Arg((1, 2, 4, 5)), Arg((3, 2, 2, 2))]], dtypes=FEW, tolerance=ROUGH, order=1,
    ),
    Row(
        "conv_transpose",
        lambda x, k: lax.conv_transpose(x, k, (2, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")),
        lambda x, k: convolved(x, k, (1, 1), [(2, 2), (1, 1)], (2, 1)),
        samples=[[Arg((1, 2, 3, 4)), Arg((3, 2, 3, 2))]], dtypes=FEW, tolerance=ROUGH, order=1,
    ),
    Row(
        "conv_general_dilated_patches", lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 1), "VALID"),
        lambda x: convolved(x, np.eye(12, dtype=x.dtype).reshape(12, 2, 2, 3), (1, 1), [(0, 0)] * 2),
        samples=[[Arg((2, 2, 3, 4))]], dtypes=FLOATS + INTS + COMPLEXES, linear=True,
    ),
    Row(
        "conv_general_dilated_local",
        lambda x, k: lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (2, 3)),
        lambda x, k: np.einsum(
            "nchw,ochw->nohw",
            convolved(x, np.eye(12, dtype=x.dtype).reshape(12, 2, 2, 3), (1, 1), [(0, 0)] * 2), k,
        ),
        samples=[[Arg((2, 2, 3, 4)), Arg((3, 12, 2, 2))]], dtypes=FEW, tolerance=ROUGH, order=1,
    ),
]

WINDOWS: list[tuple[str, dict[str, Any]]] = [
    ("", {"window": (2, 2), "strides": (2, 2), "around": ((0, 0), (0, 1)), "base": (1, 1), "holes": (1, 1)}),
    (" close", {"window": (2, 3), "strides": (1, 2), "around": ((1, 0), (0, 2)), "base": (1, 1), "holes": (1, 1)}),
    (" dilated", {"window": (2, 2), "strides": (1, 1), "around": ((1, 1), (0, 0)), "base": (2, 1), "holes": (1, 2)}),
]


def windows(computation: Any, start: Any, params: dict[str, Any]) -> Callable[[Any], Any]:
    """`reduce_window` with a start made from the dtype."""
    order = (params[name] for name in ("window", "strides", "around", "base", "holes"))
    fixed = tuple(order)
    return lambda x: lax.reduce_window(x, jnp.asarray(start(x.dtype), x.dtype), computation, *fixed)


def low(dtype: Any) -> Any:
    return -np.inf if np.dtype(dtype).kind in "fV" else np.iinfo(dtype).min if np.dtype(dtype).kind != "b" else False


def high(dtype: Any) -> Any:
    return np.inf if np.dtype(dtype).kind in "fV" else np.iinfo(dtype).max if np.dtype(dtype).kind != "b" else True


def zero(dtype: Any) -> int:
    return 0


def one(dtype: Any) -> int:
    return 1


def pooling(name: str, computation: Any, reference: Any, start: Any, arg: Arg, **options: Any) -> list[Row]:
    return [
        Row(
            f"reduce_window: {name}{kind}",
            windows(computation, start, params),
            lambda x, params=params: pooled(x, reference, start(x.dtype), **params),
            samples=[[arg]],
            **options,
        )
        for kind, params in WINDOWS
    ]


POOLING = [
    *pooling(
        "sum", lax.add, np.sum, zero, Arg((4, 5)), dtypes=(*FLOATS, "int32", "complex64"), linear=True, tolerance=ROUGH
    ),
    *pooling("max", lax.max, np.max, low, distinct(4, 5), dtypes=REALS[:8]),
    *pooling("min", lax.min, np.min, high, distinct(4, 5), dtypes=REALS[:8]),
    *pooling(
        "product", lambda a, b: a * b, np.prod, one, Arg((4, 5), domain=(0.5, 2)), dtypes=FEW, order=1, tolerance=ROUGH
    ),
]

REDUCTIONS = [
    Row(
        "reduce: of pairs",
        lambda x, y: lax.reduce((x, y), (x.dtype.type(0), x.dtype.type(1)), of_pairs, (0, 2)),
        lambda x, y: (x.sum((0, 2)), y.prod((0, 2))),
        samples=[[Arg((2, 3, 2)), Arg((2, 3, 2), domain=(0.5, 2))]], dtypes=FEW, tolerance=ROUGH,
    ),
    Row(
        "reduce", lambda x: lax.reduce(x, x.dtype.type(0), lax.add, (0,)), lambda x: x.sum(0).astype(x.dtype),
        samples=[[Arg((3, 2))], [Arg((0, 2))]], dtypes=("float32", "float64", "int32", "complex64"), linear=True,
    ),
]  # fmt: skip


def of_pairs(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] * b[1]


def largest(x: Array, sign: int) -> tuple[Array, Array]:
    order = np.argsort(sign * x, -1, kind="stable")[..., :2]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


TOP = [
    Row(name, operation, lambda x, sign=sign: largest(x, sign), samples=[[distinct(3, 5)]], order=1)
    for name, operation, sign in (
        ("approx_max_k", lambda x: lax.approx_max_k(x, 2), -1),
        ("approx_min_k", lambda x: lax.approx_min_k(x, 2), 1),
    )
]

ROWS = [*CONVOLUTIONS, *POOLING, *REDUCTIONS, *TOP]
