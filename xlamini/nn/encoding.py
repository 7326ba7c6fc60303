"""Data made ready for a network: one_hot, standardize."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import aval_of, canonicalize_dtype, check_user_dtype, issubdtype
from xlamini.core.sizes.expression import SymbolicSize, is_less
from xlamini.numpy.arguments import as_axis
from xlamini.numpy.construction import asarray
from xlamini.numpy.statistics import mean as mean_of
from xlamini.primitives import broadcast_in_dim, broadcasted_iota, convert, equal, in_dtype, promoted_inexact
from xlamini.primitives.base.out_sharding import in_sharding
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.elementwise.power import rsqrt
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, AxisLike, DTypeLike


def one_hot(
    x: Any, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1, out_sharding: Any = None
) -> Array:
    """One-hot vectors: `num_classes` zeros with a one at the index `x`; all zeros for an index out of range.

    The vectors lie along a new axis, the last by default. The dtype is that of floats, if none is given.
    `out_sharding` says how the result is split over a mesh.

    >>> one_hot(xlamini.numpy.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    wanted = canonicalize_dtype(float) if dtype is None else check_user_dtype(dtype, "one_hot")
    numbers = asarray(x)
    new = as_axis("one_hot", axis, numbers.ndim + 1)
    classes = num_classes if type(num_classes) is SymbolicSize else int(num_classes)
    if out_sharding is not None:
        return in_sharding(out_sharding, _one_hot, numbers, classes, wanted, new)
    return _one_hot(numbers, classes, wanted, new)


@composite(static=("classes", "dtype", "axis"))
def _one_hot(numbers: Any, classes: int, dtype: Any, axis: int) -> Any:
    shape = (*numbers.shape[:axis], classes, *numbers.shape[axis:])
    counted = numbers.dtype if issubdtype(numbers.dtype, np.integer) else np.dtype("int32")
    spread = broadcast_in_dim(numbers, shape, [d for d in range(len(shape)) if d != axis])
    return convert(equal(spread, broadcasted_iota(_wide(counted, classes), shape, axis)), dtype)


def _wide(dtype: Any, classes: int) -> Any:
    """A dtype that can hold the number of each class."""
    return dtype if is_less(classes - 1, np.iinfo(dtype).max) else np.dtype("int32")


@composite(static=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: AxisLike = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-05,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """`x` moved and scaled to mean 0 and variance 1 along an axis; `epsilon` is added to the variance.

    A given mean or variance is used in place of the computed one. The variance is the mean of squared differences to
    the mean, with either `algorithm`, "fast" or "stable": a difference of means, JAX's "fast", loses all digits where
    the mean is large.

    >>> standardize(xlamini.numpy.array([1.0, 3.0])).round(3)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm={algorithm!r}; it takes 'fast' or 'stable'")
    (array,) = promoted_inexact("standardize", x)
    wide = convert(array, accumulator(aval_of(array).dtype))
    if mean is None:
        distance, dtype = wide - mean_of(wide, axis, keepdims=True, where=where), aval_of(array).dtype
    else:
        distance, dtype = wide - mean, aval_of(array - mean).dtype
    spread = mean_of(distance * distance, axis, keepdims=True, where=where) if variance is None else variance
    return convert(distance * rsqrt(in_dtype(spread + epsilon, aval_of(wide).dtype)), dtype)
