"""The sizes of a padded program: of each symbolic size the number that arrays have, and how much of it is data.

An array of type f32[n,4] is one of f32[8,4] whose first n rows are the data. What the others hold is not known, so
whatever would take them along has to mask them.
"""
from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Jaxpr, ShapedArray, aval_of, literal
from xlamini.core.errors import PaddingError
from xlamini.core.sizes.arithmetic import SizeValue
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.sizes.polynomials import Factor
from xlamini.core.sizes.values import evaluate, variables
from xlamini.primitives import broadcast_in_dim, broadcasted_iota, lt, max, min, mul
from xlamini.primitives.elementwise.arithmetic import add, div, rem, sub
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_in_dim
from xlamini.primitives.shape.pad import pad

INT32 = np.dtype(np.int32)


class Bucket(NamedTuple):
    """The sizes from `least` to `most`, for which arrays of the size `most` are used."""

    least: int
    most: int


class PaddedSizes:
    """`buckets` has the numbers that arrays have by the names of symbols, `data` how many of these are data.

    `rewrite` is what `run` does, given here because rules with jaxprs of their own call it.
    """

    def __init__(self, buckets: Mapping[str, Bucket], data: Mapping[str, Any], rewrite: Callable[..., list[Any]]):
        self._buckets, self._rewrite = buckets, rewrite
        self._room = {name: b.most for name, b in buckets.items()}
        self._data = {name: TracedSize(value) for name, value in data.items()}

    def run(self, jaxpr: Jaxpr, operands: Sequence[Any]) -> list[Any]:
        """The outputs of a program for padded operands."""
        return self._rewrite(self, jaxpr, operands)

    def room(self, size: Any) -> int:
        """The number that an array has in the place of a size: the largest of the bucket.

        PaddingError for a size of several symbols that may shrink as one of them grows.
        """
        if grows(size):
            return evaluate(size, self._room)
        names = variables(size)
        if len(names) != 1:
            raise PaddingError(f"the size {size} may shrink as one of its symbols grows, so that its room is not known")
        (name,) = names
        least, most = self._buckets[name]
        return builtins.max(evaluate(size, {name: n}) for n in range(least, most + 1))

    def rooms(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """The shape that an array has in the place of one of symbolic sizes."""
        return tuple(map(self.room, shape))

    def data(self, size: Any) -> Any:
        """How much of a dimension is data: an int32."""
        found = evaluate(size, self._data)
        return found.value if type(found) is TracedSize else literal(int(found), INT32)

    def surplus(self, size: Any) -> Any:
        """How much of the room for a size is no data: an int32."""
        return sub(literal(self.room(size), INT32), self.data(size))

    def padded_type(self, aval: ShapedArray) -> ShapedArray:
        """The type of the array that stands for one of this type."""
        return aval.update(shape=self.rooms(aval.shape)) if is_padded(aval) else aval

    def masked(self, x: Any, aval: ShapedArray, axes: Sequence[int], fill: Any) -> Any:
        """The array of type `aval` with `fill` in place of what is no data along the axes."""
        keep = None
        for axis in axes:
            if type(aval.shape[axis]) is SymbolicSize:
                inside = lt(broadcasted_iota(INT32, aval_of(x).shape, axis), self.data(aval.shape[axis]))
                keep = inside if keep is None else bitwise_and(keep, inside)
        if keep is None:
            return x
        return select_n(keep, spread(fill, aval_of(x)), x)


def spread(element: Any, aval: ShapedArray) -> Any:
    """An array of the type's shape and dtype with this element everywhere, a number or a scalar of the program.

    An array of this shape is returned as it is.
    """
    if isinstance(element, bool | int | float | complex | np.generic):
        element = literal(element, aval.dtype)
    elif aval_of(element).shape == aval.shape:
        return element
    return broadcast_in_dim(element, aval.shape, ())


def is_padded(aval: ShapedArray) -> bool:
    """Whether a type has a symbolic size."""
    return any(type(size) is SymbolicSize for size in aval.shape)


def grows(size: Any) -> bool:
    """Whether a size is never smaller where its symbols are larger."""
    if type(size) is not SymbolicSize:
        return True
    return all(c > 0 or not m for m, c in size.terms) and all(_grows(f) for m, _ in size.terms for f, _ in m)


def _grows(factor: Factor) -> bool:
    if factor.is_variable:
        return True
    if factor.name == "floordiv":
        return grows(factor.operands[0]) and type(factor.operands[1]) is int
    return factor.name in ("max", "min") and all(map(grows, factor.operands))


def window(x: Any, axis: int, start: Any, length: int) -> Any:
    """`length` elements along an axis from `start` on, an int32 in the axis; those beyond its end are zeros."""
    edges = [(0, length if i == axis else 0, 0) for i in range(aval_of(x).ndim)]
    return dynamic_slice_in_dim(pad(x, literal(0, aval_of(x).dtype), edges), start, length, axis)


class TracedSize(SizeValue):
    """The value of a size in the program that is traced."""

    def __init__(self, value: Any):
        self.value = value

    def number(self, x: Any) -> TracedSize:
        return x if isinstance(x, TracedSize) else TracedSize(literal(int(x), INT32))

    def operation(self, name: str, other: TracedSize) -> TracedSize:
        return TracedSize(_OPERATIONS[name](self.value, other.value))


_OPERATIONS = {
    "add": add, "subtract": sub, "multiply": mul, "divide": div, "remainder": rem, "maximum": max, "minimum": min,
}  # fmt: skip
