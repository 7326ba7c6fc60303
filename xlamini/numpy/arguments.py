"""Arguments as functions of arrays are given them, in the form that primitives take: arrays, axes, shapes."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Literal, Tracer, aval_of, literal
from xlamini.core.dtypes import check_fits
from xlamini.core.program.avals import is_several
from xlamini.core.program.named_axes import size_of_axis
from xlamini.core.sizes.expression import SymbolicSize, as_size
from xlamini.core.tracing.state import state
from xlamini.primitives import index_in_dim, is_operand, stands_for_array
from xlamini.primitives.base.promotion import PYTHON_SCALARS
from xlamini.runtime import Array, ArrayImpl, device_put_value
from xlamini.staging.trace.tracing import visible

_ARRAYS = (ArrayImpl, Tracer, Literal)


def as_operand(name: str, x: Any) -> Array:
    """Convert a number or an ndarray to an array; arrays and traced values pass unchanged, others are a TypeError.

    While tracing a number stays one, so that the compiler can fold what is computed from it.
    """
    if type(x) in _ARRAYS:
        return x
    if not is_operand(x):
        if stands_for_array(x):
            return as_operand(name, x.__jax_array__())
        raise TypeError(
            f"{name}: an array or a number is needed, got {type(x).__name__}; make it an array with jnp.asarray"
        )
    if state.builder is not None and type(x) in PYTHON_SCALARS:
        return visible([literal(x)])[0]
    return device_put_value(x)


def as_operand_beside(name: str, value: Any, x: Any) -> Array:
    """`as_operand`; OverflowError for a Python int that the integer dtype of `x`, an array beside it, cannot hold."""
    if type(value) is int and is_operand(x):
        check_fits(value, aval_of(x).dtype)
    return as_operand(name, value)


def as_operands(name: str, arrays: Any) -> list[Array]:
    """The members of a list or tuple of arrays, or the rows of an array, as operands; ValueError if there are none."""
    array = as_rows(name, arrays)
    if array is None:
        return [as_operand(name, x) for x in arrays]
    return [index_in_dim(array, i, keepdims=False) for i in range(array.shape[0])]


def as_rows(name: str, arrays: Any) -> Array | None:
    """The array whose rows are joined; None for a list or tuple of arrays. ValueError if there are none."""
    is_list = type(arrays) is list or type(arrays) is tuple
    if not is_list and not is_operand(arrays):
        raise TypeError(f"{name}: a list or tuple of arrays is needed, got {type(arrays).__name__}")
    array = None if is_list else as_operand(name, arrays)
    if array is not None and not array.shape:
        raise TypeError(f"{name}: a list or tuple of arrays is needed, got a scalar")
    if not (len(arrays) if array is None else array.shape[0]):
        raise ValueError(f"{name}: at least one array is needed, got none")
    return array


def as_index(name: str, what: str, value: Any) -> int:
    """A static integer; TypeError, naming the function and the argument, for anything else."""
    try:
        return as_size(value)
    except TypeError:
        if type(value) is Tracer:  # its error says what it depends on
            raise
        raise TypeError(f"{name}: {what} must be an integer, got {value!r} of type {type(value).__name__}") from None


def as_whole(name: str, what: str, value: Any) -> int:
    """A static integer where JAX takes a float that is one too, such as `6 / 2`."""
    is_whole = isinstance(value, float | np.floating) and value.is_integer()
    return as_index(name, what, int(value) if is_whole else value)


def as_count(name: str, what: str, value: Any, most: int = 10_000) -> int:
    """A static number of steps that a program writes out one by one; ValueError below 0 and above `most`."""
    count = as_whole(name, what, value)
    if not 0 <= count <= most:
        raise ValueError(f"{name}: {what} must be from 0 to {most}, got {count}")
    return count


def as_axis(name: str, axis: Any, ndim: int) -> int:
    """An axis counted from the first one; NumPy's AxisError, an IndexError and a ValueError, where there is none."""
    index = as_index(name, "axis", axis)
    if not -ndim <= index < ndim:
        allowed = f"it takes {-ndim} to {ndim - 1}" if ndim else "a scalar has none"
        raise np.exceptions.AxisError(f"{name}: axis {index} is out of range for an array of rank {ndim}; {allowed}")
    return index % ndim


def as_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the first: one axis, several, or None for all; ValueError if one is repeated or out of range.
    """
    if axis is None:
        return tuple(range(ndim))
    given: Any = axis if type(axis) is not Tracer and is_several(axis) else (axis,)
    axes = tuple(as_axis(name, a, ndim) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: axis {tuple(given)} names an axis twice")
    return axes


class Reduced(NamedTuple):
    """What a reduction is over: axes of the array, and named axes of the transformations around it."""

    dims: tuple[int, ...]
    names: tuple[Any, ...]

    def count(self, shape: Sequence[int]) -> int:
        """The number of elements that are reduced to one."""
        return math.prod([shape[d] for d in self.dims] + [size_of_axis(name) for name in self.names])


def as_reduced(name: str, axis: Any, ndim: int) -> Reduced:
    """The axes of a reduction, in which names such as that of a `vmap` may stand beside numbers, or alone."""
    if not state.axes or axis is None:
        return Reduced(as_axes(name, axis, ndim), ())
    given = axis if type(axis) is tuple or type(axis) is list else (axis,)
    names = tuple(a for a in given if _is_name(a))
    return Reduced(as_axes(name, [a for a in given if not _is_name(a)] if names else axis, ndim), names)


def _is_name(axis: Any) -> bool:
    return not hasattr(type(axis), "__index__") and any(axis == known.name for known in state.axes)


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape, given as a length, a sequence or a one-dimensional array of lengths; TypeError for a bad one."""
    sizes = _sizes(name, shape)
    if any(n < 0 for n in sizes):
        raise TypeError(f"{name}: a shape holds no negative size, got {sizes}")
    return sizes


def _sizes(name: str, shape: Any) -> tuple[int, ...]:
    if isinstance(shape, tuple) and all(type(n) is int for n in shape):
        return shape
    given = shape if isinstance(shape, Sequence) or (type(shape) is not SymbolicSize and np.ndim(shape)) else (shape,)
    try:
        return tuple(map(as_size, given))
    except TypeError as error:
        if isinstance(error, ValueError) or any(type(n) is Tracer for n in given):
            raise
        raise TypeError(f"{name}: a shape is an int or a sequence of ints, got {shape!r}") from None


def refuse_out(name: str, out: Any) -> None:
    """Arrays are immutable, so there is nothing that a result could be written to."""
    if out is not None:
        raise NotImplementedError(f"{name}: `out` must be None, because arrays are immutable; use the returned array")
