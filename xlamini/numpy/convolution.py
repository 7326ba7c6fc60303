"""Convolution and correlation of sequences. They, and those of `scipy.signal`, share `slid`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapeError, aval_of, check_user_dtype, issubdtype
from xlamini.core.sizes.expression import is_less, max_size, min_size
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.dtypes import inexact
from xlamini.primitives import (
    COMPLEX,
    conj,
    expand_dims,
    kind_of,
    promoted_dtypes,
    promoted_inexact_dtypes,
    reshape,
    rev,
)
from xlamini.primitives.windows.convolution import conv_general_dilated
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

MODES = ("full", "same", "valid")


@composite(static=("mode", "precision", "preferred_element_type"))
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two vectors: element k is the sum of `a[j] * v[k - j]`.

    `mode` is "full" (every overlap), "same" (the middle, as long as the longer one) or "valid" (complete overlaps
    only). Integers give floats unless `preferred_element_type` is given. ShapeError for operands that are no vectors or
    are empty, ValueError for another mode.

    >>> convolve(jnp.array([1, 2, 3]), jnp.array([0, 1]))
    Array([0., 1., 2., 3.], dtype=float32)
    """
    x, y = _vectors("convolve", a, v, mode, preferred_element_type)
    if is_less(aval_of(x).size, aval_of(y).size):
        x, y = y, x
    return _between("convolve", x, rev(y, (0,)), mode, precision, preferred_element_type)


@composite(static=("mode", "precision", "preferred_element_type"))
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The correlation of two vectors: element k is the sum of `a[j + k] * conj(v[j])`.

    Arguments and errors are those of `convolve`, but `mode` is "valid" by default.

    >>> correlate(jnp.array([1, 2, 3]), jnp.array([0, 1]))
    Array([2., 3.], dtype=float32)
    """
    x, y = _vectors("correlate", a, v, mode, preferred_element_type)
    y = conj(y) if kind_of(aval_of(y).dtype) is COMPLEX else y
    if _is_shorter(aval_of(x).size, aval_of(y).size, mode):
        return rev(_between("correlate", y, x, mode, precision, preferred_element_type), (0,))
    return _between("correlate", x, y, mode, precision, preferred_element_type)


def _is_shorter(n: int, k: int, mode: str) -> bool:
    """Whether the operands are exchanged; where that is unknown it matters for the middle alone."""
    return not n >= k if mode == "same" else is_less(n, k)


# --- helpers, also of scipy.signal


def check_mode(name: str, mode: Any) -> None:
    """ValueError for a mode that is none."""
    if mode not in MODES:
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")


def slid(
    x: Any, kernel: Any, starts: Sequence[int], sizes: Sequence[int], precision: Any = None, dtype: Any = None
) -> Any:
    """Sums of products at `sizes` places of the kernel, the first with `starts` fewer than all but one before x."""
    shape, window = aval_of(x).shape, aval_of(kernel).shape
    around = [
        (k - 1 - start, size - n + start) for n, k, start, size in zip(shape, window, starts, sizes, strict=True)
    ]
    out = conv_general_dilated(
        expand_dims(x, (0, 1)),
        expand_dims(kernel, (0, 1)),
        (1,) * len(shape),
        around,
        precision=precision,
        preferred_element_type=dtype,
    )
    return reshape(out, tuple(sizes))


def _vectors(name: str, a: Any, v: Any, mode: str, dtype: Any) -> Sequence[Any]:
    check_mode(name, mode)
    x, y = as_operand(name, a), as_operand(name, v)
    shapes = aval_of(x).shape, aval_of(y).shape
    if len(shapes[0]) != 1 or len(shapes[1]) != 1 or 0 in shapes[0] + shapes[1]:
        raise ShapeError(
            f"{name}: two vectors with one element at least are needed, got shapes {shapes[0]} and {shapes[1]}; "
            f"scipy.signal.{name} takes arrays of more dimensions"
        )
    if dtype is None or issubdtype(check_user_dtype(dtype, name), inexact):
        return promoted_inexact_dtypes(x, y)
    return promoted_dtypes(x, y)


def _between(name: str, x: Any, kernel: Any, mode: str, precision: Any, dtype: Any) -> Any:
    sizes = aval_of(x).size, aval_of(kernel).size
    n, k = max_size(*sizes), min_size(*sizes)
    start, size = {"full": (0, n + k - 1), "same": ((k - 1) // 2, n), "valid": (k - 1, n - k + 1)}[mode]
    return slid(x, kernel, (start,), (size,), precision, dtype)
