"""dynamic_slice: a box of fixed size, read from an array at indices computed at run time.

A box that would stick out is moved inside. `dynamic_update_slice` is the adjoint.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Primitive,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    cotangent_aval,
    enable_x64,
    iinfo,
    is_zero,
    literal,
    tangent_aval,
)
from xlamini.core.program.checks import Checks, Failure
from xlamini.core.program.memory import MOVED
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import IN_FIRST
from xlamini.core.sizes.expression import SymbolicSize, as_size
from xlamini.core.sizes.shapes import largest
from xlamini.lowering.bits import moved
from xlamini.primitives.base.dtype_kinds import INTEGER, UNSIGNED, kind_of
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import add
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather_p
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import broadcast, moveaxis, reshape, squeeze
from xlamini.primitives.shape.slice import checked_axis, index_in_dim, inserted, wrapped
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The box of `slice_sizes` that begins at `start_indices`, moved inside the operand where it would stick out.

    `start_indices` are integer scalars, one for each dimension, or a vector of them; negative ones count from the end
    if `allow_negative_indices` (for all or for each). Raises ShapeError for a box larger than the operand.

    >>> dynamic_slice(xlamini.numpy.arange(6), (2,), (3,))
    Array([2, 3, 4], dtype=int32)
    """
    starts = start_scalars(operand, start_indices, allow_negative_indices, "dynamic_slice")
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=tuple(map(as_size, slice_sizes)))


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """`slice_size` elements along one axis, from `start_index` on; the other axes whole.

    >>> dynamic_slice_in_dim(xlamini.numpy.arange(6), 2, 3)
    Array([2, 3, 4], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = checked_axis(axis, len(shape), "dynamic_slice_in_dim")
    starts = starts_in_dim(start_index, axis, len(shape))
    sizes = (*shape[:axis], slice_size, *shape[axis + 1 :])
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """The slice at `index` of one axis, which stays as a dimension of size 1 if `keepdims`.

    >>> dynamic_index_in_dim(xlamini.numpy.arange(6), 2, keepdims=False)
    Array(2, dtype=int32)
    """
    taken = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return taken if keepdims else squeeze(taken, (axis,))


def _failures(operands: Values, outs: Values, *, slice_sizes: Shape) -> Sequence[Failure]:
    from xlamini.primitives.indexing.index_failures import starts_outside  # for those who check only

    x, *starts = operands
    return starts_outside(aval_of(x), starts, slice_sizes)


class DynamicSlice(Primitive):
    name = "dynamic_slice"
    sharding: Sharding = same_dimensions(linear=IN_FIRST)
    memory = MOVED
    adjoint: Primitive  # dynamic_update_slice, whose module imports this one; set by install_hooks
    checks: Checks = Checks(makes_nan=False, failures=_failures)

    def shape_rule(self, x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> ShapedArray:
        check_starts(self.name, x, starts)
        fits = len(slice_sizes) == x.ndim and all(0 <= s <= n for s, n in zip(slice_sizes, x.shape, strict=True))
        if not fits:
            raise ShapeError(
                f"dynamic_slice: slice_sizes {slice_sizes} do not fit {x.str_short()}; give for each dimension a size "
                "not larger than the operand's"
            )
        return x.update(shape=slice_sizes)

    def jvp(self, primals: Values, tangents: Values, *, slice_sizes: Shape) -> Any:
        out = self.bind(*primals, slice_sizes=slice_sizes)
        if is_zero(tangents[0]):
            return out, Zero(tangent_aval(aval_of(out)))
        return out, self.bind(tangents[0], *primals[1:], slice_sizes=slice_sizes)

    def transpose(self, ct: Any, x: Any, *starts: Any, slice_sizes: Shape) -> Values:
        back = self.adjoint.bind(zeros(cotangent_aval(x.aval)), ct, *starts)
        return [back, *(None for _ in starts)]

    def batch(self, axis: Axis, operands: Values, dims: Sequence[Any], *, slice_sizes: Shape) -> Any:
        (x, *starts), (dim, *start_dims) = operands, dims
        if all(d is None for d in start_dims):
            starts = inserted(starts, dim, literal(0, aval_of(starts[0]).dtype if starts else np.int32))
            return self.bind(x, *starts, slice_sizes=inserted(slice_sizes, dim, axis.size)), dim
        indices, index_dim = start_vectors(axis, starts, start_dims)
        numbers = GatherDimensionNumbers(
            offset_dims=tuple(range(len(starts))),
            collapsed_slice_dims=(),
            start_index_map=tuple(range(len(starts))),
        )
        return gather_p.batch(
            axis,
            (x, indices),
            (dim, index_dim),
            dimension_numbers=numbers,
            slice_sizes=slice_sizes,
            mode=GatherScatterMode.CLIP,
            fill_value=None,
            indices_are_sorted=True,
            unique_indices=True,
        )

    def lower(self, ctx: Any, x: Any, *starts: Any, slice_sizes: Shape) -> Any:
        return moved(ctx, "stablehlo.dynamic_slice", [x], *starts, out=ctx.aval_out, slice_sizes=slice_sizes)

    def cost(self, x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> Cost:
        return Cost(0, 2 * x.update(shape=slice_sizes).nbytes)


dynamic_slice_p: Final = DynamicSlice()


# --- helpers, for dynamic_update_slice too


def start_scalars(operand: Any, starts: Any, allow_negative: bool | Sequence[bool], name: str) -> list[Any]:
    """The start indices as scalars of one integer dtype, counted from the front."""
    shape = aval_of(operand).shape
    scalars = _unstacked(starts)
    if len(scalars) != len(shape):
        raise ShapeError(
            f"{name}: start_indices has {len(scalars)} indices, but the operand {aval_of(operand).str_short()} has "
            f"{len(shape)} dimensions; give one for each"
        )
    _check_integers(name, scalars)
    allowed = [allow_negative] * len(shape) if isinstance(allow_negative, bool) else allow_negative
    dtype = _reaching(_common_dtype(scalars), largest(shape))
    return [_start(i, n, dtype, ok) for i, n, ok in zip(scalars, shape, allowed, strict=True)]


def starts_in_dim(index: Any, axis: int, ndim: int) -> list[Any]:
    """Start indices of zero but for one axis."""
    return [index if d == axis else 0 for d in range(ndim)]


def check_starts(name: str, x: ShapedArray, starts: Avals) -> None:
    """Raise unless there is one integer scalar for each dimension, all of one dtype."""
    fits = len(starts) == x.ndim and all(s.shape == () for s in starts)
    if not fits or len({s.dtype for s in starts}) > 1:
        found = ", ".join(s.str_short() for s in starts)
        raise ShapeError(
            f"{name}: {x.str_short()} needs {x.ndim} scalar start indices of one integer dtype, got {found or 'none'}"
        )


def start_vectors(axis: Axis, starts: Values, dims: Dims) -> tuple[Any, int]:
    """Batched scalar start indices as one array, a vector of them for each example."""
    columns = [_column(i, d, axis.size) for i, d in zip(starts, dims, strict=True)]
    return concatenate(columns, 1), 0


def _column(index: Any, dim: int | None, size: int) -> Any:
    if dim is None:
        return broadcast(index, (size, 1))
    return reshape(moveaxis(index, dim, 0), (size, 1))


def _check_integers(name: str, scalars: Sequence[Any]) -> None:
    dtypes = [aval_of(i).dtype for i in scalars if type(i) not in (int, SymbolicSize)]
    wrong = next((d for d in dtypes if kind_of(d) not in INTEGER), None)
    if wrong is not None:
        raise TypeError(f"{name}: start indices must be integers, got {wrong}; convert with .astype(int)")


def _unstacked(starts: Any) -> list[Any]:
    if isinstance(starts, list | tuple):
        return list(starts)
    aval = aval_of(starts)
    if aval.ndim != 1:
        raise ShapeError(f"start_indices must be a vector or a sequence of scalars, got {aval.str_short()}")
    return [index_in_dim(starts, i, keepdims=False) for i in range(aval.shape[0])]


def _common_dtype(scalars: Sequence[Any]) -> np.dtype:
    """int32, or int64 where one of the indices is; unsigned only if all are of one such dtype."""
    dtypes = {aval_of(i).dtype for i in scalars if not _is_static(i)}
    if len(dtypes) == 1:
        return dtypes.pop()
    wide = enable_x64.value and any(d.itemsize > 4 or d == np.uint32 for d in dtypes)
    return np.dtype(np.int64 if wide else np.int32)


def _start(index: Any, size: int, dtype: np.dtype, allow_negative: bool) -> Any:
    if _is_static(index):
        at = wrapped(as_size(index), size) if allow_negative else index
        if at > iinfo(dtype).max:
            check_counts(dtype, size)
        return literal(at, dtype)
    index = convert(index, dtype)
    return from_front(index, size) if allow_negative else index


def from_front(index: Any, size: int) -> Any:
    """Integer indices with the negative ones counted from the end of an axis of this size."""
    index = reaching(index, size)
    dtype = aval_of(index).dtype
    if kind_of(dtype) in UNSIGNED:
        return index
    index = convert(index, dtype)  # no longer weakly typed
    return where(lt(index, literal(0, dtype)), add(index, literal(size, dtype)), index)


def reaching(index: Any, size: int) -> Any:
    """Integer indices in a dtype that holds the size of the axis, so that they can be compared with it."""
    own = aval_of(index).dtype
    dtype = _reaching(own, size)
    check_counts(dtype, size)
    return index if dtype == own else convert(index, dtype)


def check_counts(dtype: np.dtype, size: int) -> None:
    """Raise OverflowError unless indices of this dtype reach the end of an axis."""
    if size > iinfo(dtype).max:
        raise OverflowError(
            f"an axis of {size} elements cannot be indexed with {dtype}, which ends at {iinfo(dtype).max}; turn on "
            "enable_x64 and convert the index with .astype('int64')"
        )


def _reaching(dtype: np.dtype, size: int) -> np.dtype:
    """An index dtype that reaches the end of an axis: a wider one than `dtype`, if there is one."""
    if size <= iinfo(dtype).max:
        return dtype
    return np.dtype(np.int64 if enable_x64.value and size > iinfo(np.int32).max else np.int32)


def _is_static(index: Any) -> bool:
    return isinstance(index, int | np.integer | SymbolicSize)
