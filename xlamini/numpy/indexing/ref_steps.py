"""The steps from a ref to a part of it, or to it in another shape, order or dtype; the views that equations have.

A read takes the steps from the ref's value; a write takes them back.
"""
from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Avals, ShapedArray, Tracer, aval_of, result_type
from xlamini.core.dtypes.limits import check_fits
from xlamini.core.program.avals import SCALAR_TYPES
from xlamini.core.program.ref_parts import Part
from xlamini.numpy.indexing.parse import check_bounds
from xlamini.numpy.indexing.ref_parts import part_of
from xlamini.numpy.indexing.slices import Slice
from xlamini.numpy.repeating import broadcast_to as _broadcast_to
from xlamini.numpy.shapes import reshape as _reshape, transpose as _transpose
from xlamini.primitives import convert
from xlamini.primitives.elementwise.convert_element_type import bitcast_convert_type

Index = Any


def item_of(x: Any, index: Index) -> Any:
    """`x[index]` of the value of a ref, for which a static index out of bounds is an error whatever the flags say."""
    check_bounds(index, aval_of(x).shape)
    return x[index]


class Indexer(NamedTuple):
    """The step to `x[index]`."""

    index: Index

    def read(self, x: Any) -> Any:
        """The value after the step, from the one before."""
        return x if self.index is ... else item_of(x, self.index)

    def write(self, x: Any, new: Any) -> Any:
        """The value before the step, where the one after it is new."""
        check_bounds(self.index, aval_of(x).shape)
        return x.at[self.index].set(new)


class ReshapeView(NamedTuple):
    """The step to `x.reshape(shape)`."""

    shape: tuple[int, ...]

    def read(self, x: Any) -> Any:
        return _reshape(x, self.shape)

    def write(self, x: Any, new: Any) -> Any:
        return _reshape(_broadcast_to(new, self.read(x).shape), x.shape)


class TransposeView(NamedTuple):
    """The step to `x.transpose(permutation)`."""

    permutation: tuple[int, ...]

    def read(self, x: Any) -> Any:
        return _transpose(x, self.permutation)

    def write(self, x: Any, new: Any) -> Any:
        back = tuple(map(int, np.argsort(self.permutation)))
        return _transpose(_broadcast_to(new, self.read(x).shape), back)


class Bitcast(NamedTuple):
    """The step to the same bits as another dtype; of another width, they are packed along the dimension before last."""

    dtype: np.dtype

    def read(self, x: Any) -> Any:
        return _bits_as(x, self.dtype)

    def write(self, x: Any, new: Any) -> Any:
        return _bits_as(_broadcast_to(new, self.read(x).shape), x.dtype)


def check_dtype(dtype: np.dtype, value: Any) -> None:
    """ValueError for a value that a ref of this dtype cannot hold."""
    found = aval_of(value)
    if result_type(ShapedArray((), dtype), found) != dtype:
        raise ValueError(
            f"ref of dtype {dtype.name} cannot take a value of dtype {found.dtype.name}; convert it with "
            f".astype('{dtype.name}')"
        )


def typed(value: Any, dtype: np.dtype) -> Any:
    """A value of a dtype that a ref can hold, in that dtype; a Python number stays a literal."""
    if type(value) in SCALAR_TYPES:
        if type(value) is int:
            check_fits(value, dtype)
        return np.asarray(value, dtype)[()]
    return convert(value, dtype, weak_type=False)


Step = Indexer | ReshapeView | TransposeView | Bitcast


