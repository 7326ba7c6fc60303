"""top_k: the largest elements along an axis, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    is_zero,
    tangent_aval,
)
from xlamini.core.dtypes import can_cast
from xlamini.core.program.avals import as_dimension
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sizes.expression import SymbolicSize, as_size
from xlamini.primitives.base.dtype_kinds import BOOL, REAL
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.forms.cpu.loops.digit_sort import fits_digits, largest_by_digits
from xlamini.primitives.forms.cpu.loops.whole_bytes import has_part_bytes, in_whole_bytes
from xlamini.primitives.reductions.reductions import check_kind
from xlamini.primitives.reductions.sort import sort
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.reorder import permuted
from xlamini.primitives.shape.shape import moveaxis, rev
from xlamini.primitives.shape.slice import slice_in_dim

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def top_k(operand: Any, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Any]:
    """A list of the `k` largest elements along `axis` in decreasing order, and of their indices as int32; NaNs count
    as largest.

    Of equal elements the first one comes first; `is_stable=False` permits another order, of which no platform makes
    use. Raises ShapeError for an axis that does not exist or has fewer than
    `k` elements.

    >>> top_k(xlamini.numpy.array([1, 4, 2]), 2)
    [Array([4, 2], dtype=int32), Array([1, 2], dtype=int32)]
    """
    ndim = aval_of(operand).ndim
    values, indices = top_k_p.bind(operand, k=as_size(k), axis=as_dimension(axis, ndim))
    return [values, indices]


class TopK(Primitive):
    name = "top_k"
    multiple_results = True
    sharding: Sharding = same_dimensions(whole="axis")
    checks = NO_NEW_NAN

    def shape_rule(self, x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
        check_kind("top_k", x, REAL | BOOL)
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"top_k: axis {axis} does not fit {x.str_short()}; the operand needs rank 1 at least")
        if not 0 <= k <= x.shape[axis]:
            raise ShapeError(f"top_k: k is {k}, but axis {axis} of {x.str_short()} has {x.shape[axis]} elements")
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [x.update(shape=shape), ShapedArray(shape, np.int32)]

    def jvp(self, primals: Values, tangents: Values, *, k: int, axis: int) -> Any:
        values, indices = self.bind(*primals, k=k, axis=axis)
        (tangent,) = tangents
        moved = Zero(tangent_aval(aval_of(values))) if is_zero(tangent) else permuted(tangent, indices, axis)
        return [values, indices], [moved, Zero(tangent_aval(aval_of(indices)))]

    def transpose(self, ct: Any, x: Any, **params: Any) -> NoReturn:
        raise AssertionError("top_k is not linear; its derivative is a gather")

    def batch(self, batch_axis: Axis, operands: Any, dims: Any, *, k: int, axis: int) -> Any:
        (x,), (dim,) = operands, dims
        return self.bind(x, k=k, axis=axis + (axis >= dim)), [dim, dim]

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        if params["axis"] != avals[0].ndim - 1:
            return Form(partial(_along_last, **params))
        if type(params["k"]) is SymbolicSize:
            return Form(partial(_by_sorting, k=params["k"]))
        if has_part_bytes(avals):
            return Form(partial(in_whole_bytes, partial(self.bind, **params)))
        compute = _computed_on_cpu(avals[0], params["k"]) if platform.name == "cpu" else None
        return compute and Form(partial(compute, k=params["k"]))

    def lower(self, ctx: Any, x: Any, *, k: int, axis: int) -> Any:
        return ctx.op("chlo.top_k", x, k=f"{k} : i64")

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=x.size)


top_k_p: Final = TopK()


def _along_last(x: Any, *, k: int, axis: int) -> list[Any]:
    last = aval_of(x).ndim - 1
    return [moveaxis(y, last, axis) for y in top_k_p.bind(moveaxis(x, axis, last), k=k, axis=last)]


def _computed_on_cpu(x: ShapedArray, k: int) -> Callable[..., Any] | None:
    """What is faster than XLA's operation, which sorts whole rows but for those of float32."""
    as_float32 = can_cast(x.dtype, np.float32)
    if fits_digits([x], x.ndim - 1) and not (as_float32 and 32 * k < x.shape[-1]):
        return largest_by_digits
    return _in_float32 if as_float32 and x.dtype != np.float32 else None


def _by_sorting(x: Any, *, k: Any) -> list[Any]:
    """Where k is symbolic, which XLA's operation does not take: rows are sorted, equal elements by their places."""
    last = aval_of(x).ndim - 1
    places = broadcasted_iota(np.dtype(np.int32), aval_of(x).shape, last)
    rows = sort((rev(x, (last,)), rev(places, (last,))), dimension=last, num_keys=1)
    return [slice_in_dim(rev(y, (last,)), 0, k, axis=last) for y in rows]


def _in_float32(x: Any, *, k: int) -> list[Any]:
    values, places = top_k_p.bind(convert(x, np.float32), k=k, axis=aval_of(x).ndim - 1)
    return [convert(values, aval_of(x).dtype), places]
