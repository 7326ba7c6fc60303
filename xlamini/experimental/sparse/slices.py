"""Parts of an array: bcoo_slice, bcoo_dynamic_slice and bcoo_gather."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.duplicates import bcoo_sum_duplicates
from xlamini.experimental.sparse.entries import fitting, masked, padded, within
from xlamini.experimental.sparse.shapes import bcoo_squeeze
from xlamini.lax import GatherDimensionNumbers, GatherScatterMode
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.vmap import vmap

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
@composite(static=("start_indices", "limit_indices", "strides"))
def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """The part of the array from `start_indices` to `limit_indices` in steps of `strides`, all static.

    Entries outside of it become padding. ShapeError for bounds that do not fit.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_slice(eye(3), start_indices=(1, 0), limit_indices=(2, 3)).todense()
    Array([[0., 1., 0.]], dtype=float32)
    """
    steps = (1,) * mat.ndim if strides is None else tuple(strides)
    bounds = list(zip(start_indices, limit_indices, steps, mat.shape, strict=False))
    counts = {len(start_indices), len(limit_indices), len(steps), mat.ndim}
    if len(counts) > 1 or any(not (0 <= a <= b <= n and step > 0) for a, b, step, n in bounds):
        raise ShapeError(
            f"bcoo_slice: start_indices {tuple(start_indices)}, limit_indices {tuple(limit_indices)} and strides "
            f"{steps} do not fit the shape {mat.shape}"
        )

    def cut(buffer: Any, dims: Sequence[int | None]) -> Any:
        parts = [
            slice(None) if d is None or buffer.shape[i] != mat.shape[d] else slice(*bounds[d][:3])
            for i, d in enumerate(dims)
        ]
        return buffer[tuple(parts)]

    shape = tuple(-(-(b - a) // step) for a, b, step, _ in bounds)
    return _window(mat, start_indices, steps, shape, cut)


@takes_sparse
@composite(static=("slice_sizes",))
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """The part of the array of shape `slice_sizes` that starts at `start_indices`, which may be traced.

    A start is moved so that the part is within bounds. Entries outside of it become padding. ShapeError for sizes that
    do not fit.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_dynamic_slice(eye(3), (1, 1), (1, 2)).todense()
    Array([[1., 0.]], dtype=float32)
    """
    sizes = tuple(slice_sizes)
    fits = len(start_indices) == len(sizes) == mat.ndim
    if not fits or any(not 0 <= n <= m for n, m in zip(sizes, mat.shape, strict=True)):
        raise ShapeError(f"bcoo_dynamic_slice: slice_sizes {sizes} do not fit the shape {mat.shape}")
    starts = [jnp.clip(jnp.asarray(s), 0, m - n) for s, n, m in zip(start_indices, sizes, mat.shape, strict=True)]

    def cut(buffer: Any, dims: Sequence[int | None]) -> Any:
        for i, d in enumerate(dims):
            if d is not None and buffer.shape[i] == mat.shape[d]:
                buffer = lax.dynamic_slice_in_dim(buffer, starts[d], sizes[d], i)
        return buffer

    return _window(mat, starts, (1,) * mat.ndim, sizes, cut)


def _window(mat: BCOO, starts: Sequence[Any], steps: Sequence[int], shape: tuple[int, ...], cut: Any) -> BCOO:
    """The part of this shape; `cut(buffer, dims)` cuts a buffer whose dimensions are these of the array, or None."""
    batch, sparse = (*range(mat.n_batch), None), slice(mat.n_batch, mat.n_batch + mat.n_sparse)
    data = cut(mat.data, (*batch, *range(sparse.stop, mat.ndim)))
    indices, sizes = cut(mat.indices, (*batch, None)), shape[sparse]
    dtype = fitting(indices.dtype, (*mat.shape, *steps))
    valid, rows = within(indices, mat.sparse_shape), indices - jnp.array(starts[sparse], dtype)
    if any(step != 1 for step in steps):
        every = jnp.array(steps[sparse], dtype)
        valid, rows = valid & (rows % every == 0).all(-1), rows // every
    valid &= within(rows, sizes)
    part = mat.like(masked(data, valid), padded(rows, sizes, valid), shape, unique_indices=mat.unique_indices)
    places = math.prod(sizes)
    return bcoo_sum_duplicates(part, nse=places) if mat.nse > places and mat.n_sparse else part


@takes_sparse
def bcoo_gather(
    operand: BCOO,
    start_indices: Array,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> BCOO:
    """Parts of the array at several starts, as `lax.gather`; a start is moved so that its part is within bounds.

    The dimensions of `start_indices` but for the last become batch dimensions in front. NotImplementedError for batch
    dimensions elsewhere, and for the mode "fill", whose result is not sparse.

    >>> from xlamini.experimental.sparse import eye
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> bcoo_gather(eye(3), jnp.array([[2], [0]]), numbers, (1, 3)).todense()
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    if not isinstance(dimension_numbers, GatherDimensionNumbers):
        found = type(dimension_numbers).__name__
        raise TypeError(f"bcoo_gather: dimension_numbers must be GatherDimensionNumbers, got {found}")
    start_indices = jnp.asarray(start_indices)
    numbers, rank = dimension_numbers, start_indices.ndim - 1
    kept = operand.ndim - len(numbers.collapsed_slice_dims)
    filled = mode is not None and GatherScatterMode.from_any(mode) is GatherScatterMode.FILL_OR_DROP
    if numbers.operand_batching_dims or filled or tuple(numbers.offset_dims) != tuple(range(rank, rank + kept)):
        raise NotImplementedError(
            "bcoo_gather: the dimensions of start_indices must come first in the result, and the mode must be 'clip' "
            "or 'promise_in_bounds'; index a dense array, from todense(), instead"
        )

    def part(start: Any) -> BCOO:
        starts = [0] * operand.ndim
        for i, d in enumerate(numbers.start_index_map):
            starts[d] = start[i]
        window = bcoo_dynamic_slice(operand, starts, slice_sizes)
        return bcoo_squeeze(window, dimensions=numbers.collapsed_slice_dims)

    for _ in range(rank):
        part = vmap(part)
    return part(start_indices)
