"""Operands of an elementwise operation in a common shape: scalars, and axes of size 1, are repeated."""
from __future__ import annotations

from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of
from xlamini.primitives.shape.shape import broadcast_in_dim, moveaxis


def common_shape(shapes: set[Shape]) -> Shape | None:
    """The shape of one rank that the others stretch to where their size is 1; None if there is none."""
    if len(shapes) < 2:
        return next(iter(shapes), ())
    if len(set(map(len, shapes))) > 1:
        return None
    sizes = [set(column) - {1} for column in zip(*shapes, strict=True)]
    return None if any(len(known) > 1 for known in sizes) else tuple(next(iter(known), 1) for known in sizes)


def spread(x: Any, aval: ShapedArray) -> Any:
    """A value of the shape of `aval`: itself, or repeated where it is a scalar or an axis has size 1."""
    own = aval_of(x).shape
    return x if own == aval.shape else broadcast_in_dim(x, aval.shape, range(len(own)))


def stretched(x: Any, aval: ShapedArray) -> Any:
    """A value broadcast to the shape of `aval`; a scalar is returned unchanged."""
    return spread(x, aval) if aval_of(x).shape else x


def stretched_out(ctx: Any, x: Any, aval: ShapedArray) -> Any:
    """A StableHLO value of type `aval`, in the shape of the result."""
    shape = ctx.aval_out.shape
    return x if aval.shape == shape else ctx.broadcast(x, range(aval.ndim), aval.update(shape=shape))


def unbatched_shape(x: Any, dim: int | None) -> tuple[int, ...]:
    shape = aval_of(x).shape
    return shape if dim is None else (*shape[:dim], *shape[dim + 1 :])


def aligned(x: Any, dim: int | None, shape: tuple[int, ...]) -> Any:
    """An operand of the batched operation, with the batch dimension first."""
    inner = unbatched_shape(x, dim)
    if dim is None:
        return x if not inner else broadcast_in_dim(x, shape, range(1, len(shape)))
    x = moveaxis(x, dim, 0)
    return x if inner or len(shape) == 1 else broadcast_in_dim(x, shape, (0,))
