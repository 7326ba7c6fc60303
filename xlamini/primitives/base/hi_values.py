"""Values of users' types as variables of a program: the primitives `hi_value` and `hi_retyped`.

Objects of a user's class are made by his primitives, in their `expand`, where traced arrays are what they are made of.
Given to another primitive there, such an object becomes a variable of its type by an equation of these arrays,
`hi_value`. A type may hold a sharding, and with it the mesh of the place where it was asked for; where a value of such
a type stands for one of another place, as the carry of a loop does, `hi_retyped` gives it that type.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from xlamini.core import Axis, Dims, Primitive, ShapedArray, Tracer, Values, Zero, aval_of, cotangent_aval, is_zero
from xlamini.core.program.hi_types import HiAval, HiDType, fits, is_mutable_value, lowered
from xlamini.core.tracing.state import state


class HiValue(Primitive):
    """The value of a user's type that is made of these arrays."""

    traits = 0
    name = "hi_value"
    lacks: Mapping[str, str] = {
        "transpose": "it has no tangents",
        "batch": "its type does not say how it is batched",
        "lower": "the arrays replace it",
    }

    def shape_rule(self, *avals: ShapedArray, ty: Any) -> HiAval:
        return HiAval(ty)

    def jvp(self, primals: Values, tangents: Values, *, ty: Any) -> Any:
        if not all(map(is_zero, tangents)):
            _refuse(ty, "derivatives")
        return self.bind(*primals, ty=ty), Zero(HiAval(ty).to_tangent_aval())

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, ty: Any) -> NoReturn:
        _refuse(ty, "batches")

    def expand(self, *parts: Any, ty: Any) -> Any:
        return ty.raise_val(*parts)


hi_value_p: Final = HiValue()


class HiRetyped(Primitive):
    """A value of another type of the same class, which is made of arrays of the same shapes and dtypes."""

    traits = 0
    name = "hi_retyped"
    lacks: Mapping[str, str] = {"lower": "the arrays replace it"}

    def shape_rule(self, x: ShapedArray, *, ty: Any) -> HiAval:
        return HiAval(ty)

    def jvp(self, primals: Values, tangents: Values, *, ty: Any) -> Any:
        due = HiAval(ty).to_tangent_aval()
        tangent = tangents[0]
        return self.bind(*primals, ty=ty), Zero(due) if is_zero(tangent) else retyped(tangent, due.dtype)

    def transpose(self, ct: Any, x: Any, *, ty: Any) -> Values:
        return [retyped(ct, cotangent_aval(x.aval).dtype)]

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, ty: Any) -> Any:
        batched: Any = HiAval(ty).inserted(dims[0], axis.size)
        return self.bind(*operands, ty=batched.ty), dims[0]

    def expand(self, x: Any, *, ty: Any) -> Any:
        return ty.raise_val(*lowered([aval_of(x)], [x]))


hi_retyped_p: Final = HiRetyped()


def retyped(x: Any, dtype: Any) -> Any:
    """A traced value as one of the user's type whose dtype this is; `x` itself where it is an array, or not traced."""
    if state.builder is None or type(dtype) is not HiDType or aval_of(x).dtype == dtype:
        return x
    if not fits(aval_of(x), HiAval(dtype.ty)):
        raise TypeError(f"a value of the type {aval_of(x)} cannot stand for one of {dtype.ty}, made of other arrays")
    return hi_retyped_p.bind(x, ty=dtype.ty)


def _refuse(ty: Any, what: str) -> NoReturn:
    raise TypeError(
        f"a value of the type {ty} was made of traced arrays by calling its class, which says nothing of {what}; make "
        "it by a primitive, whose rules do, and call the class in the `expand` of primitives only"
    )


def as_variable(x: Any) -> Any:
    """A value of a user's class as a traced value, if some of the arrays that it is made of are; else None."""
    if is_mutable_value(x):
        return None
    aval: Any = aval_of(x)
    parts = lowered([aval], [x])
    return hi_value_p.bind(*parts, ty=aval.ty) if any(type(part) is Tracer for part in parts) else None
