"""Places of elements in other words: from numbers in a row to indices and back, and indices of parts of an array."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import ConcretizationTypeError, TracerArrayConversionError, aval_of, check_user_dtype, issubdtype
from xlamini.numpy.arguments import as_operand, as_shape
from xlamini.numpy.arithmetic import clip, divmod, remainder
from xlamini.numpy.creation import ones
from xlamini.numpy.matrices import diag_indices
from xlamini.numpy.searching import nonzero
from xlamini.primitives import convert, in_dtype, promoted
from xlamini.primitives.indexing.dynamic_slice import reaching
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike, ShapeLike

_MODES = ("raise", "clip", "wrap")


@composite(static=("shape",))
def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """The index tuples of elements numbered in row-major order, for an array of this shape.

    Numbers out of bounds give the first or the last element; negative ones count from the end.

    >>> unravel_index(5, (3, 4))
    (Array(1, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))
    """
    numbers, sizes = as_operand("unravel_index", indices), as_shape("unravel_index", shape)
    total = math.prod(sizes)
    if issubdtype(aval_of(numbers).dtype, np.integer):
        numbers = reaching(numbers, total)
    lowest = 0 if issubdtype(aval_of(numbers).dtype, np.unsignedinteger) else -total
    rest = clip(numbers, lowest, max(total - 1, lowest)) if total else numbers
    rest = remainder(rest, total) if total else rest
    found: list[Any] = []
    for n in reversed(sizes):
        rest, index = divmod(rest, n) if total else (rest, clip(rest, 0, 0))
        found.append(index)
    return tuple(reversed(found))


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The numbers of elements, in row-major order or in column-major order ("F"), from their index along each axis.

    `mode` sets the meaning of out-of-bounds indices, for all axes or for each: an error, "clip" to the nearest, "wrap"
    modulo the size. "raise" is not possible while tracing: `mode` must be one of the others.

    >>> ravel_multi_index((jnp.array([1, 2]), jnp.array([0, 3])), (3, 4))
    Array([ 4, 11], dtype=int32)
    """
    sizes = as_shape("ravel_multi_index", dims)
    indices = [_index(x) for x in multi_index]
    if len(indices) != len(sizes):
        raise ValueError(f"ravel_multi_index: {len(indices)} indices for {len(sizes)} axes of {sizes}; give one each")
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order={order!r}; it takes 'C' or 'F'")
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    placed = [_in_bounds(x, n, m) for x, n, m in zip(indices, sizes, modes, strict=True)]
    wanted = None if dtype is None else check_user_dtype(dtype, "ravel_multi_index")
    return _numbered(placed, sizes, order, wanted)


def _index(x: Any) -> Any:
    index = as_operand("ravel_multi_index", x)
    if not issubdtype(aval_of(index).dtype, np.integer):
        raise ValueError(f"ravel_multi_index: indices must be integers, got {aval_of(index).dtype}; use .astype(int)")
    return index


def _in_bounds(x: Any, size: int, mode: str) -> Any:
    if mode not in _MODES:
        raise ValueError(f"ravel_multi_index: mode={mode!r}; it takes 'raise', 'clip' or 'wrap'")
    if mode == "clip":
        return clip(reaching(x, size), 0, size - 1)
    if mode == "wrap":
        return remainder(reaching(x, size), size)
    values = _concrete(x)
    if ((values < 0) | (values >= size)).any():
        raise ValueError(f"ravel_multi_index: an index is out of bounds of an axis of length {size}; see `mode`")
    return x


def _concrete(x: Any) -> np.ndarray:
    try:
        return np.asarray(x)
    except TracerArrayConversionError as error:
        raise ConcretizationTypeError(
            "ravel_multi_index: mode 'raise' needs values, but they are not known while tracing; give 'clip' or "
            f"'wrap'. {error}"
        ) from None


@composite(static=("sizes", "order", "dtype"))
def _numbered(indices: list[Any], sizes: tuple[int, ...], order: str, dtype: Any) -> Any:
    total = in_dtype(as_operand("ravel_multi_index", 0), np.dtype("int32"))
    pairs = list(zip(indices, sizes, strict=True))
    for x, n in pairs if order == "C" else reversed(pairs):
        weighted, index = promoted("ravel_multi_index", total * n, x)
        total = weighted + index
    return total if dtype is None else convert(total, dtype)


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the diagonal of an array whose axes all have one length, two or more of them (else ValueError).

    >>> diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = aval_of(as_operand("diag_indices_from", arr)).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: two or more axes of one length are needed, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """The rows and columns where `mask_func(ones((n, n)), k)` is not 0, as `triu` and `tril` are masks.

    >>> mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns
