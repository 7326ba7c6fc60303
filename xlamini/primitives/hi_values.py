"""A user's object made of traced arrays as a variable of the program: the primitive `hi_value`.

Objects of a user's class are made by his primitives, in their `expand`, where traced arrays are what they are made of.
Given to another primitive there, such an object becomes a variable of its type by an equation of these arrays.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from xlamini.core import Axis, Dims, Primitive, ShapedArray, Tracer, Values, Zero, aval_of, is_zero
from xlamini.core.hi_types import HiAval, is_mutable_value, lowered


class HiValue(Primitive):
    """The value of a user's type that is made of these arrays."""

    name = "hi_value"
    traits = 0
    expands = True
    lacks: Mapping[str, str] = {"transpose": "it has no tangents", "lower": "the arrays replace it"}

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


hi_value_p = HiValue()


def _refuse(ty: Any, what: str) -> NoReturn:
    raise TypeError(
        f"a value of the type {ty} was made of traced arrays by calling its class, which says nothing of {what}; make "
        "it by a primitive, whose rules do, and call the class in the `expand` of primitives only"
    )


def as_variable(x: Any) -> Any:
    """A value of a user's class as a traced value, if some of the arrays that it is made of are; else None."""
    if is_mutable_value(x):
        return None
    aval = aval_of(x)
    parts = lowered([aval], [x])
    return hi_value_p.bind(*parts, ty=aval.ty) if any(type(part) is Tracer for part in parts) else None
