"""index_take: elements or slices picked by index arrays along some axes."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapeError, aval_of, literal
from xlamini.primitives import add, lt, where
from xlamini.primitives.elementwise.arithmetic import rem
from xlamini.primitives.indexing.dynamic_slice import reaching
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.primitives.shape.stack import stack, unstack
from xlamini.runtime import Array
from xlamini.staging import composite


def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Array:
    """The slices of `src` at one index along each of `axes`, stacked along a new first axis.

    `idxs` has a vector of indices for each axis; they wrap around. Axes are in ascending order. Raises ShapeError for
    vectors of several lengths, or not one for each axis.

    >>> index_take(xlamini.numpy.arange(6).reshape(2, 3), xlamini.numpy.array([[0, 1], [2, -1]]), (0, 1))
    Array([2, 5], dtype=int32)
    """
    vectors = list(idxs) if isinstance(idxs, tuple | list) else unstack(idxs)
    shapes, along = [aval_of(v).shape for v in vectors], tuple(map(operator.index, axes))
    if not along or len(vectors) != len(along) or len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise ShapeError(f"index_take: one vector of indices is needed for each of axes {along}, got shapes {shapes}")
    rank = aval_of(src).ndim
    if sorted(set(along)) != list(along) or not 0 <= along[0] <= along[-1] < rank:
        raise ShapeError(f"index_take: axes {along} of an array of rank {rank} must be there, and in ascending order")
    return _taken(src, vectors, axes=along)


@composite(static=("axes",))
def _taken(src: Any, vectors: Sequence[Any], *, axes: tuple[int, ...]) -> Any:
    shape = aval_of(src).shape
    indices = stack([_wrapped(v, shape[a]) for v, a in zip(vectors, axes, strict=True)], 1)
    rest = len(shape) - len(axes)
    numbers = GatherDimensionNumbers(tuple(range(1, rest + 1)), axes, axes)
    sizes = [1 if d in axes else n for d, n in enumerate(shape)]
    return gather(src, indices, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def _wrapped(index: Any, size: int) -> Any:
    index = reaching(index, size)
    divisor = literal(max(size, 1), aval_of(index).dtype)
    left = rem(index, divisor)
    return where(lt(left, literal(0, divisor.aval.dtype)), add(left, divisor), left)
