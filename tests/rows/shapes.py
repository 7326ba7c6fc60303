"""Rows of the operations that move elements: transpose, broadcast_in_dim, reshape, squeeze, rev, and the barrier."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.rows.row import BOOLS, COMPLEXES, FLOATS, INTS, Arg, Row
from xlamini import lax

ALL = FLOATS + COMPLEXES + INTS + BOOLS


def moved(name: str, op: Any, reference: Any, *shapes: tuple[int, ...]) -> Row:
    """A row of an operation that is linear and exact in every dtype."""
    return Row(name, op, reference, samples=[[Arg(s)] for s in shapes], dtypes=ALL, linear=True, exact=True)


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
    moved("reshape_to_scalar", lambda x: lax.reshape(x, ()), lambda x: x.reshape(()), (1,), (1, 1)),
    moved("squeeze", lambda x: lax.squeeze(x, (1, -1)), lambda x: x.squeeze((1, -1)), (2, 1, 3, 1), (1, 1, 1, 1)),
    moved("expand_dims", lambda x: lax.expand_dims(x, (0, -1)), lambda x: x[None, ..., None], (2, 3), ()),
    moved("rev", lambda x: lax.rev(x, (0, 2)), lambda x: x[::-1, :, ::-1], (2, 3, 4), (1, 2, 3)),
    BARRIER,
]
