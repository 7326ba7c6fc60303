"""Axes turned round: flip, rot90, roll."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.program.avals import is_several
from xlamini.core.sizes.expression import SymbolicSize, as_size, is_symbolic_shape
from xlamini.numpy.arguments import as_axes, as_operand
from xlamini.numpy.shapes import ravel, swapaxes
from xlamini.numpy.static_take import take_runs
from xlamini.primitives import reshape, rev
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_in_dim
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, AxisLike


def flip(m: ArrayLike, axis: AxisLike = None) -> Array:
    """The elements in reverse order along an axis, several, or all.

    >>> flip(xlamini.numpy.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    return _flipped("flip", m, axis)


def fliplr(m: ArrayLike) -> Array:
    """The elements in reverse order along the second axis.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return _flipped("fliplr", m, 1)


def flipud(m: ArrayLike) -> Array:
    """The elements in reverse order along the first axis.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return _flipped("flipud", m, 0)


def _flipped(name: str, m: Any, axis: Any) -> Any:
    x = as_operand(name, m)
    axes = as_axes(name, axis, x.ndim)
    return rev(x, axes) if axes else x


@composite(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """The plane of two axes turned by `k` right angles, from the first towards the second.

    >>> rot90(xlamini.numpy.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = as_operand("rot90", m)
    if x.ndim < 2:
        raise ValueError(f"rot90: at least two dimensions are needed, got shape {x.shape}")
    first, second = as_axes("rot90", axes, x.ndim)
    turns = k % 4
    if turns == 2:
        return rev(x, (first, second))
    if turns == 1:
        return swapaxes(rev(x, (second,)), first, second)
    return rev(swapaxes(x, first, second), (second,)) if turns else x


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: AxisLike = None) -> Array:
    """The elements moved on by `shift` places along an axis, those at the end coming in at the start.

    Without an axis, `a` is rolled as if it were flat. Several shifts and axes go in pairs.

    >>> roll(xlamini.numpy.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = as_operand("roll", a)
    static = _static(shift)
    if static is None:
        return _rolled(x, shift, axis)
    return _rolled_by(x, static, tuple(axis) if isinstance(axis, list) else axis)


def _static(shift: Any) -> Any:
    """The shift as an int or a tuple of ints if it is static, else None."""
    if hasattr(shift, "aval") or (isinstance(shift, Sequence) and any(hasattr(s, "aval") for s in shift)):
        return None
    return tuple(map(as_size, shift)) if is_several(shift) else as_size(shift)  # type: ignore[arg-type]


@composite(static=("shift", "axis"))
def _rolled_by(x: Any, shift: Any, axis: Any) -> Any:
    return _rolled(x, shift, axis, static=True)


def _rolled(x: Any, shift: Any, axis: Any, static: bool = False) -> Any:
    if axis is None:
        return reshape(_rolled(ravel(x), shift, 0, static), x.shape)
    shape = x.shape
    for by, along in _pairs(shift, axis, x.ndim):
        if shape[along]:
            x = _along(x, by, along, static)
    return x


def _pairs(shift: Any, axis: Any, ndim: int) -> list[tuple[Any, int]]:
    axes = [as_axes("roll", a, ndim)[0] for a in (axis if isinstance(axis, Sequence) else (axis,))]
    several = isinstance(shift, Sequence) or (type(shift) is not SymbolicSize and np.ndim(shift) > 0)
    shifts: list[Any] = list(shift) if several else [shift]  # type: ignore[arg-type]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"roll: {len(shifts)} shifts do not go with {len(axes)} axes")
    count = max(len(shifts), len(axes)) if shifts and axes else 0
    shifts = shifts * count if len(shifts) == 1 else shifts[:count]
    return list(zip(shifts, axes * count if len(axes) == 1 else axes[:count], strict=True))


def _along(x: Any, shift: Any, axis: int, static: bool) -> Any:
    length = x.shape[axis]
    if static and not is_symbolic_shape((length, shift)):
        return take_runs(x, np.roll(np.arange(length), shift), axis)
    start = length - shift % length
    twice = concatenate([x, x], axis)  # a TPU gathers element by element
    return dynamic_slice_in_dim(twice, start, length, axis, allow_negative_indices=False)
