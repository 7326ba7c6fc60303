"""Casts of values along the manual axes of shard_map; they change the aval and compute nothing.

Those of this file are between the terms of a sum and values: `terms_p` gives what each device has of an unreduced
value, to be summed next, and `shared_p` claims that devices have one reduced value, which a collective just gave them.
Each is the transpose of the other.
"""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from xlamini.core import (
    ELEMENTWISE,
    PURE,
    REMATERIALIZABLE,
    Avals,
    AvalSharding,
    Axis,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    Values,
    aval_of,
    is_zero,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.hi_types import has_hi, lowered, raised
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY, Sums, sums_of
from xlamini.core.sharding.propagation import Splits
from xlamini.runtime.meshes.current_mesh import get_abstract_mesh

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


Axes = tuple[Any, ...]


def _cast_axes(params: Params) -> Axes:
    """Rules ask whether shard_map checks these axes, so two equations of one type may have two transposes."""
    return params["axes"]


class VaryingCast(Primitive):
    """A cast from one kind of value to another along `axes`, which returns its operand.

    The kinds are "varying", "unreduced", "reduced", and "invarying" for what is none of them.
    """

    source: str
    target: str
    traits = PURE | ELEMENTWISE | REMATERIALIZABLE
    sharding: Sharding = same_dimensions(linear=JOINTLY, casts=True)
    checks = NO_NEW_NAN

    def __init__(self, name: str | None = None):
        super().__init__(name or f"{self.source}_to_{self.target}")
        self.sharding = replace(self.sharding, varying=self.varying, sums=self.sums, named_axes=_cast_axes)

    def shape_rule(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return x

    def varying(self, vma: frozenset[Any], params: Params) -> frozenset[Any]:
        return self._axes("varying", vma, params)

    def sums(self, avals: Avals, outs: Avals, params: Params) -> list[Sums]:
        unreduced, reduced = sums_of(avals[0])
        return [Sums(self._axes("unreduced", unreduced, params), self._axes("reduced", reduced, params))]

    def _axes(self, kind: str, axes: frozenset[Any], params: Params) -> frozenset[Any]:
        """The axes along which the result is of this kind, where its operand is so along `axes`."""
        if kind == self.source:
            return axes.difference(params["axes"])
        return axes.union(params["axes"]) if kind == self.target else axes

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, tangents[0] if is_zero(tangents[0]) else self.bind(*tangents, **params)

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        return self.bind(*operands, **params), dims[0]

    def lower(self, ctx: Any, x: Any, **params: Any) -> Any:
        return x

    def expands_on(self, avals: Avals, params: Params) -> bool:
        return has_hi(avals)

    def expand(self, x: Any, *, axes: Axes, **params: Any) -> Any:
        """Of a value of a user's type: the cast of each array that it is made of."""
        avals = [aval_of(x)]
        return raised(avals, [self._cast_part(part, axes, params) for part in lowered(avals, [x])])[0]

    def _cast_part(self, x: Any, axes: Axes, params: Params) -> Any:
        varies = self.source == "varying"
        due = tuple(name for name in axes if (name in aval_of(x).vma) == varies)
        return self.bind(x, axes=due, **params) if due else x


def _on_mesh(avals: Avals, outs: Avals, params: Params) -> Splits:
    return Splits([avals[0].explicit_sharding or AvalSharding(params["mesh"], ((),) * avals[0].ndim)])


class SumCast(VaryingCast):
    """A cast from or to an unreduced or reduced value; `mesh` is the one in types here."""

    sharding: Sharding = replace(VaryingCast.sharding, splits=_on_mesh, chooses=True)

    def cast(self, x: Any, axes: Axes) -> Any:
        """The value cast along these axes of the current mesh."""
        return self.bind(x, axes=tuple(sorted(axes, key=str)), mesh=get_abstract_mesh()) if axes else x

    def shown_params(self, params: Params) -> Params:
        return {"axes": params["axes"]}


class Terms(SumCast):
    """The term of an unreduced value that each device has, as a value that varies."""

    source = "unreduced"
    target = "varying"

    def transpose(self, ct: Any, x: Any, *, axes: Axes, mesh: Any) -> Values:
        return [shared_p.bind(ct, axes=axes, mesh=mesh)]


class Shared(SumCast):
    """A value that varies by its type, and is equal on all devices, as a reduced one."""

    source = "varying"
    target = "reduced"

    def transpose(self, ct: Any, x: Any, *, axes: Axes, mesh: Any) -> Values:
        return [terms_p.bind(ct, axes=axes, mesh=mesh)]


terms_p: Final = Terms()
shared_p: Final = Shared()


def terms_along(x: Any, names: Axes) -> Any:
    """A value whose terms along those of these axes along which it is unreduced are values that vary."""
    return terms_p.cast(x, tuple(sums_of(aval_of(x)).unreduced.intersection(names)))
