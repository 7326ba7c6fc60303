"""Kernels that move elements: transposes, reshapes, parts, joins."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.reductions import one
from tests.support.kernel_rows.row import Row, bools, floats, ints
from xlamini import lax

GPU, TPU = ("cuda",), ("tpu",)


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    x, cube = floats(8, 128), floats(2, 8, 128)
    for name, array in (
        ("float32", x),
        ("bfloat16", x.astype(ml_dtypes.bfloat16)),
        ("int8", ints(8, 128, dtype=np.int8)),
        ("bool", bools(8, 128)),
    ):
        yield one(f"transpose {name}", (lambda x: x.T, lambda x: x.T), [array], (128, 8), array.dtype, 0.0)
    yield one(
        "transpose of the last two",
        (lambda x: x.transpose(0, 2, 1), lambda x: x.transpose(0, 2, 1)),
        [cube],
        (2, 128, 8),
        np.float32,
    )
    yield one(
        "transpose of the first two",
        (lambda x: x.transpose(1, 0, 2), lambda x: x.transpose(1, 0, 2)),
        [cube],
        (8, 2, 128),
        np.float32,
    )
    yield one(
        "reshape of the first two",
        (lambda x: x.reshape(16, 128), lambda x: x.reshape(16, 128)),
        [cube],
        (16, 128),
        np.float32,
    )
    yield from broadcasts()


def broadcasts() -> Iterator[Row]:
    """Values that are repeated."""
    x = floats(8, 128)
    yield one(
        "reshape to three",
        (lambda x: x.reshape(1, 8, 128), lambda x: x.reshape(1, 8, 128)),
        [x],
        (1, 8, 128),
        np.float32,
    )
    yield one("broadcast of a row", (lambda x, r: x + r, lambda x, r: x + r), [x, floats(1, 128)], (8, 128), np.float32)
    yield one(
        "broadcast of a column", (lambda x, c: x * c, lambda x, c: x * c), [x, floats(8, 1)], (8, 128), np.float32
    )
    yield one("broadcast of a vector", (lambda x, r: x + r, lambda x, r: x + r), [x, floats(128)], (8, 128), np.float32)
    yield one(
        "broadcast of bits",
        (lambda x, r: jnp.where(r, x, 0), lambda x, r: np.where(r, x, 0)),
        [x, bools(1, 128)],
        (8, 128),
        np.float32,
    )
    yield one(
        "column of a vector",
        (lambda x, c: x * c[:, None], lambda x, c: x * c[:, None]),
        [x, floats(8)],
        (8, 128),
        np.float32,
    )
    yield from numbered()
    yield from moved()
    yield from rolled()
    yield from rearranged()


def numbered() -> Iterator[Row]:
    """Numbers of rows and columns."""
    x = floats(8, 128)
    for axis in (0, 1):
        numbers = lambda x, axis=axis: lax.broadcasted_iota("int32", (8, 128), axis)
        yield one(
            f"iota along {axis}", (numbers, lambda x, axis=axis: np.indices((8, 128))[axis]), [x], (8, 128), np.int32
        )
    in_floats = lambda x: x + lax.broadcasted_iota("float32", (8, 128), 1)
    yield one("iota of floats", (in_floats, lambda x: x + np.arange(128)), [x], (8, 128), np.float32)
    yield one(
        "numbers",
        (
            lambda x: jnp.arange(128, dtype="int32")[None, :] + 0 * x.astype("int32"),
            lambda x: np.arange(128)[None] + np.zeros((8, 1)),
        ),
        [x],
        (8, 128),
        np.int32,
    )


def moved() -> Iterator[Row]:
    """Parts, and values that are joined."""
    x = floats(8, 128)
    yield one(
        "parts of a value", (lambda x: x[:, :64] + x[:, 64:], lambda x: x[:, :64] + x[:, 64:]), [x], (8, 64), np.float32
    )
    yield one("rows of a value", (lambda x: x[2:6], lambda x: x[2:6]), [x], (4, 128), np.float32)
    yield one(
        "joined columns",
        (lambda x, y: jnp.concatenate([x, y], 1), lambda x, y: np.concatenate([x, y], 1)),
        [x, floats(8, 128, seed=3)],
        (8, 256),
        np.float32,
    )
    yield one(
        "joined rows",
        (lambda x, y: jnp.concatenate([x, y], 0), lambda x, y: np.concatenate([x, y], 0)),
        [x, floats(8, 128, seed=3)],
        (16, 128),
        np.float32,
    )
    yield one(
        "stacked",
        (lambda x, y: jnp.stack([x, y]), lambda x, y: np.stack([x, y])),
        [x, floats(8, 128, seed=3)],
        (2, 8, 128),
        np.float32,
    )


def rolled() -> Iterator[Row]:
    """Values moved around their ends."""
    x = floats(8, 128)
    yield one(
        "rolled columns",
        (lambda x: jnp.roll(x, 3, 1), lambda x: np.roll(x, 3, 1)),
        [x],
        (8, 128),
        np.float32,
        targets=TPU,
    )
    yield one(
        "rolled rows",
        (lambda x: jnp.roll(x, -1, 0), lambda x: np.roll(x, -1, 0)),
        [x],
        (8, 128),
        np.float32,
        targets=TPU,
    )


def rearranged() -> Iterator[Row]:
    """Values in another order."""
    x = floats(8, 128)
    yield one("tiled", (lambda x: jnp.tile(x, (1, 2)), lambda x: np.tile(x, (1, 2))), [x], (8, 256), np.float32)
    yield one(
        "padded",
        (lambda x: jnp.pad(x, ((0, 0), (0, 128))), lambda x: np.pad(x, ((0, 0), (0, 128)))),
        [x],
        (8, 256),
        np.float32,
    )
    yield one(
        "triangle", (lambda x: jnp.tril(x, 2), lambda x: np.tril(x, 2)), [floats(128, 128)], (128, 128), np.float32
    )
    yield one("reversed rows", (lambda x: x[::-1], lambda x: x[::-1]), [x], (8, 128), np.float32)
    yield one(
        "one hot",
        (lambda i: (i[:, None] == jnp.arange(128)).astype("float32"), lambda i: i[:, None] == np.arange(128)),
        [np.arange(8, dtype=np.int32) * 3],
        (8, 128),
        np.float32,
    )
    take = lambda x, i: jnp.take_along_axis(x, i, axis=1), lambda x, i: np.take_along_axis(x, i, axis=1)
    yield one(
        "gathered columns",
        take,
        [x, np.random.default_rng(0).integers(0, 128, (8, 128)).astype(np.int32)],
        (8, 128),
        np.float32,
        targets=GPU,
    )
