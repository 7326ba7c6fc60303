"""Elements repeated: broadcasting, tiling."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapeError, Tracer, canonicalize_dtype
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.sizes.shapes import broadcast_shapes as common_shape
from xlamini.numpy.arguments import as_axis, as_operand, as_shape, as_whole
from xlamini.numpy.creation import zeros
from xlamini.numpy.shapes import ravel
from xlamini.primitives import broadcast_in_dim, check_operands, convert, in_sharding, reshape
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, ShapeLike


def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: Any = None) -> Array:
    """`array` repeated into `shape`, by NumPy's rules; ShapeError where it does not fit.

    >>> broadcast_to(xlamini.numpy.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, broadcast_to, array, shape)
    x = as_operand("broadcast_to", array)
    sizes = as_shape("broadcast_to", shape)
    new = len(sizes) - x.ndim
    if new < 0 or any(n not in (1, m) for n, m in zip(x.shape, sizes[new:], strict=True)):
        raise ShapeError(
            f"broadcast_to: shape {x.shape} does not broadcast to {sizes}; sizes must be 1 or equal, counted "
            "from the last axis"
        )
    return broadcast_in_dim(x, sizes, range(new, len(sizes)))


def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to; ShapeError where there is none.

    >>> broadcast_shapes((2, 1), 3)
    (2, 3)
    """
    given = [as_shape("broadcast_shapes", s) for s in shapes]
    try:
        return common_shape(*given)
    except ValueError:
        listed = ", ".join(map(str, given))
        raise ShapeError(
            f"broadcast_shapes: Incompatible shapes for broadcasting: {listed}; sizes must be equal or 1"
        ) from None


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Arrays repeated into the one shape that they broadcast to.

    >>> jnp.broadcast_arrays(jnp.arange(2), 5)
    [Array([0, 1], dtype=int32), Array([5, 5], dtype=int32, weak_type=True)]
    """
    operands = [as_operand("broadcast_arrays", x) for x in args]
    shape = broadcast_shapes(*(x.shape for x in operands))
    return [broadcast_to(x, shape) for x in operands]


@composite(static=("reps",))
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """`A` laid side by side so many times along each axis; one number counts for the last.

    >>> tile(xlamini.numpy.arange(2), (2, 2))
    Array([[0, 1, 0, 1],
           [0, 1, 0, 1]], dtype=int32)
    """
    x = as_operand("tile", A)
    several = isinstance(reps, Sequence) or type(reps) is SymbolicSize or np.ndim(reps)
    counts = as_shape("tile", reps if several else as_whole("tile", "reps", reps))
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + x.shape
    pairs = [n for pair in zip(counts, sizes, strict=True) for n in pair]
    laid = broadcast_in_dim(reshape(x, sizes), pairs, range(1, 2 * rank, 2))
    return reshape(laid, [c * n for c, n in zip(counts, sizes, strict=True)])


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Repeat each element of `a` along an axis; of `a` flattened, if no axis is given.

    `repeats` is one number, or an array of one for each element. If its values are traced, `total_repeat_length` is the
    length of the result: it is truncated, or padded with its last element.

    >>> repeat(xlamini.numpy.arange(3), xlamini.numpy.array([1, 0, 2]))
    Array([0, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, repeat, a, repeats, axis, total_repeat_length=total_repeat_length)
    check_operands("repeat", (repeats,))
    x = ravel(a) if axis is None else as_operand("repeat", a)
    along = as_axis("repeat", 0 if axis is None else axis, x.ndim)
    if type(repeats) is Tracer or total_repeat_length is not None:
        return _repeat_traced(x, repeats, along, total_repeat_length)
    if type(repeats) is SymbolicSize:
        return _repeat_evenly(x, repeats, along)
    counts: Any = np.asarray(repeats)
    if counts.size == 1:
        return _repeat_evenly(x, as_shape("repeat", operator.index(counts.item()))[0], along)
    _check_counts(counts.shape, x.shape, along)
    return _taken(x, np.repeat(np.arange(x.shape[along]), counts), along)


@composite(static=("count", "axis"))
def _repeat_evenly(x: Any, count: int, axis: int) -> Any:
    shape = x.shape
    pairs = (*shape[: axis + 1], count, *shape[axis + 1 :])
    kept = [d for d in range(len(pairs)) if d != axis + 1]
    return reshape(broadcast_in_dim(x, pairs, kept), (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


@composite(static=("axis", "total"))
def _repeat_traced(x: Any, repeats: Any, axis: int, total: int | None) -> Any:
    if total is None:
        raise ValueError(
            "repeat: the values of `repeats` are not known while tracing, so the length of the result is not either; "
            "give total_repeat_length"
        )
    length = x.shape[axis]
    counts = broadcast_to(as_operand("repeat", repeats), (length,))
    _check_counts(counts.shape, x.shape, axis)
    # Where an element's run begins, the index of what is repeated goes up by one.
    starts = cumsum(convert(counts, canonicalize_dtype(int)))[:-1]
    steps = zeros(total, int).at[starts].add(1, mode="drop")
    return _taken(x, cumsum(steps), axis)


def _check_counts(counts: tuple[int, ...], shape: tuple[int, ...], axis: int) -> None:
    if counts != (shape[axis],):
        raise ShapeError(f"repeat: repeats of shape {counts} has not one number for each of the {shape[axis]} elements")


def _taken(x: Any, indices: Any, axis: int) -> Any:
    return x[(slice(None),) * axis + (indices,)]
