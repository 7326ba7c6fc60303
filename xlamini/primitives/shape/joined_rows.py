"""One array in place of a list of arrays: its rows are joined by moving an axis, without a slice for each."""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.base.promotion import is_operand
from xlamini.primitives.shape.shape import moveaxis, reshape


def is_rows(operands: Any) -> bool:
    """True for an array that has rows; others, and lists, are looked through one by one."""
    return is_operand(operands) and aval_of(operands).shape[:1] not in ((), (0,))


def merged_rows(rows: Any, axis: int) -> Any:
    """The rows one after the other along one of their axes."""
    shape = aval_of(moved := moveaxis(rows, 0, axis)).shape
    return reshape(moved, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
