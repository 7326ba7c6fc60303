"""Rows of the operations that move elements without touching them."""

from __future__ import annotations

import numpy as np

from tests.rows.row import FLOATS, INTS, Arg, Row
from xlamini import lax


def moved(name, op, reference, *shapes):
    """A row of a linear operation of one array, for arrays of these shapes."""
    return Row(name, op, reference, [[Arg(shape)] for shape in shapes], FLOATS + INTS, linear=True)


ROWS = [
    moved("transpose", lambda x: lax.transpose(x, (1, 2, 0)), lambda x: x.transpose(1, 2, 0), (2, 3, 4)),
    moved(
        "broadcast_in_dim",
        lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (1, 2)),
        lambda x: np.broadcast_to(x, (4, 2, 3)),
        (2, 3),
        (1, 3),
    ),
    moved("reshape", lambda x: lax.reshape(x, (3, 4)), lambda x: x.reshape(3, 4), (2, 6), (12,)),
    moved("squeeze", lambda x: lax.squeeze(x, (0, 2)), lambda x: x.squeeze((0, 2)), (1, 3, 1)),
    moved("expand_dims", lambda x: lax.expand_dims(x, (0, 2)), lambda x: x[None, :, None], (3,)),
    moved("rev", lambda x: lax.rev(x, (0, 2)), lambda x: x[::-1, :, ::-1], (2, 3, 4)),
]
