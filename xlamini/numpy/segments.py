"""Segment reductions: elements are reduced in groups that integer segment ids define."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ConcretizationTypeError, ShapeError, TracerArrayConversionError, aval_of, issubdtype
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.wrapping import named_as
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.reductions import max, min, prod, sum
from xlamini.primitives import broadcast_in_dim, checked_sharding, convert, highest, in_dtype, in_sharding, lowest
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.indexing.gather_numbers import GatherScatterMode
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


class SegmentReduction(NamedTuple):
    """A segment reduction: the update of `x.at`, the value of an empty segment, and the reduction of buckets."""

    name: str
    update: str
    empty: Callable[[np.dtype], Any]
    over: Callable[..., Any]


def _reduction(update: str, empty: Callable[[np.dtype], Any], over: Callable[..., Any]):
    """Decorator of a declaration: the segment reduction, with the parameters that all of them have."""

    def declare(declaration: Callable[[], None]):
        how = SegmentReduction(declaration.__name__, update, empty, over)

        @named_as(declaration)
        def reduction(
            data: ArrayLike,
            segment_ids: ArrayLike,
            num_segments: int | None = None,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            bucket_size: int | None = None,
            mode: str | GatherScatterMode | None = None,
            out_sharding: Any = None,
        ) -> Array:
            options = bool(indices_are_sorted), bool(unique_indices), bucket_size, mode
            return _segmented(how, data, segment_ids, num_segments, options, out_sharding)

        return reduction

    return declare


@_reduction("add", lambda dtype: 0, sum)
def segment_sum() -> None:
    """The sum of each segment: the slices of `data` along its first axis whose segment id is that index.

    `segment_ids` are integers; those out of bounds, negative ones among them, are left out, or as `mode` says. One
    number as `data` counts for every id. `num_segments` is the length of the result: one more than the largest id, if
    it is not given, which must be concrete then. `indices_are_sorted` and `unique_indices` are promises. With
    `bucket_size` that many slices are added at a time, and then the sums, which loses less in long ones.
    `out_sharding`, a PartitionSpec or NamedSharding, says how the result is split over a mesh.

    >>> segment_sum(jnp.array([1.0, 2.0, 4.0]), jnp.array([0, 2, 0]))
    Array([5., 0., 2.], dtype=float32)
    """


@_reduction("multiply", lambda dtype: 1, prod)
def segment_prod() -> None:
    """The product of each segment of `data`, by segment id; 1 for an empty one. See `segment_sum`.

    >>> segment_prod(jnp.array([3, 2, 4]), jnp.array([0, 2, 0]))
    Array([12,  1,  2], dtype=int32)
    """


@_reduction("max", lowest, max)
def segment_max() -> None:
    """The maximum of each segment of `data`; for an empty one the lowest value (minus infinity). See `segment_sum`.

    >>> segment_max(jnp.array([3.0, 2.0, 4.0]), jnp.array([0, 2, 0]))
    Array([  4., -inf,   2.], dtype=float32)
    """


@_reduction("min", highest, min)
def segment_min() -> None:
    """The minimum of each segment of `data`; for an empty one the highest value (infinity). See `segment_sum`.

    >>> segment_min(jnp.array([3.0, 2.0, 4.0]), jnp.array([0, 2, 0]))
    Array([ 3., inf,  2.], dtype=float32)
    """


def _segmented(
    how: SegmentReduction,
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    options: tuple[Any, ...],
    out_sharding: Any,
) -> Any:
    name = how.name
    x, ids = as_operand(name, data), as_operand(name, segment_ids)
    if not aval_of(x).ndim:
        x = broadcast_in_dim(x, aval_of(ids).shape, ())
    _check(name, aval_of(x), aval_of(ids))
    count = _largest(name, ids) + 1 if num_segments is None else num_segments
    if count < 0:
        raise ValueError(f"{name}: num_segments must be 0 or more, got {count}")
    if not aval_of(x).ndim:
        x, ids = broadcast_in_dim(x, (1,), ()), broadcast_in_dim(ids, (1,), ())
    run = functools.partial(_run, how, x, ids, count if type(count) is SymbolicSize else int(count), options)
    return run() if out_sharding is None else run(checked_sharding(name, out_sharding))


def _check(name: str, data: Any, ids: Any) -> None:
    if not issubdtype(ids.dtype, np.integer):
        raise TypeError(f"{name}: segment_ids must be integers, got {ids.dtype}; convert them with .astype(int)")
    if issubdtype(data.dtype, np.bool_) and name in ("segment_sum", "segment_prod"):
        raise TypeError(f"{name}: data must be numbers, got bool; convert it with .astype(int)")
    if ids.ndim > 1 or ids.shape != data.shape[: ids.ndim] or (data.ndim and not ids.ndim):
        raise ShapeError(
            f"{name}: segment_ids of shape {ids.shape} do not give one integer for each slice of data of shape "
            f"{data.shape} along its first axis"
        )


def _largest(name: str, ids: Any) -> int:
    try:
        return int(np.max(np.asarray(ids)))
    except TracerArrayConversionError as error:
        raise ConcretizationTypeError(
            f"{name}: the length of the result depends on segment_ids, which are not known while tracing; give "
            f"num_segments. {error}"
        ) from None
    except ValueError:
        raise ValueError(f"{name}: there are no segment_ids to count; give num_segments") from None


@composite(static=("how", "count", "options", "there"))
def _run(how: SegmentReduction, x: Any, ids: Any, count: int, options: tuple[Any, ...], there: Any = None) -> Any:
    if there is not None:
        return in_sharding(there, _run, how, x, ids, count, options)
    sorted_ids, unique, bucket_size, mode = options
    mode = GatherScatterMode.FILL_OR_DROP if mode is None else mode
    promises = {"indices_are_sorted": sorted_ids, "unique_indices": unique, "mode": mode}
    shape, aval = (count, *aval_of(x).shape[1:]), aval_of(x)
    wide = accumulator(aval.dtype) if how.over in (sum, prod) else aval.dtype
    x = convert(x, wide)
    if bucket_size is None:
        return convert(_scattered(how, x, (ids,), shape, wide, promises), aval.dtype)
    buckets = -(-aval.shape[0] // bucket_size)
    which = np.arange(aval.shape[0]) // bucket_size
    parts = _scattered(how, x, (which, ids), (buckets, *shape), wide, {**promises, "indices_are_sorted": False})
    return in_dtype(how.over(parts, 0), aval.dtype)


def _scattered(how: SegmentReduction, x: Any, index: Any, shape: Any, dtype: Any, promises: Any) -> Any:
    empty = broadcast_in_dim(in_dtype(how.empty(dtype), dtype), shape, ())
    return getattr(empty.at[index], how.update)(x, wrap_negative_indices=False, **promises)
