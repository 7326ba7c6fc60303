"""Functions of vectors or of axes, applied along axes: apply_along_axis, apply_over_axes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import ShapeError, aval_of
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.primitives import expand_dims
from xlamini.runtime import Array
from xlamini.transforms.vmap import vmap
from xlamini.typing import ArrayLike


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Map `func1d(vector, *args, **kwargs)` over all vectors along an axis, which the axes of its results replace.

    All calls are one vmap. ValueError for an axis that the array does not have.

    >>> apply_along_axis(lambda row: row.max() - row.min(), 1, jnp.array([[1, 5], [2, 3]]))
    Array([4, 1], dtype=int32)
    """
    x = as_operand("apply_along_axis", arr)
    ndim = aval_of(x).ndim
    along = as_axis("apply_along_axis", axis, ndim)

    def fun(vector: Any) -> Any:
        return func1d(vector, *args, **kwargs)

    for _ in range(along + 1, ndim):
        fun = vmap(fun, in_axes=1, out_axes=-1)
    for _ in range(along):
        fun = vmap(fun)
    return fun(x)


def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: Sequence[int]) -> Array:
    """Apply `func(a, axis)` over several axes, one after the other; an axis that it removes is restored with size 1.

    ShapeError if the result has neither as many axes nor one less.

    >>> apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))
    Array([[6.]], dtype=float32)
    """
    x = as_operand("apply_over_axes", a)
    for axis in axes:
        ndim = aval_of(x).ndim
        result = as_operand("apply_over_axes", func(x, axis))
        found = aval_of(result)
        if found.ndim not in (ndim, ndim - 1):
            raise ShapeError(
                f"apply_over_axes: func returned shape {found.shape} for shape {aval_of(x).shape}; it must keep the "
                "number of axes, or take one out"
            )
        x = result if found.ndim == ndim else expand_dims(result, (as_axis("apply_over_axes", axis, ndim),))
    return x
