"""A radix sort of long rows on the CPU, over integers that order as the elements do (see radix_sort.py).

One array is sorted as such integers, which tell the elements. Of several arrays, or where an order has several keys,
an integer holds a key and, below it, a place: sorted by the key alone they say where each operand's elements come from.
Keys of lower rank are sorted first, because the sort is stable.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import Avals, aval_of, literal
from xlamini.primitives.base.dtype_kinds import FLOAT, kind_of
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import add, sub
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or, shift_left
from xlamini.primitives.elementwise.comparison import eq, le, lt
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.loops.radix_sort import radix_sorted
from xlamini.primitives.forms.cpu.loops.scalar_loop import PLACE, element, place, scalar_loop, with_element
from xlamini.primitives.reductions.ordering import Word, bit_order, from_total_order, halves, sort_words, total_order
from xlamini.primitives.shape.iota import iota_p
from xlamini.primitives.shape.reorder import permuted
from xlamini.primitives.shape.shape import moveaxis, reshape
from xlamini.primitives.shape.slice import slice_in_dim

ROWS_ABOVE, SIZES_ABOVE = 600, 1 << 15
"""Shorter rows are sorted faster by comparisons; smaller arrays are not worth the compilation of these loops."""

_DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 complex128"


def fits_digits(keys: Avals, axis: int) -> bool:
    """True if arrays with these keys should be sorted by digits."""
    first = keys[0]
    long = first.shape[axis] > ROWS_ABOVE and SIZES_ABOVE < first.size < 2**31
    return long and all(key.dtype.name in _DTYPES.split() for key in keys)


def sorted_by_digits(*operands: Any, axis: int, num_keys: int) -> list[Any]:
    """The operands in the order of the first `num_keys` of them."""
    last = aval_of(operands[0]).ndim - 1
    rows = [moveaxis(x, axis, last) for x in operands]
    if len(rows) == 1 and aval_of(rows[0]).dtype.kind != "c":
        return [moveaxis(_sorted_values(rows[0]), last, axis)]
    order = _order_by([word for key in rows[:num_keys] for word in sort_words(key)], last)
    return [moveaxis(permuted(x, order, last), last, axis) for x in rows]


def largest_by_digits(x: Any, *, k: int) -> list[Any]:
    """The k elements of each row that come last in `bit_order`, from the end, and their places; the first of equals."""
    last = aval_of(x).ndim - 1
    words = [Word(bitwise_not(word), bits) for word, bits in halves(bit_order(x))]
    order = slice_in_dim(_order_by(words, last), 0, k, axis=last)
    return [permuted(x, order, last), order]


def _sorted_values(x: Any) -> Any:
    words, bits = total_order(x)
    finish = functools.partial(_with_zeros_as_they_came, x) if kind_of(aval_of(x).dtype) is FLOAT else None
    return from_total_order(radix_sorted(words, 0, bits, finish), aval_of(x).dtype)


def _order_by(words: Sequence[Word], axis: int) -> Any:
    """The places of the elements in the order of the first word, of the second one where that is equal, and so on."""
    order = None
    for word, bits in reversed(words):
        order = _order_by_one(word if order is None else permuted(word, order, axis), bits, order, axis)
    return order


def _order_by_one(values: Any, bits: int, before: Any, axis: int) -> Any:
    """The places of the elements by one word, from their places so far."""
    shape = aval_of(values).shape
    narrow = bits + (shape[axis] - 1).bit_length() <= 32
    dtype = np.dtype(np.uint32 if narrow else np.uint64)
    low = 8 * dtype.itemsize - bits
    places = iota_p.bind(dtype=dtype, shape=shape, dimension=axis) if before is None else convert(before, dtype)
    packed = bitwise_or(shift_left(convert(values, dtype), literal(low, dtype)), places)
    packed = radix_sorted(packed, low, bits)
    return convert(bitwise_and(packed, literal((1 << low) - 1, dtype)), np.int32)


def _with_zeros_as_they_came(x: Any, row: Any, ordered: Any) -> Any:
    """A sorted row, in which -0.0 comes just before 0.0, with its zeros in the order that they have in the array x.

    The loop puts each zero into the next place for zeros; without a -0.0 it makes no step.
    """
    size = aval_of(ordered).shape[0]
    flat = reshape(x, (aval_of(x).size,))
    negative_zero = total_order(literal(-0.0, aval_of(x).dtype)).values
    first = _count_below(negative_zero, ordered)

    def step(i: Any, at: Any, ordered: Any) -> list[Any]:
        word = total_order(element(flat, add(mul(row, place(size)), i))).values
        is_zero = lt(sub(word, negative_zero), literal(2, aval_of(word).dtype))
        ordered = with_element(ordered, at, where(is_zero, word, element(ordered, at)))
        return [add(at, convert(is_zero, PLACE)), ordered]

    count = where(eq(element(ordered, first), negative_zero), place(size), place(0))
    return scalar_loop(step, count, first, ordered)[1]


def _count_below(word: Any, ordered: Any) -> Any:
    """The number of smaller elements in a sorted row, by binary search from the highest bit."""
    size = aval_of(ordered).shape[0]
    highest = size.bit_length() - 1

    def step(i: Any, ordered: Any, count: Any) -> list[Any]:
        tried = add(count, shift_left(place(1), sub(place(highest), i)))
        last = element(ordered, sub(tried, place(1)))
        fits = bitwise_and(le(tried, place(size)), lt(last, word))
        return [ordered, where(fits, tried, count)]

    return scalar_loop(step, highest + 1, ordered, place(0))[1]
