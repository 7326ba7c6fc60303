"""`ds`: a slice by its start and size, of which the start may be traced."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xlamini.core import aval_of, register_pytree_node
from xlamini.core.sizes.expression import as_size
from xlamini.primitives import INTEGER, is_operand, kind_of
from xlamini.typing import ArrayLike


@dataclass(frozen=True)
class Slice:
    """`size` elements from `start` on, every `stride`-th. As a pytree it holds the start, if that is an array.

    >>> Slice(2, 4)
    Slice(start=2, size=4, stride=1)
    """

    start: Any
    size: int
    stride: int = 1

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"ds: size must be 0 or more, got {self.size}")
        if self.stride < 1:
            raise ValueError(f"ds: stride must be 1 or more, got {self.stride}; reverse the result with [::-1]")


register_pytree_node(
    Slice,
    lambda s: ((), s) if type(s.start) is int else ((s.start,), (s.size, s.stride)),
    lambda static, start: static if type(static) is Slice else _unchecked(*start, *static),
)


def _unchecked(start: Any, size: int, stride: int) -> Slice:
    """A Slice of whatever a rewrite puts in the place of the start."""
    return Slice(start, size, stride)


def ds(start: ArrayLike | None, size: int | None = None, stride: int | None = None) -> Slice | slice:
    """An index for `size` elements from `start` on, in steps of `stride`; the start may be traced.

    `ds(i, n)` is `i : i + n`, `ds(n)` is `:n`, and `ds(None)` is `:`. It indexes arrays, `x.at` and refs, together with
    other items, as in `x[ds(i, 2), 0]`. A negative start counts from the end. A traced start is moved to where all
    elements are in the array when it is read, as by `lax.dynamic_slice`; an update that is partly out of bounds is
    dropped, unless `mode` says otherwise. A static start out of bounds is an IndexError.

    Raises TypeError for a start that is no integer or a size that is not static, ValueError for a negative size.

    >>> x = xlamini.numpy.arange(10)
    >>> xlamini.jit(lambda i: x[ds(i, 3)])(4)
    Array([4, 5, 6], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start  # type: ignore[assignment]
    step = 1 if stride is None else _static("stride", stride)
    return Slice(_checked_start(start), _static("size", size), step)


def _checked_start(start: Any) -> Any:
    if not hasattr(start, "aval") and hasattr(start, "__index__"):
        return as_size(start)
    if is_operand(start) and not aval_of(start).shape and kind_of(aval_of(start).dtype) in INTEGER:
        return start
    raise TypeError(f"ds: start must be one integer, a number or an array, got {start!r}; convert it with .astype(int)")


def _static(name: str, value: Any) -> int:
    try:
        return as_size(value)
    except TypeError:
        raise TypeError(
            f"ds: {name} must be a Python int, because shapes are static, got {value!r}; make it a static argument"
        ) from None


dslice = ds
