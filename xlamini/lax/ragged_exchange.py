"""ragged_all_to_all: each position sends slices of several lengths to the others, with the offsets to write them at."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of, literal
from xlamini.lax.indexing import index_take
from xlamini.primitives import (
    add,
    bitwise_and,
    broadcast_in_dim,
    broadcasted_iota,
    check_operands,
    convert,
    le,
    lt,
    mul,
    reduce_or,
    reshape,
    sub,
    where,
)
from xlamini.primitives.collectives.axes import AxisName, Participants, axis_index, participants
from xlamini.primitives.collectives.gathering import all_gather
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_in_dim
from xlamini.primitives.reductions.arg_extrema import argmax
from xlamini.primitives.shape.iota import iota

_INT32 = np.dtype(np.int32)


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: AxisName,
    axis_index_groups: Any = None,
) -> Any:
    """`output`, updated with the slices that the other positions along the named axis send here.

    Args:
      operand: of shape (n, …), the rows that slices are taken of.
      output: of shape (m, …), the rows that slices are written to.
      input_offsets: where in `operand` each slice begins; the slices for each position follow one another, as many
        for each.
      send_sizes: the length of each slice.
      output_offsets: where each slice begins in the `output` of the position that it goes to.
      recv_sizes: the lengths of the slices that come here.
      axis_name: the named axis.
      axis_index_groups: a list of lists of positions, each of which exchanges among itself.

    Raises NameError if there is no such axis, ShapeError for shapes that do not fit.

    >>> def exchange(x, sizes, places):
    ...     begin = xlamini.numpy.array([0, 1])
    ...     return ragged_all_to_all(x, xlamini.numpy.zeros(3), begin, sizes, places, sizes, axis_name="i")
    >>> x = xlamini.numpy.array([[1.0, 2.0], [3.0, 4.0]])
    >>> ones, places = xlamini.numpy.ones((2, 2), int), xlamini.numpy.array([[0, 0], [1, 1]])
    >>> xlamini.vmap(exchange, axis_name="i")(x, ones, places)
    Array([[1., 3., 0.],
           [2., 4., 0.]], dtype=float32)
    """
    check_operands("ragged_all_to_all", (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes))
    positions = participants("ragged_all_to_all", axis_name, axis_index_groups)
    _check_shapes(operand, output, (input_offsets, send_sizes, output_offsets, recv_sizes), positions)
    table = [convert(v, _INT32) for v in (input_offsets, send_sizes, output_offsets)]
    start, size, place = (_for_here(v, positions) for v in table)
    row, comes = _source(start, size, place, aval_of(output).shape[0], aval_of(operand).shape[0])
    gathered = all_gather(operand, axis_name, axis_index_groups=axis_index_groups, tiled=True)
    shape = aval_of(output).shape
    received = index_take(gathered, [row], (0,))
    return where(broadcast_in_dim(comes, shape, (0,)), received, output)


def _for_here(x: Any, positions: Participants) -> Any:
    """The entries that are for this position, of all senders: (senders, slices of each)."""
    each = aval_of(x).shape[0] // positions.size
    everyone = all_gather(x, positions.names, axis_index_groups=positions.groups)
    return dynamic_slice_in_dim(everyone, mul(_here(positions), literal(each, _INT32)), each, axis=1)


def _here(positions: Participants) -> Any:
    """The index of this position within its group."""
    index = axis_index(positions.names)
    if positions.groups is None:
        return index
    number = {p: i for group in positions.groups for i, p in enumerate(group)}
    table = np.array([number[p] for p in range(len(number))], _INT32)
    return reshape(dynamic_slice_in_dim(table, index, 1), ())


def _source(start: Any, size: Any, place: Any, rows: int, sent: int) -> tuple[Any, Any]:
    """The source row of each row of the output among all positions' operands, and a mask of rows that have one."""
    senders, each = aval_of(start).shape
    sender = broadcasted_iota(_INT32, (senders, each), 0)
    first = add(start, mul(sender, literal(sent, _INT32)))
    every = (senders * each, rows)
    table = [reshape(v, (senders * each,)) for v in (place, add(place, size), sub(first, place))]
    begin, end, shift = (broadcast_in_dim(v, every, (0,)) for v in table)
    row = broadcasted_iota(_INT32, every, 1)
    inside = bitwise_and(le(begin, row), lt(row, end))
    here = iota(_INT32, rows)
    moved = index_take(shift, [argmax(inside, 0, _INT32), here], (0, 1))
    return add(moved, here), reduce_or(inside, (0,))


def _check_shapes(operand: Any, output: Any, tables: tuple[Any, ...], positions: Participants) -> None:
    rows, written = aval_of(operand).shape, aval_of(output).shape
    if not rows or rows[1:] != written[1:] or aval_of(operand).dtype != aval_of(output).dtype or not written:
        raise ShapeError(
            f"ragged_all_to_all: operand {aval_of(operand).str_short()} and output {aval_of(output).str_short()} must "
            "have one dtype, and one shape but for the first dimension"
        )
    shapes = {aval_of(v).shape for v in tables}
    if len(shapes) > 1 or any(len(s) != 1 or s[0] % positions.size for s in shapes):
        raise ShapeError(
            f"ragged_all_to_all: offsets and sizes must be vectors of one length, a multiple of {positions.size}, the "
            f"size of the axis {positions}; got shapes {sorted(shapes)}"
        )
