"""The base of all scatters: types, batching, lowering. They differ in how an update combines with the element.

A member states that as a StableHLO op (`combine`, None where the update replaces the element) and writes its
derivatives.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Factors,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
    iinfo,
)
from xlamini.core.program.checks import Checks, Failure
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import Memory
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sizes.shapes import largest
from xlamini.lowering.bits import bits_of
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.convert_element_type import bitcast_convert_type, convert
from xlamini.primitives.indexing.gather import gather_p
from xlamini.primitives.indexing.gather_labels import scatter_factors
from xlamini.primitives.indexing.gather_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    as_gather,
    check_numbers,
    clamped,
    stablehlo_attribute,
    window_shape,
    with_common_batch,
    with_operand_batch,
)
from xlamini.primitives.shape.shape import reshape

_INT32 = np.dtype(np.int32)


def _failures(operands: Values, outs: Values, *, dimension_numbers: Any, **params: Any) -> Sequence[Failure]:
    from xlamini.primitives.indexing.index_failures import vectors_outside  # for those who check only

    x, indices, updates = operands
    aval = aval_of(x)
    window = window_shape(aval, aval_of(updates), dimension_numbers)
    return vectors_outside(aval, indices, dimension_numbers.scatter_dims_to_operand_dims, window)


def operand_dimensions(avals: Avals, outs: Avals, params: Params) -> Factors:
    x, indices, updates = avals
    numbers = params["dimension_numbers"]
    return scatter_factors(x, indices, updates, numbers, window_shape(x, updates, numbers))


class Scatter(Primitive):
    """Operands: the array, index vectors along the last dimension of the indices, updates."""

    sharding: Sharding = Sharding(factors=operand_dimensions, chooses_memory=True)
    memory: Memory = Memory(updates=True)
    checks: Checks = Checks(failures=_failures)
    combine: str | None = None

    def __init__(self, name: str, combine: str | None = None):
        super().__init__(name)
        self.combine = combine

    def shape_rule(
        self, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *, dimension_numbers: Any, **params: Any
    ) -> ShapedArray:
        check_numbers(self.name, x, indices, dimension_numbers)
        if x.dtype != updates.dtype:
            raise TypeError(
                f"{self.name}: updates have dtype {updates.dtype}, the operand {x.dtype}; convert them with .astype"
            )
        self._check_updates(x, indices, updates, dimension_numbers)
        return x.update(weak_type=x.weak_type and updates.weak_type)

    def _check_updates(
        self, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers
    ) -> None:
        window = numbers.update_window_dims
        places = [n for d, n in enumerate(updates.shape) if d not in window]
        if updates.ndim != len(window) + indices.ndim - 1 or places != list(indices.shape[:-1]):
            raise ShapeError(
                f"{self.name}: updates {updates.str_short()} must have, beside the window {window}, the dimensions "
                f"{indices.shape[:-1]} of the indices"
            )
        if any(w > n for w, n in zip(window_shape(x, updates, numbers), x.shape, strict=True)):
            raise ShapeError(
                f"{self.name}: the window {window} of the updates {updates.str_short()} is larger than the operand "
                f"{x.str_short()}"
            )

    def batch(
        self,
        axis: Axis,
        operands: Values,
        dims: Dims,
        *,
        dimension_numbers: Any,
        indices_are_sorted: bool,
        **params: Any,
    ) -> Any:
        x, indices, updates = operands
        if dims[1] is None:
            x, updates = with_batch_first((x, updates), (dims[0], dims[2]), axis.size)
            numbers = with_operand_batch(dimension_numbers)
        else:
            x, indices, updates = with_batch_first(operands, dims, axis.size)
            numbers, indices_are_sorted = with_common_batch(dimension_numbers), False
        params["indices_are_sorted"] = indices_are_sorted
        return self.bind(x, indices, updates, dimension_numbers=numbers, **params), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        x, indices, _ = avals
        if indices.dtype.itemsize < 4 and largest(x.shape) > iinfo(indices.dtype).max:  # XLA narrows the sizes
            return Form(partial(self._by_wide_indices, **params))
        if params["mode"] is GatherScatterMode.CLIP:
            return Form(partial(self._clipped, **params))
        if not x.ndim and not indices.shape[-1]:
            return Form(partial(self._of_scalar, **params))
        bits = bits_of(platform, x.shape, x.dtype.name) if self.combine is None else None
        return None if bits is None else Form(partial(self._of_bits, bits, **params))

    def lower(
        self, ctx: Any, x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **params: Any
    ) -> Any:
        scalar, numbers = ctx.aval_out.update(shape=(), weak_type=False), dimension_numbers._asdict()
        numbers["input_batching_dims"] = numbers.pop("operand_batching_dims")
        body = ctx.scalar_region([scalar] * 2, lambda old, new: [self.combined(ctx, scalar, old, new, **params)])
        return ctx.op(
            "stablehlo.scatter",
            x,
            indices,
            updates,
            regions=[body],
            scatter_dimension_numbers=stablehlo_attribute("scatter", numbers, ctx.avals_in[1].ndim - 1),
            indices_are_sorted=params["indices_are_sorted"],
            unique_indices=params["unique_indices"],
        )

    def _by_wide_indices(self, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
        return self.bind(x, convert(indices, _INT32), updates, **params)

    def _of_scalar(self, x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, **params: Any) -> Any:
        """The scatter into an array of one element: newer compilers refuse one into a scalar."""
        places = zeros(aval_of(indices).update(shape=(*aval_of(indices).shape[:-1], 1)))
        return reshape(self.bind(reshape(x, (1,)), places, updates, dimension_numbers=_OF_ONE, **params), ())

    def _of_bits(self, bits: np.dtype, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
        """The scatter of the bits of arrays with narrow floats (`lowering/bits.py`)."""
        made = self.bind(bitcast_convert_type(x, bits), indices, bitcast_convert_type(updates, bits), **params)
        return bitcast_convert_type(made, aval_of(x).dtype)

    def combined(self, ctx: Any, scalar: ShapedArray, old: Any, new: Any, **params: Any) -> Any:
        """The StableHLO scalar that takes the place of `old`."""
        return new if self.combine is None else ctx.op(self.combine, old, new, avals=[scalar])

    def _clipped(self, x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **params: Any) -> Any:
        """The scatter with each window moved inside."""
        aval = aval_of(x)
        window = window_shape(aval, aval_of(updates), dimension_numbers)
        inside = clamped(aval, indices, dimension_numbers.scatter_dims_to_operand_dims, window)
        params |= {"dimension_numbers": dimension_numbers, "mode": GatherScatterMode.FILL_OR_DROP}
        return self.bind(x, inside, updates, **params)

    def cost(self, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, **params: Any) -> Cost:
        return Cost(0 if self.combine is None else updates.size, indices.nbytes + 3 * updates.nbytes)


def windows_at(
    x: Any, indices: Any, like: Any, *, dimension_numbers: Any, mode: Any, fill_value: Any = 0, **params: Any
) -> Any:
    """Gather a scatter's windows from `x`: an array of the shape of the updates `like`."""
    window = window_shape(aval_of(x), aval_of(like), dimension_numbers)
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=as_gather(dimension_numbers),
        slice_sizes=window,
        mode=mode,
        fill_value=fill_value if mode is GatherScatterMode.FILL_OR_DROP else None,
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
    )


_OF_ONE = ScatterDimensionNumbers((), (0,), (0,))
