"""gather: a window of an array read at each of many places. Its adjoint is scatter_add."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Factors,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    cotangent_aval,
    is_zero,
    literal,
    tangent_aval,
)
from xlamini.core.program.checks import Checks, Failure
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import MOVED
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sizes.expression import as_size, is_less, min_size
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.indexing.gather_labels import gather_factors
from xlamini.primitives.indexing.gather_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    as_scatter,
    check_numbers,
    clamped,
    default_fill,
    stablehlo_attribute,
    with_common_batch,
    with_indices_batch,
    with_operand_batch,
)
from xlamini.primitives.shape.shape import broadcast_in_dim, moveaxis, squeeze
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.runtime import Array

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "gather", "gather_p"]


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """The windows of `slice_sizes` that begin at the index vectors along the last dimension of `start_indices`.

    `mode` sets the meaning of out-of-bounds indices (see GatherScatterMode): by default there is none, and "fill" gives
    `fill_value`, or NaN or the dtype's extreme. `unique_indices` and `indices_are_sorted` are promises that let XLA be
    faster. Raises ShapeError or TypeError for dimension numbers or operands that do not fit.

    >>> numbers = GatherDimensionNumbers((), (0,), (0,))
    >>> gather(xlamini.numpy.arange(5), xlamini.numpy.array([[3], [1]]), numbers, (1,))
    Array([3, 1], dtype=int32)
    """
    if not isinstance(dimension_numbers, tuple):
        raise TypeError(f"gather: dimension_numbers must be GatherDimensionNumbers, got {dimension_numbers!r}")
    known = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if known is GatherScatterMode.FILL_OR_DROP and fill_value is None:
        fill_value = default_fill(aval_of(operand).dtype)
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        slice_sizes=tuple(map(as_size, slice_sizes)),
        mode=known,
        fill_value=fill_value if known is GatherScatterMode.FILL_OR_DROP else None,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
    )


def _failures(
    operands: Values, outs: Values, *, dimension_numbers: Any, slice_sizes: Shape, **params: Any
) -> Sequence[Failure]:
    from xlamini.primitives.indexing.index_failures import vectors_outside  # for those who check only

    x, indices = operands
    return vectors_outside(aval_of(x), indices, dimension_numbers.start_index_map, slice_sizes)


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    x, indices = avals
    return gather_factors(x, indices, outs[0], params["dimension_numbers"], params["slice_sizes"])


class Gather(Primitive):
    name = "gather"
    memory = MOVED
    adjoint: Primitive  # scatter_add, whose module imports this one; set by install_hooks
    sharding: Sharding = Sharding(factors=_factors)
    checks: Checks = Checks(makes_nan=False, failures=_failures)

    def shape_rule(
        self, x: ShapedArray, indices: ShapedArray, *, dimension_numbers: Any, slice_sizes: Shape, **params: Any
    ) -> ShapedArray:
        check_numbers("gather", x, indices, dimension_numbers)
        absent = {*dimension_numbers.collapsed_slice_dims, *dimension_numbers.operand_batching_dims}
        fits = len(slice_sizes) == x.ndim and all(
            0 <= s <= (1 if d in absent else n) for d, (s, n) in enumerate(zip(slice_sizes, x.shape, strict=True))
        )
        if not fits:
            raise ShapeError(
                f"gather: slice_sizes {slice_sizes} do not fit the operand {x.str_short()}; sizes are at most the "
                "operand's, and 1 in collapsed and batching dimensions"
            )
        window = iter([s for d, s in enumerate(slice_sizes) if d not in absent])
        places = iter(indices.shape[:-1])
        rank = indices.ndim - 1 + len(dimension_numbers.offset_dims)
        offsets = dimension_numbers.offset_dims
        shape = tuple(next(window) if d in offsets else next(places) for d in range(rank))
        if 0 not in shape and any(is_less(n, s) for n, s in zip(x.shape, slice_sizes, strict=True)):
            raise ShapeError(f"gather: the operand {x.str_short()} is empty, so give no indices")
        return x.update(shape=shape)

    def jvp(self, primals: Values, tangents: Values, *, fill_value: Any, **params: Any) -> Any:
        out = self.bind(*primals, fill_value=fill_value, **params)
        if is_zero(tangents[0]):
            return out, Zero(tangent_aval(aval_of(out)))
        no_slope = None if fill_value is None else 0
        return out, self.bind(tangents[0], primals[1], fill_value=no_slope, **params)

    def transpose(
        self,
        ct: Any,
        x: Any,
        indices: Any,
        *,
        dimension_numbers: Any,
        mode: Any,
        indices_are_sorted: bool,
        unique_indices: bool,
        **params: Any,
    ) -> Values:
        nothing = zeros(cotangent_aval(x.aval))
        if aval_of(ct).size == 0:  # a window of size 1 fits no empty dimension, where the adjoint would put it
            return [nothing, None]
        back = self.adjoint.bind(
            nothing,
            indices,
            ct,
            dimension_numbers=as_scatter(dimension_numbers),
            mode=mode,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices and _are_disjoint(aval_of(indices), dimension_numbers, mode, **params),
        )
        return [back, None]

    def batch(
        self,
        axis: Axis,
        operands: Values,
        dims: Dims,
        *,
        dimension_numbers: Any,
        slice_sizes: Shape,
        indices_are_sorted: bool,
        unique_indices: bool,
        **params: Any,
    ) -> Any:
        x, indices = (v if d is None else moveaxis(v, d, 0) for v, d in zip(operands, dims, strict=True))
        if dims[1] is None:
            numbers, sizes = with_operand_batch(dimension_numbers), (axis.size, *slice_sizes)
        elif dims[0] is None:
            numbers, sizes = with_indices_batch(dimension_numbers), slice_sizes
        else:
            numbers, sizes = with_common_batch(dimension_numbers), (min_size(axis.size, 1), *slice_sizes)
        out = self.bind(
            x,
            indices,
            dimension_numbers=numbers,
            slice_sizes=sizes,
            indices_are_sorted=indices_are_sorted and dims[1] is None,
            unique_indices=unique_indices and dims[0] is not None,  # examples may read one place of what they share
            **params,
        )
        return out, 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        (out,) = outs
        if not out.size:  # StableHLO takes no window of size 1 from an empty dimension
            return Form(lambda x, indices: zeros(ShapedArray(out.shape, out.dtype)))
        return Form(partial(self._filled, **params)) if params["mode"] is GatherScatterMode.FILL_OR_DROP else None

    def lower(
        self,
        ctx: Any,
        x: Any,
        indices: Any,
        *,
        dimension_numbers: Any,
        slice_sizes: Shape,
        indices_are_sorted: bool,
        **params: Any,
    ) -> Any:
        attribute = stablehlo_attribute("gather", dimension_numbers._asdict(), ctx.avals_in[1].ndim - 1)
        shape, batching = ctx.avals_in[0].shape, dimension_numbers.operand_batching_dims
        return ctx.op(
            "stablehlo.gather",
            x,
            indices,
            dimension_numbers=attribute,
            slice_sizes=[min_size(s, shape[d]) if d in batching else s for d, s in enumerate(slice_sizes)],
            indices_are_sorted=indices_are_sorted,
        )

    def _filled(self, x: Any, indices: Any, *, mode: Any, fill_value: Any, **params: Any) -> Any:
        """The gather in mode FILL_OR_DROP: a clipped one, and then a choice."""
        read = self.bind(x, indices, mode=GatherScatterMode.CLIP, fill_value=None, **params)
        numbers: GatherDimensionNumbers = params["dimension_numbers"]
        if not numbers.start_index_map:
            return read
        inside = _in_bounds(aval_of(x), indices, numbers.start_index_map, params["slice_sizes"])
        shape = aval_of(read).shape
        places = [d for d in range(len(shape)) if d not in numbers.offset_dims]
        return where(broadcast_in_dim(inside, shape, places), read, literal(fill_value, aval_of(x).dtype))

    def cost(self, x: ShapedArray, indices: ShapedArray, **params: Any) -> Cost:
        out = self.shape_rule(x, indices, **params)
        return Cost(0, indices.nbytes + 2 * out.nbytes)


gather_p: Final = Gather()


def _are_disjoint(indices: ShapedArray, numbers: Any, mode: Any, slice_sizes: Shape, **_: Any) -> bool:
    """Whether windows at different index vectors share no element: there is one only, or none is longer than one."""
    places = [n for d, n in enumerate(indices.shape[:-1]) if d not in numbers.start_indices_batching_dims]
    short = all(slice_sizes[d] == 1 for d in numbers.start_index_map)
    return is_less(math.prod(places), 2) or (short and mode is not GatherScatterMode.CLIP)


def _in_bounds(operand: ShapedArray, indices: Any, places: Shape, window: Shape) -> Any:
    """A mask of the index vectors whose window lies within the operand."""
    unmoved = eq(clamped(operand, indices, places, window), indices)
    last = aval_of(indices).ndim - 1
    columns = [squeeze(slice_in_dim(unmoved, i, i + 1, axis=last), (last,)) for i in range(len(places))]
    inside: Any = literal(True, np.dtype(bool))
    for column in columns:
        inside = where(column, inside, literal(False, np.dtype(bool)))
    return inside
