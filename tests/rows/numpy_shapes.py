"""Rows of numpy's functions that make, reshape, join, split, repeat, flip, pad and read arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.rows.row import BOOLS, COMPLEXES, FLOATS, INTS, Arg, Row

ALL = FLOATS + COMPLEXES + INTS + BOOLS
SHAPE = (2, 3, 4)


def moved(name: str, change: Callable[[Any, Any], Any], *shapes: tuple[int, ...], count: int = 1) -> Row:
    """A row of `change(numpy, *arrays)`, which is linear and exact in every dtype."""
    samples = [[Arg(s) for _ in range(count)] for s in shapes or (SHAPE,)]
    op, reference = (lambda *arrays, xp=xp: change(xp, *arrays) for xp in (jnp, np))
    return Row(f"numpy.{name}", op, reference, samples=samples, dtypes=ALL, linear=True, exact=True)


def filled(name: str, change: Callable[[Any, Any], Any]) -> Row:
    """A row of a function whose values do not depend on the array's."""
    op, reference = (lambda x, xp=xp: change(xp, x) for xp in (jnp, np))
    samples = [[Arg()], [Arg(())]]
    return Row(f"numpy.{name}", op, reference, samples=samples, dtypes=ALL, differentiable=False, exact=True)


def pair(name: str, change: Callable[..., Any], *shapes: tuple[int, ...]) -> Row:
    return moved(name, change, *shapes, count=2)


