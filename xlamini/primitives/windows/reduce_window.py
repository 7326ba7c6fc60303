"""reduce_window_sum, reduce_window_max, reduce_window_min: pooling, the reductions of windows that slide over an array.

The transpose of the sum adds each cotangent to its window: where windows overlap that is a sum over windows again, of
cotangents as far apart as the windows were; where they tile the array it only repeats them. The tangent of a maximum
is that of the first element that is the maximum (`select.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from xlamini.core import Avals, Axis, Cost, Params, Primitive, Shape, ShapedArray, ShapeError, Values, aval_of, literal
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import MOVED, READ
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.primitives.base.dtype_kinds import ANY, NUMERIC, Kinds
from xlamini.primitives.base.elementwise import Elementwise
from xlamini.primitives.base.linear_unary import LinearUnary
from xlamini.primitives.elementwise.arithmetic import add, max, min
from xlamini.primitives.elementwise.comparison import eq, ge, le
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.windows import separable_pool
from xlamini.primitives.forms.cpu.windows.choice import Choice, form_by_choice
from xlamini.primitives.reductions.arg_extrema import argmax, argmin
from xlamini.primitives.reductions.ordering import highest, lowest
from xlamini.primitives.reductions.reductions import check_kind
from xlamini.primitives.shape.iota import iota_p
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape, sum_over
from xlamini.primitives.windows.geometry import MOST_PLACES, Pads, check_numbers, dilated, pads_attribute, window_counts
from xlamini.primitives.windows.select import select_and_gather_add_p
from xlamini.primitives.windows.views import window_views

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """The number of windows along each dimension: the shape of a `reduce_window`.

    >>> reduce_window_shape_tuple((4, 5), (2, 2), (1, 2), [(0, 0), (1, 1)])
    (3, 3)
    """
    return window_counts(operand_shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)


class ReduceWindow(Primitive):
    """`combine` joins two elements, `start` makes the one that changes nothing from a dtype."""

    accepts: Kinds
    combine: Elementwise
    start: Callable[[Any], Any]

    sharding: Sharding = same_dimensions()
    memory = READ

    def __init__(self, name: str, combine: Elementwise, *, start: Callable[[Any], Any], accepts: Kinds):
        self.combine, self.start, self.accepts = combine, start, accepts
        self.choices: tuple[Choice] = (
            Choice(
                separable_pool.fits,
                functools.partial(separable_pool.separable_pool, combine=combine, start=start),
                noinline=True,
            ),
        )
        super().__init__(name)

    def shape_rule(self, x: ShapedArray, **params: Any) -> ShapedArray:
        check_kind(self.name, x, self.accepts)
        return x.update(shape=checked_counts(self.name, x, **params))

    def batch(self, axis: Axis, operands: Any, dims: Any, **params: Any) -> Any:
        (x,), (dim,) = operands, dims
        return self.bind(x, **with_dimension(dim, params)), dim

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        return form_by_choice(self.choices, self, platform, avals, outs, params)

    def lower(self, ctx: Any, x: Any, **params: Any) -> Any:
        scalar = ctx.aval_out.update(shape=(), weak_type=False)
        body = ctx.scalar_region([scalar] * 2, lambda a, b: [ctx.inline(self.combine, a, b, avals=[scalar] * 2)])
        start = ctx.constant(self.start(scalar.dtype), scalar)
        return ctx.op("stablehlo.reduce_window", x, start, regions=[body], **window_attributes(params))

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        out = self.shape_rule(x, **params)
        places = ShapedArray(params["window_dimensions"], bool).size
        return Cost(out.size * places, x.nbytes + out.nbytes)


class WindowSum(ReduceWindow):
    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(
        self,
        ct: Any,
        x: Any,
        *,
        window_dimensions: Shape,
        window_strides: Shape,
        padding: Pads,
        base_dilation: Shape,
        window_dilation: Shape,
    ) -> Values:
        ones = (1,) * len(window_strides)
        if window_strides == window_dimensions and base_dilation == window_dilation == ones and aval_of(ct).size:
            whole = window_repeat_p.bind(ct, window_dimensions=window_dimensions)
            return [_cropped(whole, x.aval.shape, padding)]
        sizes, apart = dilated(x.aval.shape, base_dilation), dilated(aval_of(ct).shape, window_strides)
        reach = dilated(window_dimensions, window_dilation)
        around = [
            (k - 1 - low, n + low - out, stride - 1)
            for n, k, out, stride, (low, _) in zip(sizes, reach, apart, window_strides, padding, strict=True)
        ]
        spread = pad(ct, literal(0, aval_of(ct).dtype), around)
        back = self.bind(
            spread,
            window_dimensions=window_dimensions,
            window_strides=base_dilation,
            padding=((0, 0),) * len(around),
            base_dilation=ones,
            window_dilation=window_dilation,
        )
        return [back]


class WindowRepeat(LinearUnary):
    """Each element repeated over a window of its own: the transpose of the sums over windows side by side."""

    name = "window_repeat"
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    memory = MOVED

    def shape_rule(self, x: ShapedArray, *, window_dimensions: Shape) -> ShapedArray:
        return x.update(shape=tuple(n * k for n, k in zip(x.shape, window_dimensions, strict=True)))

    def transpose(self, ct: Any, x: Any, *, window_dimensions: Shape) -> Values:
        return [reduce_window_sum_p.bind(ct, **_plain_windows(window_dimensions, window_dimensions))]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, window_dimensions: Shape) -> Any:
        (x,), (dim,) = operands, dims
        return self.bind(x, window_dimensions=(*window_dimensions[:dim], 1, *window_dimensions[dim:])), dim

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        # A TPU would pad the short dimensions of the broadcast array to tiles of 128.
        repeated = _repeated_by_sums if platform.name == "tpu" else _repeated
        return Form(lambda x: repeated(x, params["window_dimensions"]))


class WindowExtremum(ReduceWindow):
    checks = NO_NEW_NAN

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        (x,), (tangent,) = primals, tangents
        out = self.bind(x, **params)
        if any(d != 1 for d in params["window_dilation"]):
            return out, self._of_places(x, tangent, params)
        compare = ge if self.start is lowest else le
        return out, select_and_gather_add_p.bind(tangent, x, select_prim=compare, **params)

    def _of_places(self, x: Any, tangent: Any, params: Params) -> Any:
        """The tangents at the first extrema, among the windows side by side: XLA scatters into no dilated window."""
        dtype = aval_of(x).dtype
        windows = window_views(x, literal(self.start(dtype), dtype), **params)
        shape = aval_of(windows).shape
        best = (argmax if self.start is lowest else argmin)(windows, 0, "int32")
        places = iota_p.bind(dtype=aval_of(best).dtype, shape=shape, dimension=0)
        chosen = eq(places, broadcast_in_dim(best, shape, range(1, len(shape))))
        moved = window_views(tangent, literal(0, dtype), **params)
        return sum_over(where(chosen, moved, literal(0, dtype)), (0,))

    def transpose(self, ct: Any, x: Any, **params: Any) -> NoReturn:
        raise AssertionError(f"{self.name} is not linear; its derivative is select_and_gather_add")


def _zero(dtype: Any) -> int:
    return 0


reduce_window_sum_p: Final = WindowSum("reduce_window_sum", add, start=_zero, accepts=NUMERIC)
window_repeat_p: Final = WindowRepeat()
reduce_window_max_p: Final = WindowExtremum("reduce_window_max", max, start=lowest, accepts=ANY)
reduce_window_min_p: Final = WindowExtremum("reduce_window_min", min, start=highest, accepts=ANY)


# --- helpers, also of the other reductions of windows


def checked_counts(
    name: str,
    x: ShapedArray,
    *,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: Pads,
    base_dilation: Shape,
    window_dilation: Shape,
) -> Shape:
    """The number of windows in each dimension; ShapeError, naming the function, where arguments do not fit."""
    check_numbers(
        name,
        x.ndim,
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    if len(padding) != x.ndim:
        raise ShapeError(f"{name}: padding must have {x.ndim} pairs, one for each dimension, got {padding}")
    if math.prod(window_dimensions) > MOST_PLACES:
        raise ShapeError(f"{name}: a window {window_dimensions} has too many places; make window_dimensions smaller")
    return window_counts(x.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)


def with_dimension(dim: int, params: Params) -> dict[str, Any]:
    """The params for operands with one more dimension, along which windows have one element."""
    return {
        name: (*value[:dim], (0, 0) if name == "padding" else 1, *value[dim:]) if name in _OF_DIMENSIONS else value
        for name, value in params.items()
    }


_OF_DIMENSIONS = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


def window_attributes(params: Params) -> dict[str, Any]:
    """The attributes of `stablehlo.reduce_window`."""
    return {
        "window_dimensions": params["window_dimensions"],
        "window_strides": params["window_strides"],
        "base_dilations": params["base_dilation"],
        "window_dilations": params["window_dilation"],
        "padding": pads_attribute(params["padding"]),
    }


def _plain_windows(window: Shape, strides: Shape) -> dict[str, Any]:
    """The params of windows without padding or dilation."""
    ones = (1,) * len(window)
    plain = {"padding": ((0, 0),) * len(window), "base_dilation": ones, "window_dilation": ones}
    return {"window_dimensions": window, "window_strides": strides, **plain}


def _repeated(x: Any, window: Shape) -> Any:
    pairs = [n for pair in zip(aval_of(x).shape, window, strict=True) for n in pair]
    whole = [n * k for n, k in zip(aval_of(x).shape, window, strict=True)]
    return reshape(broadcast_in_dim(x, pairs, range(0, len(pairs), 2)), whole)


def _repeated_by_sums(x: Any, window: Shape) -> Any:
    """As sums over windows, each of which holds one of the elements, that are as far apart as windows are wide."""
    apart = pad(x, literal(0, aval_of(x).dtype), [(k - 1, k - 1, k - 1) for k in window])
    return reduce_window_sum_p.bind(apart, **_plain_windows(window, (1,) * len(window)))


def _cropped(x: Any, shape: Shape, padding: Pads) -> Any:
    """What windows side by side hold of an array of this shape, without their padding."""
    around = [(-low, n + low - m, 0) for n, m, (low, _) in zip(shape, aval_of(x).shape, padding, strict=True)]
    return x if all(n == 0 for edges in around for n in edges) else pad(x, literal(0, aval_of(x).dtype), around)
