"""Rows of the operations that move elements: transpose, broadcast_in_dim, reshape, squeeze, rev, and the barrier."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.rows.row import BOOLS, COMPLEXES, FLOATS, INTS, Arg, Row
from xlamini import NamedSharding, P, lax, numpy
from xlamini.primitives.placement.reshard import reshard_p
from xlamini.sharding import AbstractMesh, AxisType

ALL = FLOATS + COMPLEXES + INTS + BOOLS


def moved(name: str, op: Any, reference: Any, *shapes: tuple[int, ...]) -> Row:
    """A row of an operation that is linear and exact in every dtype."""
    return Row(name, op, reference, samples=[[Arg(s)] for s in shapes], dtypes=ALL, linear=True, exact=True)


HERE = numpy.ones(()).sharding
EXPLICIT = NamedSharding(AbstractMesh((1,), ("rows",), axis_types=AxisType.Explicit), P())

BARRIER = Row(
    "optimization_barrier",
    lambda x, y: lax.optimization_barrier((x, y)),
    lambda x, y: (x, y),
    samples=[[Arg((2, 3)), Arg((4,))], [Arg(()), Arg((2,), diff=False)]],
    dtypes=ALL,
    linear=True,
    exact=True,
)

ROWS = [
    moved("transpose", lambda x: lax.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), (2, 3, 4), (2, 0, 1)),
    moved("broadcast", lambda x: lax.broadcast(x, (2, 3)), lambda x: np.broadcast_to(x, (2, 3, *x.shape)), (4,)),
    moved(
        "broadcast_in_dim",
        lambda x: lax.broadcast_in_dim(x, (2, 5, 3), (0, 2)),
        lambda x: np.broadcast_to(x[:, None], (2, 5, 3)),
        (2, 3),
        (1, 3),
        (2, 1),
    ),
    moved("reshape", lambda x: lax.reshape(x, (4, 3)), lambda x: x.reshape(4, 3), (3, 4), (2, 3, 2), (12,)),
    moved("reshape: to a scalar", lambda x: lax.reshape(x, ()), lambda x: x.reshape(()), (1,), (1, 1)),
    moved("squeeze", lambda x: lax.squeeze(x, (1, -1)), lambda x: x.squeeze((1, -1)), (2, 1, 3, 1), (1, 1, 1, 1)),
    moved("expand_dims", lambda x: lax.expand_dims(x, (0, -1)), lambda x: x[None, ..., None], (2, 3), ()),
    moved("rev", lambda x: lax.rev(x, (0, 2)), lambda x: x[::-1, :, ::-1], (2, 3, 4), (1, 2, 3)),
    BARRIER,
    moved(
        "reshape: dimensions",
        lambda x: lax.reshape(x, (4, 6), (2, 0, 1)),
        lambda x: x.transpose(2, 0, 1).reshape(4, 6),
        (2, 3, 4),
    ),
    moved("collapse", lambda x: lax.collapse(x, 0, 2), lambda x: x.reshape(-1, x.shape[-1]), (2, 3, 4), (0, 3, 4)),
    moved("broadcast_to_rank", lambda x: lax.broadcast_to_rank(x, 3), lambda x: x.reshape(1, *x.shape), (2, 3)),
    Row(
        "broadcast_like",
        lax.broadcast_like,
        lambda x, like: np.broadcast_to(x, like.shape),
        samples=[[Arg((3,)), Arg((2, 3), diff=False)], [Arg(()), Arg((2,), diff=False)]],
        dtypes=ALL,
    ),
    moved(
        "broadcast_shapes",
        lambda x: lax.broadcast(x[0, 0], lax.broadcast_shapes(x.shape, (3,))),
        lambda x: np.broadcast_to(x[0, 0], np.broadcast_shapes(x.shape, (3,))),
        (2, 1), (4, 3),
    ),
    Row(
        "shape_as_value",
        lambda x: lax.shape_as_value(x.shape),
        lambda x: np.array(x.shape),
        differentiable=False,
        batched=False,
    ),
    moved("tile", lambda x: lax.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), (2, 3), (1, 2), (0, 2)),
    Row(
        "stack",
        lambda x, y: lax.stack([x, y], 1),
        lambda x, y: np.stack([x, y], 1),
        samples=[[Arg((2, 3)), Arg((2, 3))], [Arg((2,)), Arg((2,))]],
        dtypes=ALL,
        linear=True,
        exact=True,
    ),
    moved("unstack", lambda x: lax.unstack(x, 1), lambda x: tuple(np.moveaxis(x, 1, 0)), (2, 3), (3, 2, 2)),
    Row(
        "full",
        lambda x: lax.full((2, 3), x),
        lambda x: np.full((2, 3), x),
        samples=[[Arg(())]],
        dtypes=ALL,
        linear=True,
        exact=True,
    ),
    Row(
        "full_like",
        lambda x, v: lax.full_like(x, v),
        lambda x, v: np.full_like(x, v),
        samples=[[Arg((2, 3), diff=False), Arg(())]],
        dtypes=ALL,
        exact=True,
    ),
    Row(
        "empty", lambda x: lax.empty((3,), x.dtype), lambda x: np.zeros(3, x.dtype), differentiable=False, batched=False
    ),
    Row(
        "index_take",
        lambda x, i, j: lax.index_take(x, (i, j), (0, 2)),
        lambda x, i, j: x[i, :, j],
        samples=[[Arg((3, 2, 4)), Arg((5,), (-3, 2), "int32"), Arg((5,), (-4, 3), "int32")]],
        exact=True,
    ),
    Row(
        "with_sharding_constraint",
        lambda x: lax.with_sharding_constraint(x, HERE),
        lambda x: x,
        linear=True,
        exact=True,
    ),
    Row("reshard", lambda x: reshard_p.bind(x, dst_sharding=EXPLICIT), lambda x: x, linear=True, exact=True),
    Row("dce_sink", lambda x: (lax.dce_sink(x * 2), x)[1], lambda x: x, exact=True),
    Row(
        "create_token",
        lambda x: (lax.after_all(lax.create_token()), x)[1],
        lambda x: x,
        exact=True,
        order=1,
    ),
    Row(
        "after_all",
        lambda x: lax.after_all(lax.create_token(x), lax.create_token(x)),
        lambda x: np.zeros(0, bool),
        differentiable=False,
        batched=False,
        exact=True,
    ),
    Row(
        "composite",
        lambda x, y: lax.composite(lambda x, y, *, n: (x * y + n, x), "tests.fused", version=2)(x, y, n=3),
        lambda x, y: (x * y + 3, x),
        samples=[[Arg(), Arg()]],
    ),
    Row(
        "rng_uniform",
        lambda x: lax.rng_uniform(x[0], x[0] + 1, (4,)).shape[0] + 0 * x[0],
        lambda x: 4 + 0 * x[0],
        samples=[[Arg((2,), (0, 1))]],
        dtypes=("float32", "float64"),
        differentiable=False,
        batched=False,
    ),
]
