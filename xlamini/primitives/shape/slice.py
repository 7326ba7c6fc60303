"""slice: a box of an array, at static indices. `pad` is its adjoint."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import PURE, REMATERIALIZABLE, Primitive, Shape, ShapedArray, ShapeError, Values, aval_of, literal
from xlamini.core.program.checks import Checks
from xlamini.core.program.key_uses import KeyPart, KeyUses
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.core.sizes.expression import as_size, max_size, min_size
from xlamini.primitives.base.linear_unary import LinearUnary, unchanged
from xlamini.primitives.shape.shape import squeeze
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """The elements from `start_indices` up to, not including, `limit_indices`, every `strides`-th of them.

    Each argument has one number for each dimension; ShapeError for a box that does not lie in the operand.

    >>> slice(xlamini.numpy.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    starts, limits = tuple(map(as_size, start_indices)), tuple(map(as_size, limit_indices))
    steps = None if strides is None or all(s == 1 for s in strides) else tuple(map(as_size, strides))
    if steps is None and limits == aval_of(operand).shape and all(start == 0 for start in starts):
        return unchanged(operand)
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """`operand[start_index:limit_index:stride]` along one axis; the other axes whole.

    >>> slice_in_dim(xlamini.numpy.arange(6), 1, -1)
    Array([1, 2, 3, 4], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = checked_axis(axis, len(shape), "slice_in_dim")
    n = shape[axis]
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = 0 if start_index is None else wrapped(as_size(start_index), n)
    limits[axis] = n if limit_index is None else wrapped(as_size(limit_index), n)
    strides[axis] = operator.index(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """`operand[index]` along one axis, which stays as a dimension of size 1 if `keepdims`.

    Raises IndexError if `index` is not one of the axis.

    >>> index_in_dim(xlamini.numpy.arange(6), -1, keepdims=False)
    Array(5, dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = checked_axis(axis, len(shape), "index_in_dim")
    at = wrapped(as_size(index), shape[axis])
    if not 0 <= at < shape[axis]:
        raise IndexError(f"index_in_dim: index {index} is out of bounds for axis {axis} with size {shape[axis]}")
    taken = slice_in_dim(operand, at, at + 1, axis=axis)
    return taken if keepdims else squeeze(taken, (axis,))


def _part(eqn: Any) -> KeyUses:
    return KeyUses(parts=(KeyPart(0, 0, ((eqn.invars[0].aval.shape, *eqn.params.values()),)),))


class StaticSlice(LinearUnary):
    traits = PURE | REMATERIALIZABLE
    name = "slice"
    adjoint: Primitive  # pad, whose module imports this one; set by install_hooks
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    checks: Checks = Checks(makes_nan=False, key_uses=_part)

    def shape_rule(
        self, x: ShapedArray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
    ) -> ShapedArray:
        steps = strides or (1,) * x.ndim
        if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
            raise ShapeError(
                f"slice: {x.str_short()} has {x.ndim} dimensions, but start_indices {start_indices}, limit_indices "
                f"{limit_indices} and strides {strides} are for another number; give one of each per dimension"
            )
        for d, (lo, hi, step, n) in enumerate(zip(start_indices, limit_indices, steps, x.shape, strict=True)):
            if not 0 <= lo <= hi <= n or step < 1:
                raise ShapeError(
                    f"slice: {lo}:{hi}:{step} does not fit dimension {d} of {x.str_short()}; it takes "
                    f"0 <= start <= limit <= {n} and a stride of at least 1"
                )
        return x.update(shape=_sizes(start_indices, limit_indices, steps))

    def transpose(
        self, ct: Any, x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
    ) -> Values:
        steps = strides or (1,) * len(start_indices)
        sizes = aval_of(ct).shape
        config = tuple(
            (lo, n - lo - _dilated(size, step), step - 1)
            for lo, n, size, step in zip(start_indices, x.aval.shape, sizes, steps, strict=True)
        )
        return [self.adjoint.bind(ct, literal(0, aval_of(ct).dtype), padding_config=config)]

    def batch(
        self, axis: Any, operands: Any, dims: Any, *, start_indices: Shape, limit_indices: Shape, strides: Any
    ) -> Any:
        (x,), (dim,) = operands, dims
        starts, limits = inserted(start_indices, dim, 0), inserted(limit_indices, dim, axis.size)
        steps = None if strides is None else inserted(strides, dim, 1)
        return self.bind(x, start_indices=starts, limit_indices=limits, strides=steps), dim

    def lower(
        self, ctx: Any, x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
    ) -> Any:
        steps = strides or (1,) * len(start_indices)
        # A stride beyond the end takes one element, and XLA's sum of it and the limit could overflow.
        steps = [min_size(step, max_size(limit, 1)) for step, limit in zip(steps, limit_indices, strict=True)]
        return ctx.op(
            "stablehlo.slice", x, start_indices=start_indices, limit_indices=limit_indices, strides=steps
        )


slice_p: Final = StaticSlice()


# --- helpers


def checked_axis(axis: int, ndim: int, name: str) -> int:
    """An axis counted from the front; NumPy's AxisError, an IndexError and a ValueError, if there is none."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(f"{name}: axis {axis} is out of bounds for an array of {ndim} dimensions")
    return operator.index(axis) % ndim


def wrapped(index: int, size: int) -> int:
    """An index or bound counted from the front."""
    return index + size if index < 0 else index


def inserted(values: Values, dim: int, value: Any) -> tuple[Any, ...]:
    """The values with one more at `dim`."""
    return (*values[:dim], value, *values[dim:])


def _sizes(starts: Shape, limits: Shape, steps: Shape) -> Shape:
    return tuple((hi - lo + step - 1) // step for lo, hi, step in zip(starts, limits, steps, strict=True))


def _dilated(size: int, step: int) -> int:
    return max_size((size - 1) * step + 1, 0)
