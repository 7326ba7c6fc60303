"""The parameters of gather and scatter: dimension numbers, and modes for indices out of bounds.

Both speak of an operand, of an array of index vectors, and of windows: gather reads a window of the operand at each
index vector, scatter writes one there. A dimension of the operand is either one of the window's, or collapsed (of size
1 in the window and left out), or a batching dimension that runs along with one of the indices.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ExtendedDType, Shape, ShapedArray, ShapeError, aval_of, iinfo, is_differentiable
from xlamini.core.sizes.expression import min_size
from xlamini.primitives.base.dtype_kinds import INTEGER, UNSIGNED, kind_of
from xlamini.primitives.base.tangent_ops import full
from xlamini.primitives.elementwise.arithmetic import max, min
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import broadcast_in_dim


class GatherDimensionNumbers(NamedTuple):
    """The dimension numbers that relate the operand, indices and output of a gather.

    `offset_dims` are the output's dimensions that a window fills, `collapsed_slice_dims` the operand's that it lacks,
    and component i of an index vector is a place in dimension `start_index_map[i]` of the operand. Batching dimensions
    run along, pair by pair.

    >>> rows = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.eye(3), jnp.array([[2], [0]]), rows, slice_sizes=(1, 3))
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """

    offset_dims: Shape
    collapsed_slice_dims: Shape
    start_index_map: Shape
    operand_batching_dims: Shape = ()
    start_indices_batching_dims: Shape = ()


class ScatterDimensionNumbers(NamedTuple):
    """The dimension numbers that relate the operand, indices and updates of a scatter.

    `update_window_dims` are the updates' dimensions that hold a window, `inserted_window_dims` the operand's that it
    lacks, and component i of an index vector is a place in dimension `scatter_dims_to_operand_dims[i]` of the operand.
    Batching dimensions run along, pair by pair.

    >>> rows = ScatterDimensionNumbers(
    ...     update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    ... )
    >>> lax.scatter(jnp.zeros((3, 2)), jnp.array([[2]]), jnp.ones((1, 2)), rows)
    Array([[0., 0.],
           [0., 0.],
           [1., 1.]], dtype=float32)
    """

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()


def stablehlo_attribute(operation: str, numbers: Mapping[str, Shape], index_vector_dim: int) -> str:
    text = ", ".join(f"{name} = {list(dims)}" for name, dims in numbers.items())
    return f"#stablehlo.{operation}<{text}, index_vector_dim = {index_vector_dim}>"


class GatherScatterMode(Enum):
    """The meaning of an out-of-bounds index.

    CLIP moves its window inside. FILL_OR_DROP makes gather return a fill value, and scatter ignore the update.
    PROMISE_IN_BOUNDS is the caller's word that there is none, and the fastest; where the word is broken gather clips,
    and scatter ignores the update.

    >>> x = jnp.arange(3.0)
    >>> x.at[5].get(mode=GatherScatterMode.CLIP), x.at[5].get(mode=GatherScatterMode.FILL_OR_DROP)
    (Array(2., dtype=float32), Array(nan, dtype=float32))
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @classmethod
    def from_any(cls, mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of this name; None means FILL_OR_DROP."""
        if isinstance(mode, cls):
            return mode
        name = "fill" if mode in (None, "drop") else mode
        try:
            return cls(name)
        except ValueError:
            raise ValueError(
                f"unknown mode {mode!r} for indices out of bounds; use 'clip', 'fill', 'drop' or 'promise_in_bounds'"
            ) from None

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"

    __repr__ = __str__


def as_gather(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The gather that reads the windows that a scatter writes."""
    return GatherDimensionNumbers(*numbers)


def as_scatter(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The scatter that writes the windows that a gather reads."""
    return ScatterDimensionNumbers(*numbers)


# --- a batch dimension in front


def shifted(dims: Sequence[int]) -> Shape:
    return tuple(d + 1 for d in dims)


def with_operand_batch(numbers: Any) -> Any:
    """Dimension numbers for an operand with a new leading dimension, which becomes one of the window's."""
    window, collapsed, places, operand_batch, indices_batch = numbers
    moved = ((0, *shifted(window)), shifted(collapsed), shifted(places), shifted(operand_batch), indices_batch)
    return type(numbers)(*moved)


def with_indices_batch(numbers: Any) -> Any:
    """Dimension numbers for indices, and so output, with a new leading dimension."""
    window, collapsed, places, operand_batch, indices_batch = numbers
    return type(numbers)(shifted(window), collapsed, places, operand_batch, shifted(indices_batch))


def with_common_batch(numbers: Any) -> Any:
    """Dimension numbers for operand and indices with a new leading dimension that they share."""
    window, collapsed, places, operand_batch, indices_batch = numbers
    batch = (0, *shifted(operand_batch)), (0, *shifted(indices_batch))
    return type(numbers)(shifted(window), shifted(collapsed), shifted(places), *batch)


# --- windows and bounds


def window_shape(operand: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers) -> Shape:
    """The window that a scatter writes, as a box in the operand."""
    sizes = iter([updates.shape[d] for d in numbers.update_window_dims])
    absent = dict.fromkeys(numbers.inserted_window_dims, 1)
    absent |= {d: min_size(operand.shape[d], 1) for d in numbers.operand_batching_dims}
    return tuple(absent[d] if d in absent else next(sizes) for d in range(operand.ndim))


def clamped(operand: ShapedArray, indices: Any, places: Sequence[int], window: Shape) -> Any:
    """Index vectors moved so far that each window lies in the operand."""
    aval = aval_of(indices)
    most = iinfo(aval.dtype).max  # an index of a narrow dtype does not reach the end of a long axis
    ends = [min_size(operand.shape[d] - window[d], most) for d in places]
    columns = [full(aval.update(shape=(1,), weak_type=False), end) for end in ends]
    if not columns:
        return indices
    highest = broadcast_in_dim(concatenate(columns, 0), aval.shape, (aval.ndim - 1,))
    lowest = full(aval.strip_weak_type(), 0)
    return max(min(indices, highest), lowest)


def default_fill(dtype: np.dtype) -> Any:
    """The fill value for out-of-bounds indices: NaN, the lowest integer, the highest unsigned one, or True."""
    if isinstance(dtype, ExtendedDType):
        return default_fill(dtype.physical_dtype)
    if is_differentiable(ShapedArray((), dtype)):
        return np.asarray(np.nan, dtype)[()]
    if dtype == np.bool_:
        return True
    limits = iinfo(dtype)
    return limits.max if kind_of(dtype) in UNSIGNED else limits.min


# --- checks


def check_numbers(name: str, operand: ShapedArray, indices: ShapedArray, numbers: Any) -> None:
    """Raise unless the dimension numbers, of a gather or of a scatter, name dimensions that there are, once."""
    window, collapsed, places, operand_batch, _ = numbers
    if kind_of(indices.dtype) not in INTEGER:
        raise TypeError(f"{name}: indices must be integers, got {indices.str_short()}; convert with .astype(int)")
    if indices.ndim == 0 or indices.shape[-1] != len(places):
        raise ShapeError(
            f"{name}: index vectors lie along the last dimension of {indices.str_short()}, which must have size "
            f"{len(places)}, one component for each of {type(numbers)._fields[2]}={places}"
        )
    if len(window) + len(collapsed) + len(operand_batch) != operand.ndim:
        raise ShapeError(
            f"{name}: {numbers} accounts for {len(window) + len(collapsed) + len(operand_batch)} dimensions of the "
            f"operand {operand.str_short()}, which has {operand.ndim}"
        )
    _check_dims(name, numbers, operand, indices)


def _check_dims(name: str, numbers: Any, operand: ShapedArray, indices: ShapedArray) -> None:
    window, collapsed, places, operand_batch, indices_batch = numbers
    rank_out = indices.ndim - 1 + len(window)
    for dims, rank in ((window, rank_out), ((*collapsed, *operand_batch), operand.ndim), (places, operand.ndim)):
        if len(set(dims)) != len(dims) or any(not 0 <= d < rank for d in dims):
            raise ShapeError(f"{name}: {numbers} names a dimension twice, or one that is not there")
    if list(window) != sorted(window):
        raise ShapeError(f"{name}: {type(numbers)._fields[0]} must be in ascending order, got {window}")
    sizes = [operand.shape[d] for d in operand_batch]
    if sizes != [indices.shape[d] for d in indices_batch]:
        raise ShapeError(
            f"{name}: batching dimensions differ: {operand_batch} of {operand.str_short()}, {indices_batch} of the "
            f"indices {indices.str_short()}"
        )