CREATION = [
    filled(name, change)
    for name, change in {
        "zeros": lambda xp, x: xp.zeros(x.shape, x.dtype),
        "ones": lambda xp, x: xp.ones(x.shape, x.dtype),
        "empty": lambda xp, x: xp.empty(x.shape, x.dtype) if xp is jnp else np.zeros(x.shape, x.dtype),
        "full": lambda xp, x: xp.full((2, *x.shape), 1, x.dtype),
        "zeros_like": lambda xp, x: xp.zeros_like(x),
        "ones_like": lambda xp, x: xp.ones_like(x),
        "empty_like": lambda xp, x: xp.zeros_like(x) if xp is np else xp.empty_like(x),
        "full_like": lambda xp, x: xp.full_like(x, 1),
        "eye": lambda xp, x: xp.eye(3, 2, k=-1, dtype=x.dtype),
        "identity": lambda xp, x: xp.identity(3, dtype=x.dtype),
        "tri": lambda xp, x: xp.tri(3, 4, 1, dtype=x.dtype),
    }.items()
]
CONSTRUCTION = [
    moved("array", lambda xp, x: xp.array(x), SHAPE, ()),
    moved("asarray", lambda xp, x: xp.asarray(x), SHAPE, ()),
    moved("copy", lambda xp, x: xp.copy(x)),
    Row("numpy.astype", lambda x: jnp.astype(x, "float32"), lambda x: x.astype("float32"), dtypes=INTS + BOOLS),
]
RANGES = [
    Row("numpy.linspace", lambda x, y: jnp.linspace(x, y, 4), lambda x, y: np.linspace(x, y, 4).astype(x.dtype),
        samples=[[Arg((2,)), Arg((2,))], [Arg(()), Arg((3,))]], dtypes=("float32", "float64"), linear=True,
        tolerance={"float32": 1e-5}),
    Row("numpy.logspace", lambda x: jnp.logspace(x, 1.0, 3), lambda x: np.logspace(x, 1.0, 3).astype(x.dtype),
        samples=[[Arg((2,), domain=(-1, 1))]], dtypes=("float32", "float64"), order=1, tolerance={"float32": 1e-5}),
    pair("meshgrid", lambda xp, x, y: tuple(xp.meshgrid(x, y, indexing="ij")), (3,)),
]  # fmt: skip
SHAPES = [
    moved("reshape", lambda xp, x: xp.reshape(x, (4, -1)), SHAPE, (0, 4)),
    moved("reshape: F", lambda xp, x: xp.reshape(x, (4, -1), order="F")),
    moved("ravel", lambda xp, x: xp.ravel(x), SHAPE, (), (0, 2)),
    moved("transpose", lambda xp, x: xp.transpose(x, (2, 0, -2))),
    moved("permute_dims", lambda xp, x: jnp.permute_dims(x, (1, 2, 0)) if xp is jnp else x.transpose(1, 2, 0)),
    moved("matrix_transpose", lambda xp, x: jnp.matrix_transpose(x) if xp is jnp else x.swapaxes(-1, -2)),
    moved("swapaxes", lambda xp, x: xp.swapaxes(x, 0, -1)),
    moved("moveaxis", lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0))),
    moved("rollaxis", lambda xp, x: xp.rollaxis(x, 2, 1)),
    moved("expand_dims", lambda xp, x: xp.expand_dims(x, (0, -1)), SHAPE, ()),
    moved("squeeze", lambda xp, x: xp.squeeze(x, (0, -1)), (1, 3, 1), (1, 1)),
    moved("atleast_1d", lambda xp, x: xp.atleast_1d(x), (), (2,)),
    moved("atleast_2d", lambda xp, x: xp.atleast_2d(x), (), (2,), (2, 3)),
    moved("atleast_3d", lambda xp, x: xp.atleast_3d(x), (), (2,), (2, 3)),
]
JOINING = [
    pair("concatenate", lambda xp, x, y: xp.concatenate([x, y], 1), (2, 3), (2, 0)),
    pair("concatenate: flat", lambda xp, x, y: xp.concatenate([x, y], None), (2, 3)),
    pair("concat", lambda xp, x, y: jnp.concat([x, y], axis=-1) if xp is jnp else np.concatenate([x, y], -1), (2, 3)),
    pair("stack", lambda xp, x, y: xp.stack([x, y], -1), (2, 3), ()),
    pair("append", lambda xp, x, y: xp.append(x, y, 0), (2, 3)),
    pair("block", lambda xp, x, y: xp.block([[x, y], [y, x]]), (2, 3)),
    *(
        pair(name, lambda xp, x, y, name=name: getattr(xp, name)([x, y]), (2, 3), (3,))
        for name in ("vstack", "hstack", "dstack", "column_stack")
    ),
    pair("broadcast_arrays", lambda xp, x, y: tuple(xp.broadcast_arrays(x[:, :1], y)), (2, 3)),
]
SPLITTING = [
    moved("split", lambda xp, x: tuple(xp.split(x, [1, 3], -1))),
    moved("array_split", lambda xp, x: tuple(xp.array_split(x, 2, 1))),
    moved("hsplit", lambda xp, x: tuple(xp.hsplit(x, 3))),
    moved("vsplit", lambda xp, x: tuple(xp.vsplit(x, 2))),
    moved("dsplit", lambda xp, x: tuple(xp.dsplit(x, [1]))),
    moved("unstack", lambda xp, x: jnp.unstack(x, axis=1) if xp is jnp else tuple(np.moveaxis(x, 1, 0))),
]
REPEATING = [
    moved("broadcast_to", lambda xp, x: xp.broadcast_to(x, (2, 3, 4)), (3, 1), (4,), ()),
    moved("tile", lambda xp, x: xp.tile(x, (2, 1, 3)), (2, 3), ()),
    moved("repeat", lambda xp, x: xp.repeat(x, 2, axis=1), (2, 3)),
    moved("repeat: each", lambda xp, x: xp.repeat(x, np.array([2, 0, 1]), axis=-1), (2, 3)),
    moved("flip", lambda xp, x: xp.flip(x, (0, -1))),
    moved("fliplr", lambda xp, x: xp.fliplr(x)),
    moved("flipud", lambda xp, x: xp.flipud(x)),
    moved("roll", lambda xp, x: xp.roll(x, (1, -2), (0, 2))),
    moved("rot90", lambda xp, x: xp.rot90(x, 3, (0, 1))),
]
PADDING = [
    moved(f"pad: {mode}", lambda xp, x, mode=mode: xp.pad(x, ((1, 2), (2, 0)), mode), (2, 3))
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
] + [
    Row(
        f"numpy.pad: {mode}",
        lambda x, mode=mode, options=options: jnp.pad(x, 2, mode, **options),
        lambda x, mode=mode, options=options: np.pad(x, 2, mode, **options),
        samples=[[Arg((2, 3))], [Arg((4,))]],
        dtypes=("float32", "float64", "int32"),
        order=1,
        tolerance={"float32": 1e-5},
    )
    for mode, options in {
        "linear_ramp": {"end_values": 5},
        "mean": {},
        "maximum": {"stat_length": 2},
        "minimum": {},
    }.items()
]
MATRICES = [
    moved("tril", lambda xp, x: xp.tril(x, 1)),
    moved("triu", lambda xp, x: xp.triu(x, -1)),
    moved("diag", lambda xp, x: xp.diag(x, 1), (3,), (3, 4)),
    moved("diagflat", lambda xp, x: xp.diagflat(x, -1), (2, 2)),
    moved("diagonal", lambda xp, x: xp.diagonal(x, 1, -1, 0)),
    Row("numpy.trace", lambda x: jnp.trace(x, 1), lambda x: np.trace(x, 1).astype(x.dtype), samples=[[Arg((3, 4))]],
        linear=True, dtypes=("float32", "float64", "complex64"), tolerance={"float32": 1e-5}),
]  # fmt: skip


