"""The primitive select_and_scatter: select one element of each window, and scatter a source value to its position.

`select` and `scatter` are jaxprs. The derivative of max pooling uses the special case of `ge` and a sum, which is the
primitive `select_and_scatter_add`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from xlamini.core import (
    Axis,
    Cost,
    Dims,
    Jaxpr,
    Params,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
)
from xlamini.core.sharding.facet import same_dimensions
from xlamini.primitives import with_batch_first
from xlamini.primitives.windows.geometry import Pads, pads_attribute, window_counts
from xlamini.staging import HigherOrder, cost_of
from xlamini.staging.call.higher_order import axes_inside

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class SelectAndScatter(HigherOrder):
    """A selection and scatter by two jaxprs; the operands are the array, the source, and the scalar initial value."""

    name = "select_and_scatter"
    multiple_results = False
    sharding: Sharding = same_dimensions(named_axes=axes_inside)
    lacks: Mapping[str, str] = {"jvp": "a selection by any program has none; a maximum's is select_and_scatter_add"}

    def shape_rule(
        self,
        x: ShapedArray,
        source: ShapedArray,
        start: ShapedArray,
        *,
        select_jaxpr: Jaxpr,
        scatter_jaxpr: Jaxpr,
        window_dimensions: Shape,
        window_strides: Shape,
        padding: Pads,
    ) -> ShapedArray:
        counts = window_counts(x.shape, window_dimensions, window_strides, padding)
        if source.shape != counts or start.shape or not x.dtype == source.dtype == start.dtype:
            raise ShapeError(
                f"{self.name}: source {source.str_short()} must have shape {counts}, one value for each window, and "
                f"with the initial value {start.str_short()} the dtype of the operand {x.str_short()}"
            )
        return x

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        if dims[2] is not None:
            raise NotImplementedError(f"{self.name}: the initial value cannot be batched; it is one for all")
        x, source = with_batch_first(operands[:2], dims[:2], axis.size)
        one = {"window_dimensions": 1, "window_strides": 1, "padding": (0, 0)}
        more = {name: (one[name], *value) if name in one else value for name, value in params.items()}
        return self.bind(x, source, operands[2], **more), 0

    def lower(
        self,
        ctx: Any,
        *operands: Any,
        select_jaxpr: Jaxpr,
        scatter_jaxpr: Jaxpr,
        window_dimensions: Shape,
        window_strides: Shape,
        padding: Pads,
    ) -> Any:
        selects = ctx.scalar_region(select_jaxpr.in_avals, lambda *args: ctx.body(select_jaxpr, args, "select"))
        scatters = ctx.scalar_region(scatter_jaxpr.in_avals, lambda *args: ctx.body(scatter_jaxpr, args, "scatter"))
        return ctx.op(
            "stablehlo.select_and_scatter",
            *operands,
            regions=[selects, scatters],
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            padding=pads_attribute(padding),
        )

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        """None: `cost` counts the operations of its jaxprs on each element."""
        return []

    def cost(self, *avals: ShapedArray, select_jaxpr: Jaxpr, scatter_jaxpr: Jaxpr, **params: Any) -> Cost:
        places = ShapedArray(params["window_dimensions"], bool).size
        flops = avals[1].size * (places * cost_of(select_jaxpr).flops + cost_of(scatter_jaxpr).flops)
        return Cost(flops, sum(a.nbytes for a in (*avals, avals[0])))


select_and_scatter_p: Final = SelectAndScatter()
