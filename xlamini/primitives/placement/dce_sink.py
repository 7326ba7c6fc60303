"""dce_sink: values that are computed although nothing uses them, to be inspected in a jaxpr or a profile."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from xlamini.core import Avals, Axis, Dims, Effects, Factors, Params, Primitive, ShapedArray, Values, dims, tree_leaves
from xlamini.core.program.effects import Effect
from xlamini.core.sharding.facet import Sharding

_effect = Effect("DceSink", observing=True)
_TYPED = {"api_version": "4 : i32", "backend_config": "{}"}


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the arrays of a pytree in the program, as if something used them.

    What they are computed by stays in the jaxpr; with `prevent_mlir_dce` in the compiled program too.

    >>> dce_sink(xlamini.numpy.ones(3))
    """
    for leaf in tree_leaves(val):
        dce_sink_p.bind(leaf, prevent_mlir_dce=bool(prevent_mlir_dce))


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    return Factors([dims(avals[0])], [])


class DceSink(Primitive):
    name = "dce_sink"
    multiple_results = True
    sharding: Sharding = Sharding(factors=_factors)
    lacks: Mapping[str, str] = {"transpose": "it has no results"}

    def shape_rule(self, x: ShapedArray, *, prevent_mlir_dce: bool) -> list[ShapedArray]:
        return []

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return self.bind(*primals, **params), []

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        return self.bind(*operands, **params), []

    def lower(self, ctx: Any, x: Any, *, prevent_mlir_dce: bool) -> list[Any]:
        if prevent_mlir_dce:
            ctx.many("stablehlo.custom_call", [x], [], call_target_name='"dce_sink"', has_side_effect=True, **_TYPED)
        return []

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset([_effect])


dce_sink_p: Final = DceSink()