def _bits_as(x: Any, dtype: np.dtype) -> Any:
    before, after = x.dtype.itemsize, dtype.itemsize
    if before == after:
        return bitcast_convert_type(x, dtype)
    if x.ndim < 2 or x.shape[-2] * before % after:
        raise ValueError(
            f"bitcast: the last dimension but one of {x.aval.str_short()} cannot be packed as {dtype.name}; its bytes "
            "must be a multiple of the dtype's"
        )
    *front, rows, columns = x.shape
    if before > after:
        parts = bitcast_convert_type(x, dtype)
        return _reshape(parts.swapaxes(-1, -2), (*front, rows * before // after, columns))
    packed = _reshape(x, (*front, rows * before // after, after // before, columns))
    return bitcast_convert_type(packed.swapaxes(-1, -2), dtype)


def values_at(steps: Sequence[Step], x: Any) -> list[Any]:
    """The value of a ref, and those after each of the steps."""
    values = [x]
    for step in steps:
        values.append(step.read(values[-1]))
    return values


def written_at(steps: Sequence[Step], x: Any, last: Callable[[Any, Any], Any]) -> Any:
    """The new value of a ref; `last(x, step)` is that before the last step."""
    values = values_at(steps[:-1], x)
    new = last(values.pop(), steps[-1])
    for before, step in zip(reversed(values), reversed(steps[:-1]), strict=True):
        new = step.write(before, new)
    return new


class RefView(NamedTuple):
    """The view that equations have of a ref: the steps, with holes for the traced numbers and arrays in indices."""

    steps: tuple[Step, ...]

    def read(self, x: Any, *operands: Any) -> Any:
        """The part of the value."""
        return values_at(filled(self.steps, operands), x)[-1]

    def write(self, x: Any, new: Any, *operands: Any) -> Any:
        """The value with another part."""
        return written_at(filled(self.steps, operands), x, lambda x, step: step.write(x, new))

    def notation(self, *names: str) -> str:
        """The part as a program shows it, with the names of the operands."""
        return "".join(map(shown, filled(self.steps, names))).removeprefix(".at")

    def part(self, shape: Sequence[int], avals: Avals) -> Part | None:
        """The part of a ref of this shape, for operands of these types; None if it is none of those known."""
        return part_of(self.steps, shape, avals, _HOLE)

    def steps_at(self, operands: Sequence[Any]) -> Sequence[Step]:
        """The steps, with the operands in the holes."""
        return filled(self.steps, operands)


class IndexSlice(NamedTuple):
    """A slice of static numbers, which Python before 3.12 cannot hash."""

    start: int | None
    stop: int | None
    step: int | None


class _Hole(enum.Enum):
    """The place of an operand in an index."""

    HOLE = 0


_HOLE = _Hole.HOLE
_STATIC = frozenset({int, type(None), type(...)})
_BOUNDS = frozenset({int, type(None)})


def fits_equation(index: Index) -> bool:
    """Whether an equation can hold it: integers and arrays of these, static slices, None and '...', not a mask."""
    return all(map(_item_fits, index)) if type(index) is tuple else _item_fits(index)


def _item_fits(item: Any) -> bool:
    kind = type(item)
    if kind is slice:
        return {type(item.start), type(item.stop), type(item.step)} <= _BOUNDS
    if kind is Slice:
        return _item_fits(item.start)
    return kind in _STATIC or isinstance(item, np.integer) or is_traced_integer(item)


def is_traced_integer(item: Any) -> bool:
    """Whether it is an operand of an equation on a part."""
    return type(item) is Tracer and getattr(item.dtype, "kind", "") in ("i", "u")


def emptied(steps: Sequence[Step], operands: list[Any], is_operand: Callable[[Any], bool]) -> tuple[Step, ...]:
    """The steps with holes for those items of indices that are operands, which are added to the list."""
    return tuple(Indexer(_emptied(s.index, operands, is_operand)) if type(s) is Indexer else s for s in steps)


def _emptied(index: Index, operands: list[Any], is_operand: Callable[[Any], bool]) -> Index:
    if type(index) is tuple:
        return tuple(_emptied(item, operands, is_operand) for item in index)
    if type(index) is slice:
        return IndexSlice(index.start, index.stop, index.step)
    if type(index) is Slice:
        return replace(index, start=_emptied(index.start, operands, is_traced_integer))
    if is_operand(index):
        operands.append(index)
        return _HOLE
    return int(index) if isinstance(index, np.integer) else index


def filled(steps: Sequence[Step], operands: Sequence[Any]) -> tuple[Step, ...]:
    """The steps with operands in their holes."""
    found = iter(operands)
    return tuple(Indexer(_put_in(s.index, found)) if type(s) is Indexer else s for s in steps)


def _put_in(index: Index, operands: Iterator[Any]) -> Index:
    if type(index) is IndexSlice:
        return slice(*index)
    if type(index) is tuple:
        return tuple(_put_in(i, operands) for i in index)
    if type(index) is Slice:
        return replace(index, start=_put_in(index.start, operands))
    return next(operands) if index is _HOLE else index


def shown(step: Step) -> str:
    if isinstance(step, Indexer):
        items = step.index if isinstance(step.index, tuple) else (step.index,)
        return f".at[{', '.join(map(_item_text, items)) or '()'}]"
    return f".{type(step).__name__.removesuffix('View').lower()}({step[0]})"


def _item_text(item: Any) -> str:
    """One item of an index as Python writes it."""
    if isinstance(item, slice):
        parts = [item.start, item.stop] if item.step is None else [item.start, item.stop, item.step]
        return ":".join("" if part is None else str(part) for part in parts)
    if type(item) is Slice:
        return f"{item.start}:{item.start}+{item.size * item.stride}{f':{item.stride}' if item.stride > 1 else ''}"
    return "..." if item is ... else str(item)
