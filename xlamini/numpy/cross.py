"""cross: the vector that is orthogonal to two others."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapeError, aval_of
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.numpy.joining import stack
from xlamini.primitives import moveaxis, promoted_dtypes, zeros
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@composite(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross products of vectors of two or three elements along `axisa` and `axisb`; the other axes broadcast.

    The result has its vectors along `axisc`; of two vectors of two elements it is the third element alone. `axis` sets
    all three axes. ShapeError for vectors of another length.

    >>> cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    first, second = promoted_dtypes(as_operand("cross", a), as_operand("cross", b))
    first, second = (moveaxis(x, as_axis("cross", d, x.ndim), x.ndim - 1) for x, d in ((first, axisa), (second, axisb)))
    sizes = first.shape[-1], second.shape[-1]
    if not {*sizes} <= {2, 3}:
        raise ShapeError(f"cross: vectors of 2 or 3 elements are needed, got {sizes[0]} and {sizes[1]}")
    x, y = ([v[..., i] for i in range(v.shape[-1])] for v in (first, second))
    third = x[0] * y[1] - x[1] * y[0]
    if sizes == (2, 2):
        return third
    for parts in (x, y):
        parts += [zeros(aval_of(parts[0]))] * (3 - len(parts))
    # Joined along the first axis and moved: XLA writes short rows element by element.
    out: Any = stack([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], third])
    return moveaxis(out, 0, as_axis("cross", axisc, out.ndim))
