"""select_and_gather_add and select_and_scatter_add: the derivatives of a maximum or minimum over windows.

The first reads, for each window, the tangent of the element that `select_prim` (`ge` for a maximum, `le` for a
minimum) picks; the second adds a cotangent to that element. They are each other's transpose.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    is_zero,
    literal,
    tangent_aval,
)
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import Memory
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.elementwise import add_any
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.windows import max_pool_gradient
from xlamini.primitives.forms.cpu.windows.choice import Choice, choose, form_by_choice
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.slice import slice
from xlamini.primitives.windows.geometry import Pads, dilated, pads_attribute, window_counts
from xlamini.primitives.windows.places import PLACE, places_of, unpicked
from xlamini.primitives.windows.views import offsets

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class SelectAndGatherAdd(Primitive):
    """Linear in the tangents; of the operand it only takes which elements are largest."""

    name = "select_and_gather_add"
    sharding: Sharding = same_dimensions()

    def shape_rule(
        self,
        tangents: ShapedArray,
        x: ShapedArray,
        *,
        select_prim: Any,
        window_dimensions: Shape,
        window_strides: Shape,
        padding: Pads,
        base_dilation: Shape,
        window_dilation: Shape,
    ) -> ShapedArray:
        if tangents.shape != x.shape:
            raise ShapeError(f"{self.name}: tangents and operand differ: {tangents.str_short()}, {x.str_short()}")
        counts = window_counts(
            x.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
        )
        return tangents.update(shape=counts)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return _linear_in_first(self, primals, tangents, params)

    def transpose(
        self, ct: Any, tangents: Any, x: Any, *, base_dilation: Shape, window_dilation: Shape, **params: Any
    ) -> Values:
        if any(d != 1 for d in window_dilation):
            raise NotImplementedError(
                f"{self.name} has no transpose for window_dilation {window_dilation}; differentiate reduce_window"
            )
        if all(d == 1 for d in base_dilation):
            return [select_and_scatter_add_p.bind(ct, x, **params), None]
        dtype = aval_of(x).dtype
        spread = pad(x, literal(unpicked(params["select_prim"], dtype), dtype), [(0, 0, d - 1) for d in base_dilation])
        back = select_and_scatter_add_p.bind(ct, spread, **params)
        shape = aval_of(back).shape
        return [slice(back, (0,) * len(shape), shape, base_dilation), None]

    def batch(self, axis: Axis, operands: Any, dims: Any, **params: Any) -> Any:
        return _batched(self, axis, operands, dims, params)

    def lower(self, ctx: Any, tangents: Any, x: Any, *, select_prim: Any, **params: Any) -> Any:
        moved, of = (a.update(shape=(), weak_type=False) for a in ctx.avals_in)

        def chosen(key: Any, other_key: Any, value: Any, other: Any) -> list[Any]:
            first = select_prim(key, other_key)
            return [where(first, key, other_key), where(first, value, other)]

        body = ctx.scalar_region(
            [of, moved, of, moved],
            lambda a, s, b, t: ctx.inline(chosen, a, b, s, t, avals=[of, of, moved, moved]),
        )
        starts = ctx.constant(unpicked(select_prim, of.dtype), of), ctx.constant(0, moved)
        out = ctx.aval_out
        return ctx.op(
            "stablehlo.reduce_window",
            x,
            tangents,
            *starts,
            avals=[out.update(dtype=of.dtype), out],
            regions=[body],
            window_dimensions=params["window_dimensions"],
            window_strides=params["window_strides"],
            base_dilations=params["base_dilation"],
            window_dilations=params["window_dilation"],
            padding=pads_attribute(params["padding"]),
        )[1]

    def cost(self, tangents: ShapedArray, x: ShapedArray, **params: Any) -> Cost:
        out = self.shape_rule(tangents, x, **params)
        places = ShapedArray(params["window_dimensions"], bool).size
        return Cost(out.size * places, tangents.nbytes + x.nbytes + out.nbytes)


def _workspace(platform: str, avals: Avals, outs: Avals, /, **params: Any) -> int:
    """XLA finds the places by a reduction of indices, an int32 for each dimension, which a TPU does not need.

    A GPU computes the operand's indices where it reads them. The CPU's form has one number for each window;
    its sums take the memory of the operand, which is not read again.
    """
    source, x = avals
    if choose(_CHOICES, Platform(platform), avals, outs, params):
        return 4 * source.size
    found = 4 * (x.ndim + 1) * source.size
    return {"tpu": 0, "cpu": found + 4 * x.ndim * x.size}.get(platform, found)


class SelectAndScatterAdd(Primitive):
    """Linear in the source; of the operand it only takes which elements are largest."""

    name = "select_and_scatter_add"
    sharding: Sharding = same_dimensions()
    memory: Memory = Memory(workspace=_workspace)

    def shape_rule(
        self,
        source: ShapedArray,
        x: ShapedArray,
        *,
        select_prim: Any,
        window_dimensions: Shape,
        window_strides: Shape,
        padding: Pads,
    ) -> ShapedArray:
        counts = window_counts(x.shape, window_dimensions, window_strides, padding)
        if source.shape != counts:
            raise ShapeError(f"{self.name}: source {source.str_short()} must have shape {counts}, one for each window")
        return source.update(shape=x.shape)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return _linear_in_first(self, primals, tangents, params)

    def transpose(self, ct: Any, source: Any, x: Any, **params: Any) -> Values:
        ones = (1,) * len(params["window_strides"])
        gathered = select_and_gather_add_p.bind(ct, x, base_dilation=ones, window_dilation=ones, **params)
        return [gathered, None]

    def batch(self, axis: Axis, operands: Any, dims: Any, **params: Any) -> Any:
        return _batched(self, axis, operands, dims, params)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        """Padding is left to XLA on a TPU alone: elsewhere it may pick, and so lose, an element of its own padding."""
        if is_symbolic_shape(avals[1].shape):
            return Form(partial(_in_padded, **params)) if _is_padded(params["padding"]) else None
        if platform.name != "tpu":
            chosen = form_by_choice(_CHOICES, self, platform, avals, outs, params)
            return chosen or (Form(partial(_in_padded, **params)) if _is_padded(params["padding"]) else None)
        views = windows_of(params).leave_too_few_dimensions and avals[0].size
        return Form(partial(_by_views, params["select_prim"], windows_of(params))) if views else None

    def lower(self, ctx: Any, source: Any, x: Any, *, select_prim: Any, padding: Pads, **params: Any) -> Any:
        aval, out = ctx.avals_in[1], ctx.aval_out
        scalar, added = aval.update(shape=(), weak_type=False), out.update(shape=(), weak_type=False)
        keys = [scalar] * 2
        picks = ctx.scalar_region(keys, lambda a, b: [ctx.inline(select_prim, a, b, avals=keys)])
        adds = ctx.scalar_region([added] * 2, lambda a, b: [ctx.op("stablehlo.add", a, b, avals=[added])])
        regions, start = [picks, adds], ctx.constant(0, added)
        return ctx.op(
            "stablehlo.select_and_scatter", x, source, start, regions=regions, padding=pads_attribute(padding), **params
        )


select_and_gather_add_p: Final = SelectAndGatherAdd()
select_and_scatter_add_p: Final = SelectAndScatterAdd()

_CHOICES = (Choice(max_pool_gradient.fits, max_pool_gradient.max_pool_gradient, noinline=True),)


# --- helpers


def _is_padded(padding: Pads) -> bool:
    return any(n != 0 for pair in padding for n in pair)


def _linear_in_first(
    primitive: Primitive, primals: Values, tangents: Values, params: Params
) -> Any:
    out = primitive.bind(*primals, **params)
    if is_zero(tangents[0]):
        return out, Zero(tangent_aval(aval_of(out)))
    return out, primitive.bind(tangents[0], primals[1], **params)


def _batched(primitive: Primitive, axis: Axis, operands: Any, dims: Any, params: Params) -> Any:
    """The operands with the batch first, along which windows have one element."""
    more = {
        name: value if name == "select_prim" else ((0, 0) if name == "padding" else 1, *value)
        for name, value in params.items()
    }
    return primitive.bind(*with_batch_first(operands, dims, axis.size), **more), 0


class WindowPositions(NamedTuple):
    """Where windows are."""

    dimensions: Shape
    strides: Shape
    padding: Pads

    @property
    def leave_too_few_dimensions(self) -> bool:
        """True if fewer than two dimensions have no windows: a TPU's compiler needs two that it makes the minor ones.

        False for windows of so many elements that a program with a slice for each would be too long.
        """
        free = sum(n == stride == 1 for n, stride in zip(self.dimensions, self.strides, strict=True))
        return free < 2 and math.prod(self.dimensions) <= _MOST_VIEWS


_MOST_VIEWS = 64


def windows_of(params: Params) -> WindowPositions:
    return WindowPositions(params["window_dimensions"], params["window_strides"], params["padding"])


def _in_padded(source: Any, x: Any, *, select_prim: Any, padding: Pads, **params: Any) -> Any:
    """The same over the padded operand, cropped where the padding is positive, with zeros where it is negative."""
    filler = literal(unpicked(select_prim, aval_of(x).dtype), aval_of(x).dtype)
    padded = pad(x, filler, [(low, high, 0) for low, high in padding])
    none = ((0, 0),) * len(padding)
    back = select_and_scatter_add_p.bind(source, padded, select_prim=select_prim, padding=none, **params)
    return pad(back, literal(0, aval_of(back).dtype), [(-low, -high, 0) for low, high in padding])


def _by_views(select_prim: Any, windows: WindowPositions, source: Any, x: Any) -> Any:
    """The same by slices: find the place in each window that is picked, then spread the cotangents of each place."""
    ones, dtype = (1,) * len(windows.strides), aval_of(source).dtype
    counts = aval_of(source).shape
    place = places_of(x, select_prim, range(math.prod(windows.dimensions)), *windows)
    spread = []
    for i, at in enumerate(offsets(windows.dimensions, ones)):
        moved = where(eq(place, literal(i, PLACE)), source, literal(0, dtype))
        spread.append(pad(moved, literal(0, dtype), _back_to(aval_of(x).shape, counts, at, windows)))
    return reduce(add_any, spread)


def _back_to(shape: Shape, counts: Shape, at: Shape, windows: WindowPositions) -> list[tuple[int, int, int]]:
    """How elements at one offset of all windows are padded to lie where they do in the array."""
    lows = [offset - low for offset, (low, _) in zip(at, windows.padding, strict=True)]
    reach = dilated(counts, windows.strides)
    sizes = zip(shape, lows, reach, windows.strides, strict=True)
    return [(low, n - low - end, stride - 1) for n, low, end, stride in sizes]
