"""Rows of the collectives, each under a vmap over its first axis that names it: what it does from outside."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.rows.row import Arg, Row
from xlamini import ShapeDtypeStruct, lax, vmap

TURN = [(0, 1), (1, 2), (2, 0)]
BEGINS = np.array([[0, 1, 2]] * 3, np.int32)
ONES = np.ones((3, 3), np.int32)
PLACES = np.array([[0] * 3, [1] * 3, [2] * 3], np.int32)


def mapped(
    name: str, op: Callable[..., Any], reference: Any, *, shape: tuple[int, ...] = (3, 2), **options: Any
) -> Row:
    options = {"dtypes": ("float32", "float64", "int32"), "order": 1, **options}
    return Row(name, lambda *xs: vmap(op, axis_name="i")(*xs), reference, samples=[[Arg(shape)]], **options)


def alike(reduced: Any) -> Any:
    """A reduction over the named axis, whose result all positions get."""
    return lambda x: np.broadcast_to(reduced(x, 0, keepdims=True), x.shape).astype(x.dtype)


def sent(x: Any) -> Any:
    return lax.precv(lax.psend(x, "i", TURN), ShapeDtypeStruct(x.shape, x.dtype), "i", TURN)


def exchanged(x: Any, output: Any, *table: Any) -> Any:
    return lax.ragged_all_to_all(x, output, *table, axis_name="i")


ROWS = [
    mapped("psum", lambda x: lax.psum(x, "i"), alike(np.sum), linear=True),
    mapped("pmax", lambda x: lax.pmax(x, "i"), alike(np.max), differentiable=False),
    mapped("pmin", lambda x: lax.pmin(x, "i"), alike(np.min), differentiable=False),
    mapped("pmean", lambda x: lax.pmean(x, "i"), alike(np.mean), dtypes=("float32", "float64"), linear=True),
    mapped("all_gather", lambda x: lax.all_gather(x, "i"), lambda x: np.stack([x] * 3), linear=True),
    mapped("all_to_all", lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: x.T, shape=(3, 3), linear=True),
    mapped("pswapaxes", lambda x: lax.pswapaxes(x, "i", 0), lambda x: x.T, shape=(3, 3), linear=True),
    mapped("ppermute", lambda x: lax.ppermute(x, "i", TURN), lambda x: np.roll(x, 1, 0), linear=True),
    mapped("pshuffle", lambda x: lax.pshuffle(x, "i", [2, 0, 1]), lambda x: np.roll(x, 1, 0), linear=True),
    mapped("pbroadcast", lambda x: lax.pbroadcast(x, "i", 1), lambda x: np.stack([x[1]] * 3), linear=True),
    mapped("psum_scatter", lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0).astype(x.dtype), shape=(3, 3)),
    mapped("psend", lambda x: lax.psend(x, "i", TURN), lambda x: np.roll(x, 1, 0), linear=True),
    mapped("precv", sent, lambda x: np.roll(x, 1, 0), linear=True),
    mapped("pcast", lambda x: lax.pcast(x, "i", to="varying"), lambda x: x, linear=True),
    mapped("axis_index", lambda x: x * 0 + lax.axis_index("i"), lambda x: x * 0 + np.array([[0], [1], [2]], x.dtype)),
    mapped("axis_size", lambda x: x * lax.axis_size("i"), lambda x: x * 3, linear=True),
    Row(
        "ragged_all_to_all",
        lambda x, out: vmap(exchanged, axis_name="i")(x, out, BEGINS, ONES, PLACES, ONES),
        lambda x, out: np.concatenate([x.T, out[:, 3:]], 1),
        samples=[[Arg((3, 3)), Arg((3, 4))]],
        dtypes=("float32", "float64"),
        order=1,
    ),
]
