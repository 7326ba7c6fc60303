"""Sorting rows of unsigned integers on the CPU, digit by digit from the lowest.

One pass over a row counts how often each value of each digit occurs; running sums of the counts say where the elements
with that value go. Then, for each digit, one pass moves the elements there. The front half of the row is moved from its
start and the back half from its end in one loop, with tables of their own: two independent chains of memory accesses
are quicker than one, and equal elements keep their order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import aval_of, literal
from xlamini.primitives.elementwise.arithmetic import add, sub
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or, shift_right_logical
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.forms.cpu.loops.scalar_loop import PLACE, element, place, scalar_loop, with_element
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_p
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast, reshape
from xlamini.primitives.shape.slice import slice_in_dim

NARROW, WIDE, WIDE_ABOVE = 8, 11, 1 << 14
"""The most bits of a digit. The tables of wide digits only pay for long rows."""


class Digits(NamedTuple):
    """The digits of an integer: their first bits and their widths."""

    shifts: Sequence[int]
    width: int

    def slot(self, word: Any, number: int) -> Any:
        """The index into a table of all digits for the value of this digit of an integer."""
        dtype = aval_of(word).dtype
        value = shift_right_logical(word, literal(self.shifts[number], dtype))
        value = convert(bitwise_and(value, literal((1 << self.width) - 1, dtype)), PLACE)
        return bitwise_or(value, place(number << self.width))


def radix_sorted(words: Any, start: int, bits: int, finish: Callable[[Any, Any], Any] | None = None) -> Any:
    """Rows of unsigned integers, each in the order of the `bits` bits from bit `start` on; the sort is stable.

    Bits above those must be the same in all integers. `finish` makes the result from a row's number and the sorted row.
    """
    *outer, size = aval_of(words).shape
    digits = _digits(start, bits, size)

    def sorted_row(number: Any, row: Any) -> Any:
        ordered = _sorted_row(row, digits)
        return ordered if finish is None else finish(number, ordered)

    if not outer:
        return sorted_row(place(0), words)
    rows = reshape(words, (aval_of(words).size // size, size))
    (rows,) = scalar_loop(functools.partial(_with_row, change=sorted_row), aval_of(rows).shape[0], rows)
    return reshape(rows, (*outer, size))


def _digits(start: int, bits: int, size: int) -> Digits:
    """Equally wide digits, as few as there can be."""
    passes = -(-bits // (WIDE if size > WIDE_ABOVE else NARROW))
    width = -(-bits // passes)
    return Digits(range(start, start + bits, width), width)


def _sorted_row(words: Any, digits: Digits) -> Any:
    size = aval_of(words).shape[0]
    if size % 2:  # the largest integer goes to the end of the halves' odd sister, and comes out last
        words = pad(words, literal(np.iinfo(aval_of(words).dtype).max, aval_of(words).dtype), [(0, 1, 0)])
    half = (size + 1) // 2
    table = broadcast(place(0), (len(digits.shifts) << digits.width,))
    _, front, back = scalar_loop(functools.partial(_count, half=half, digits=digits), half, words, table, table)
    _, starts, ends, _ = scalar_loop(_add_up, aval_of(table).shape[0], place(0), table, front, back)
    target = broadcast(literal(0, aval_of(words).dtype), (2 * half,))
    for number in range(len(digits.shifts)):
        step = functools.partial(_move, half=half, digits=digits, number=number)
        words, target, starts, ends = scalar_loop(step, half, words, target, starts, ends)
        words, target = target, words
    return slice_in_dim(words, 0, size) if size % 2 else words


def _count(i: Any, words: Any, front: Any, back: Any, *, half: int, digits: Digits) -> list[Any]:
    """Count the digits of one element of the front half and of one of the back half, each in its own table."""
    counted = []
    for table, at in ((front, i), (back, add(i, place(half)))):
        word = element(words, at)
        for number in range(len(digits.shifts)):
            table = _added(table, digits.slot(word, number), place(1))
        counted.append(table)
    return [words, *counted]


def _add_up(i: Any, total: Any, starts: Any, front: Any, back: Any) -> list[Any]:
    """The first index of each digit's elements and, in place of `front`, the end index; later digits continue."""
    starts = with_element(starts, i, total)
    front = _added(front, i, add(element(back, i), total))
    return [element(front, i), starts, front, back]


def _move(
    i: Any, words: Any, target: Any, starts: Any, ends: Any, *, half: int, digits: Digits, number: int
) -> list[Any]:
    """Move element i from the start, and element i from the end, to their places in the order of one digit."""
    before = number * 2 * half
    word = element(words, i)
    slot = digits.slot(word, number)
    starts = _added(starts, slot, place(1))
    target = with_element(target, sub(element(starts, slot), place(before + 1)), word)
    word = element(words, sub(place(2 * half - 1), i))
    slot = digits.slot(word, number)
    ends = _added(ends, slot, place(-1))
    target = with_element(target, sub(element(ends, slot), place(before)), word)
    return [words, target, starts, ends]


def _added(table: Any, i: Any, value: Any) -> Any:
    return with_element(table, i, add(element(table, i), value))


def _with_row(i: Any, rows: Any, *, change: Callable[[Any, Any], Any]) -> list[Any]:
    size = aval_of(rows).shape[1]
    corner = (i, place(0))
    row = change(i, reshape(dynamic_slice_p.bind(rows, *corner, slice_sizes=(1, size)), (size,)))
    return [dynamic_update_slice_p.bind(rows, reshape(row, (1, size)), *corner)]