def places(*shape: int, size: int) -> Arg:
    return Arg(shape, domain=(0, size), dtype="int32", diff=False)


TAKE = [
    Row("numpy.take", lambda x, i: jnp.take(x, i, 1), lambda x, i: np.take(x, i, 1),
        samples=[[Arg((2, 4)), places(2, 3, size=3)]], dtypes=ALL, exact=True, linear=True),
    Row("numpy.take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), lambda x, i: np.take_along_axis(x, i, 1),
        samples=[[Arg((2, 4)), places(2, 3, size=3)]], dtypes=ALL, exact=True, linear=True),
    Row("numpy.put", lambda x, y: jnp.put(x, np.array([0, 3]), y, inplace=False), lambda x, y: _put(x, y),
        samples=[[Arg((2, 4)), Arg((2,))]], dtypes=ALL, exact=True, linear=True),
    Row("numpy.put_along_axis", lambda x, y: jnp.put_along_axis(x, np.array([[1], [2]]), y, 1, inplace=False),
        lambda x, y: _put_along(x, y), samples=[[Arg((2, 4)), Arg((2, 1))]], dtypes=ALL, exact=True, linear=True),
]  # fmt: skip


def _put(x: Any, y: Any) -> Any:
    out = x.copy()
    np.put(out, [0, 3], y)
    return out


def _put_along(x: Any, y: Any) -> Any:
    out = x.copy()
    np.put_along_axis(out, np.array([[1], [2]]), y, 1)
    return out


REVERSE = jnp.vectorize(lambda vector: vector[::-1], signature="(n)->(n)")
EDITING = [
    pair("insert", lambda xp, x, y: xp.insert(x, np.array([0, 2]), y[:, :2], axis=1), (2, 3)),
    moved("delete", lambda xp, x: xp.delete(x, np.array([0, -1]), axis=1), (2, 4)),
    moved("vectorize", lambda xp, x: REVERSE(x) if xp is jnp else x[..., ::-1]),
    moved("apply_along_axis", lambda xp, x: xp.apply_along_axis(lambda r: r[::-1], 1, x)),
    moved("apply_over_axes", lambda xp, x: xp.apply_over_axes(lambda a, d: a[:1] if d == 0 else a, x, (0, 1))),
]  # fmt: skip
ROWS = [
    *CREATION, *CONSTRUCTION, *RANGES, *SHAPES, *JOINING, *SPLITTING, *REPEATING, *PADDING, *MATRICES, *TAKE, *EDITING,
]  # fmt: skip
