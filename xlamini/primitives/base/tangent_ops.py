"""Zeros and sums of tangents and cotangents."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from xlamini.core import ExtendedDType, Primitive, ShapedArray, aval_of, hooks, is_zero, literal
from xlamini.core.program.hi_types import HiAval
from xlamini.core.tracing.state import state
from xlamini.primitives.base.elementwise import add_any
from xlamini.primitives.elementwise.convert_element_type import cast
from xlamini.primitives.placement.device_put import placed_as
from xlamini.primitives.shape.shape import broadcast_in_dim


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents of one value, either of which may be a symbolic zero."""
    if is_zero(x):
        return y
    if is_zero(y):
        return x
    aval = aval_of(x)
    if type(aval) is HiAval:
        return aval.ty.vspace_add(x, y)
    return aval.dtype.add(x, y) if isinstance(aval.dtype, ExtendedDType) else add_any(x, y)


def of_type(aval: ShapedArray, tangent: Any) -> Any:
    """A tangent with the weak type of `aval`, so that the tangent of a Python number promotes as the number does."""
    return tangent if is_zero(tangent) else cast(tangent, aval.dtype, aval.weak_type)


def full(aval: ShapedArray, value: Any) -> Any:
    """An array of this type filled with one number."""
    return _filled(aval, literal(value, aval.dtype, aval.weak_type))


def _filled(aval: ShapedArray, element: Any) -> Any:
    filled = broadcast_in_dim(element, aval.shape, ())
    return placed_as(hooks.cast_varying(filled, aval.vma) if aval.vma else filled, aval)


def zeros(aval: ShapedArray) -> Any:
    """Zeros of this type."""
    if isinstance(aval.dtype, ExtendedDType):
        return _filled(aval, aval.dtype.zero())
    if type(aval) is not HiAval:
        return full(aval, 0)
    zero = hi_zeros_p.bind(ty=aval.ty)
    return hooks.cast_varying(zero, aval.vma) if aval.vma else zero


class HiZeros(Primitive):
    """The zero of a user's type, as a tangent."""

    traits = 0
    name = "hi_zeros"
    lacks: Mapping[str, str] = {
        "jvp": "it has no operands",
        "batch": "it has no operands",
        "lower": "the type's own zero replaces it",
    }

    def shape_rule(self, *, ty: Any) -> HiAval:
        return HiAval(ty)

    def expand(self, *, ty: Any) -> Any:
        return ty.vspace_zero()

    def bind(self, *operands: Any, **params: Any) -> Any:
        return self.expand(**params) if state.builder is None else super().bind(**params)


hi_zeros_p: Final = HiZeros()


def instantiated(tangent: Any) -> Any:
    """A tangent as an array, also where it is a symbolic zero."""
    return zeros(tangent.aval) if is_zero(tangent) else tangent
