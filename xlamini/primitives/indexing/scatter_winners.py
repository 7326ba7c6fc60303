"""Which of the updates that a scatter sets win where indices repeat: their numbers are set likewise, and read again.

A dimension that every window fills from end to end, such as the columns where rows are set, needs no numbers: an update
wins along all of it or nowhere. On a TPU it has them nevertheless: with few to move, XLA has room in the fast memory to
fetch operands of what comes later, and then lacks it for results of matrix products.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Factors,
    Params,
    Shape,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    literal,
    tangent_aval,
)
from xlamini.core.program.form import Form, Platform
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import add
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.indexing.gather_numbers import ScatterDimensionNumbers
from xlamini.primitives.indexing.scatter_family import Scatter, operand_dimensions, windows_at
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape

if TYPE_CHECKING:
    from xlamini.core.program.checks import Checks
    from xlamini.core.sharding.facet import Sharding


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    operands = operand_dimensions(avals, outs, params).operands
    return Factors(operands, [operands[0], operands[2]])


class ScatterWinners(Scatter):
    """Masks of the operand's elements without updates and of the winning updates; of both only the shapes count."""

    multiple_results = True
    sharding: Sharding = replace(Scatter.sharding, factors=_factors)
    checks: Checks = replace(Scatter.checks, makes_nan=False)

    def __init__(self, name: str, set_windows: Callable[..., Any]):
        super().__init__(name)
        self.set_windows = set_windows

    def shape_rule(self, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, **params: Any) -> Any:
        super().shape_rule(x, indices, updates, **params)
        return [ShapedArray(aval.shape, _MASK) for aval in (x, updates)]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        return outs, [Zero(tangent_aval(aval_of(out))) for out in outs]

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        outs, dim = super().batch(axis, operands, dims, **params)
        return outs, [dim, dim]

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        x, _, updates = avals
        filled = {} if platform.name == "tpu" else _filled(x, updates, params["dimension_numbers"])
        masks = functools.partial(_masks, self.set_windows, x, updates, filled, params)
        return Form(lambda _, indices, __: masks(indices))

    def of(self, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
        """The masks for arrays of these shapes."""
        like_x, like_updates = (zeros(ShapedArray(aval_of(a).shape, _MASK)) for a in (x, updates))
        return self.bind(like_x, indices, like_updates, **params)


# --- helpers

_MASK, _NUMBER = np.dtype(np.bool_), np.dtype(np.uint32)


def _masks(
    bind: Callable[..., Any], x: ShapedArray, updates: ShapedArray, filled: dict[int, int], params: Params, indices: Any
) -> list[Any]:
    places, ranks = _others(x.ndim, filled), _others(updates.ndim, filled.values())
    numbers = _numbered(tuple(updates.shape[d] for d in ranks))
    nobody = _nothing(tuple(x.shape[d] for d in places))
    fewer = {**params, "dimension_numbers": _without(filled, params["dimension_numbers"])}
    owner = bind(nobody, indices, numbers, **fewer)
    won = eq(windows_at(owner, indices, numbers, **fewer), numbers)
    kept = eq(owner, literal(0, _NUMBER))
    return [broadcast_in_dim(kept, x.shape, places), broadcast_in_dim(won, updates.shape, ranks)]


def _filled(x: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers) -> dict[int, int]:
    """The operand's dimensions that windows fill and no index moves them along, each with that of the updates."""
    window = _others(x.ndim, (*numbers.inserted_window_dims, *numbers.operand_batching_dims))
    pairs = zip(window, numbers.update_window_dims, strict=True)
    moved = numbers.scatter_dims_to_operand_dims
    return {d: u for d, u in pairs if x.shape[d] == updates.shape[u] and d not in moved}


def _others(rank: int, dims: Collection[int]) -> Shape:
    return tuple(d for d in range(rank) if d not in dims)


def _without(filled: dict[int, int], numbers: ScatterDimensionNumbers) -> ScatterDimensionNumbers:
    """The dimension numbers of operand and updates that lack these dimensions."""
    return ScatterDimensionNumbers(
        _renumbered(numbers.update_window_dims, filled.values()),
        _renumbered(numbers.inserted_window_dims, filled),
        _renumbered(numbers.scatter_dims_to_operand_dims, filled),
        _renumbered(numbers.operand_batching_dims, filled),
        numbers.scatter_indices_batching_dims,
    )


def _renumbered(dims: Sequence[int], gone: Collection[int]) -> Shape:
    return tuple(d - sum(g < d for g in gone) for d in dims if d not in gone)


def _numbered(shape: Shape) -> Any:
    """A number from 1 on for each element."""
    if 0 in shape:
        return _nothing(shape)
    counted = reshape(broadcasted_iota(_NUMBER, (math.prod(shape),), 0), shape)
    return add(counted, literal(1, _NUMBER))


def _nothing(shape: Shape) -> Any:
    return zeros(ShapedArray(shape, _NUMBER))
