"""reduce_window: a reduction over windows by a user-defined computation, of one or several arrays at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from xlamini.core import (
    Axis,
    Cost,
    Dims,
    Jaxpr,
    Params,
    ShapedArray,
    Values,
    aval_of,
)
from xlamini.core.sharding.facet import same_dimensions
from xlamini.interpreters.jvp import jvp
from xlamini.primitives import with_batch_first
from xlamini.primitives.windows.geometry import as_numbers, as_pads, dilated
from xlamini.primitives.windows.reduce_window import (
    checked_counts,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    window_attributes,
    with_dimension,
)
from xlamini.primitives.windows.views import window_views
from xlamini.staging import HigherOrder, cost_of, rebuilt
from xlamini.staging.call.higher_order import axes_inside
from xlamini.transforms.reductions.computation import (
    batched_by,
    folded,
    monoids_of,
    recognised,
    tangents_by,
    traced,
)

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The reduction of each window by `computation(a, b)`, with the initial value `init_value`; for example, pooling.

    `operand` is an array or a container of arrays of one shape, `init_value` has its structure, scalars of the same
    dtypes; `computation` and `init_value` are as in `reduce`. `window_dimensions`, `window_strides` and the dilations
    (by default 1) have a number for each dimension of the operand; `padding`, with elements like `init_value`, is a
    pair (before, after) for each, or "VALID", "SAME", "SAME_LOWER". Raises as `reduce` does.

    >>> reduce_window(xlamini.numpy.arange(6.0), -xlamini.numpy.inf, xlamini.lax.max, (2,), (2,))
    Array([1., 3., 5.], dtype=float32)
    """
    found = traced("reduce_window", operand, init_value, computation)
    if not found.operands:
        return operand
    first = aval_of(found.operands[0])
    params = _window(first, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    checked_counts("reduce_window", first, **params)
    known = recognised(found, _MONOIDS)
    if known is not None:
        return rebuilt(found.tree, [known.bind(*found.operands, **params)])
    if found.captured:
        rows = [window_views(x, start, **params) for x, start in zip(found.operands, found.starts, strict=True)]
        return rebuilt(found.tree, folded(found.jaxpr, found.captured, rows, found.starts))
    return rebuilt(found.tree, reduce_window_p.bind(*found.operands, *found.starts, jaxpr=found.jaxpr, **params))


class GeneralReduceWindow(HigherOrder):
    """A windowed reduction by a jaxpr of scalars; the operands are the arrays, then their scalar initial values."""

    name = "reduce_window"
    sharding: Sharding = same_dimensions(named_axes=axes_inside)

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        arrays, starts = avals[: len(avals) // 2], avals[len(avals) // 2 :]
        shape = checked_counts(self.name, arrays[0], **params)
        return [
            x.update(shape=shape, weak_type=x.weak_type and start.weak_type)
            for x, start in zip(arrays, starts, strict=True)
        ]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        return outs, tangents_by(lambda *operands: _plain(operands, **params), jvp, primals, tangents)

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> NoReturn:
        raise AssertionError("reduce_window is not linear; its derivative is made of other primitives")

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        count = len(operands) // 2
        if any(d is not None for d in dims[count:]):
            return batched_by(lambda *operands: _plain(operands, **params), axis, operands, dims)
        arrays = with_batch_first(operands[:count], dims[:count], axis.size)
        return self.bind(*arrays, *operands[count:], **with_dimension(0, params)), [0] * count

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, **params: Any) -> Any:
        scalars = [a.strip_weak_type() for a in jaxpr.in_avals]
        body = ctx.scalar_region(scalars, lambda *args: ctx.body(jaxpr, args, "reduce_window"))
        types = [ctx.mlir.type(a) for a in ctx.avals_out]
        return ctx.many("stablehlo.reduce_window", operands, types, [body], **window_attributes(params))

    def shown_params(self, params: Params) -> Params:
        return dict(sorted({**params, "consts": ()}.items()))

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        """None: `cost` counts the operations of its jaxprs on each element."""
        return []

    def cost(self, *avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> Cost:
        outs = self.shape_rule(*avals, jaxpr=jaxpr, **params)
        places = ShapedArray(params["window_dimensions"], bool).size
        return Cost(cost_of(jaxpr).flops * outs[0].size * places, sum(a.nbytes for a in (*avals, *outs)))


reduce_window_p: Final = GeneralReduceWindow()


# --- helpers


_MONOIDS = monoids_of(add=reduce_window_sum_p, max=reduce_window_max_p, min=reduce_window_min_p)


def _window(
    x: ShapedArray, dimensions: Any, strides: Any, padding: Any, base_dilation: Any, window_dilation: Any
) -> dict[str, Any]:
    """The window arguments as normalized params."""
    name, rank = "reduce_window", x.ndim
    window = as_numbers(name, "window_dimensions", dimensions, 1, rank)
    steps = as_numbers(name, "window_strides", strides, 1, rank)
    base = as_numbers(name, "base_dilation", base_dilation, 1, rank)
    holes = as_numbers(name, "window_dilation", window_dilation, 1, rank)
    given = {"window_dimensions": window, "window_strides": steps, "base_dilation": base, "window_dilation": holes}
    checked_counts(name, x, padding=((0, 0),) * rank, **given)
    around = as_pads(name, padding, dilated(x.shape, base), dilated(window, holes), steps)
    return {**given, "padding": around}


def _plain(operands: Values, *, jaxpr: Jaxpr, **params: Any) -> list[Any]:
    count = len(operands) // 2
    arrays, starts = operands[:count], operands[count:]
    rows = [window_views(x, start, **params) for x, start in zip(arrays, starts, strict=True)]
    return folded(jaxpr, (), rows, starts)
