"""Casts between varying and invariant along axes of shard_map's mesh; they change the aval and compute nothing.

`pvary` makes what devices share a value that may differ; its transpose sums what has become of it. `unvary` claims of a
value that devices have the same, which nobody checks; each then has its share of the cotangent.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import (
    ELEMENTWISE,
    PURE,
    REMATERIALIZABLE,
    Axis,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    Values,
    aval_of,
    is_zero,
    literal,
    same_dimensions,
)
from xlamini.core.named_axes import size_of_axis
from xlamini.core.primitive import IS_VMA_CAST
from xlamini.primitives.collectives.reductions import psum_p
from xlamini.primitives.elementwise import mul

Axes = tuple[Any, ...]


class VaryingCast(Primitive):
    """A cast that returns its operand; `axes` are those along which it becomes varying or invariant."""

    traits = PURE | IS_VMA_CAST | ELEMENTWISE | REMATERIALIZABLE

    def shape_rule(self, x: ShapedArray, *, axes: Axes) -> ShapedArray:
        return x

    factors = same_dimensions

    def jvp(self, primals: Values, tangents: Values, *, axes: Axes) -> Any:
        out = self.bind(*primals, axes=axes)
        return out, tangents[0] if is_zero(tangents[0]) else self.bind(*tangents, axes=axes)

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, axes: Axes) -> Any:
        return self.bind(*operands, axes=axes), dims[0]

    def lower(self, ctx: Any, x: Any, *, axes: Axes) -> Any:
        return x


class Vary(VaryingCast):
    """A cast to a value that varies along the axes too."""

    name = "pvary"

    def varying(self, vma: frozenset[Any], params: Params) -> frozenset[Any]:
        return vma | frozenset(params["axes"])

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> Values:
        return [psum_p.bind(ct, axes=axes, axis_index_groups=None)]


class Unvary(VaryingCast):
    """The user's promise that a value is equal on all devices along the axes."""

    name = "unvary"

    def varying(self, vma: frozenset[Any], params: Params) -> frozenset[Any]:
        return vma - frozenset(params["axes"])

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> Values:
        share = 1 / np.prod([size_of_axis(name) for name in axes])
        return [pvary_p.bind(mul(ct, literal(share, aval_of(ct).dtype)), axes=axes)]


pvary_p = Vary()
unvary_p = Unvary()


def varying_along(x: Any, axes: frozenset[Any]) -> Any:
    """A value that varies along these axes and those along which it did."""
    more = axes - aval_of(x).vma
    return pvary_p.bind(x, axes=tuple(sorted(more, key=str))) if more else x
