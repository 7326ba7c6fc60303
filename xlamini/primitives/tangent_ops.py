"""Zeros and sums of tangents and cotangents."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray, hooks, is_zero, literal
from xlamini.primitives.convert_element_type import cast
from xlamini.primitives.device_put import placed_as
from xlamini.primitives.elementwise import add_any
from xlamini.primitives.shape import broadcast_in_dim


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents of one value, either of which may be a symbolic zero."""
    if is_zero(x):
        return y
    return x if is_zero(y) else add_any(x, y)


def of_type(aval: ShapedArray, tangent: Any) -> Any:
    """A tangent with the weak type of `aval`, so that the tangent of a Python number promotes as the number does."""
    return tangent if is_zero(tangent) else cast(tangent, aval.dtype, aval.weak_type)


def full(aval: ShapedArray, value: Any) -> Any:
    """An array of this type filled with one number."""
    filled = broadcast_in_dim(literal(value, aval.dtype, aval.weak_type), aval.shape, ())
    return placed_as(hooks.cast_varying(filled, aval.vma) if aval.vma else filled, aval)


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of this type."""
    return full(aval, 0)


def instantiated(tangent: Any) -> Any:
    """A tangent as an array, also where it is a symbolic zero."""
    return zeros(tangent.aval) if is_zero(tangent) else tangent
