"""The meaning of masked accesses: the part of a ref as one number for each element, its place in the flat value.

A number beyond the end stands for an element that the mask leaves out, or that is outside of the ref: a read of it
gives something else, a write to it does nothing.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.core.program.literals import literal
from xlamini.core.program.ref_parts import ArrayDim, Part, Start, shape_of
from xlamini.primitives import convert, where
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape

_INDEX = np.dtype(np.int32)


def flat(x: Any) -> Any:
    """The elements of a value in a row."""
    return reshape(x, (aval_of(x).size,))


def spread(x: Any, shape: Sequence[int]) -> Any:
    """A value broadcast to a shape."""
    own, shape = aval_of(x).shape, tuple(shape)
    return x if own == shape else broadcast_in_dim(x, shape, range(len(shape) - len(own), len(shape)))


def points_of(part: Part, shape: Sequence[int], indices: Sequence[Any], mask: Any | None) -> Any:
    """The places of a part's elements in the flat value of a ref of this shape, an int32 array."""
    total, inside = np.int32(0), mask
    for d in range(len(part)):
        at = spread(_along(part, d, indices), shape_of(part))
        is_inside = (at >= 0) & (at < shape[d])
        inside = is_inside if inside is None else inside & is_inside
        total = total + at * np.int32(math.prod(shape[d + 1 :]))
    if inside is None:
        return total
    return where(inside, spread(total, shape_of(part)), literal(math.prod(shape), _INDEX))


def _along(part: Part, d: int, indices: Sequence[Any]) -> Any:
    """The indices along one dimension of the ref, in the shape of the part but for sizes of 1."""
    dim, sizes = part[d], shape_of(part)
    if isinstance(dim, ArrayDim):
        array = spread(convert(indices[dim.operand], _INDEX, weak_type=False), dim.shape)
        behind = len(sizes) - _first_array(part) - len(dim.shape)
        return reshape(array, (*dim.shape, *[1] * behind))
    start = _start(dim.start, indices)
    if dim.squeezed:
        return start
    place = _place(part, d)
    own = (dim.size, *[1] * (len(sizes) - place - 1))
    return start + np.int32(dim.stride) * broadcasted_iota(_INDEX, own, 0)


def _first_array(part: Part) -> int:
    """The dimension of the value with which those of index arrays begin."""
    count = 0
    for dim in part:
        if isinstance(dim, ArrayDim):
            return count
        count += not dim.squeezed
    return count


def _place(part: Part, d: int) -> int:
    """The dimension of the value that the dimension `d` of the ref is."""
    return len(shape_of(part[:d]))


def _start(start: Start, indices: Sequence[Any]) -> Any:
    total: Any = np.int32(start.number)
    for factor, operand in start.terms:
        total = total + np.int32(factor) * convert(indices[operand], _INDEX, weak_type=False)
    return total
