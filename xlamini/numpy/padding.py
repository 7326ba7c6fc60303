"""pad: more elements at the ends of each axis."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.tracer import aval_of
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.runs import take_runs
from xlamini.primitives.pad import pad as _pad
from xlamini.primitives.promotion import in_dtype
from xlamini.runtime.array import Array
from xlamini.transforms.composite import composite
from xlamini.typing import ArrayLike

_BY_ORDER = ("edge", "reflect", "symmetric", "wrap")


def pad(array: ArrayLike, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Array:
    """`array` with more elements before and after along each axis.

    Args: array: what is padded. pad_width: how many: one number, `(before, after)`, or such a pair for each axis.
    mode: "constant" (the keyword `constant_values` has one value, a pair, or a pair for each axis; 0 if it is not
    given), "edge", "reflect", "symmetric", "wrap" or "empty".

    Raises:
      ValueError: negative widths, widths that do not fit the axes, a keyword the mode does not take.
      NotImplementedError: an unknown mode.

    >>> pad(xlamini.numpy.arange(3), (1, 2), constant_values=9)
    Array([9, 0, 1, 2, 9, 9], dtype=int32)
    >>> pad(xlamini.numpy.arange(3), 2, mode="reflect")
    Array([2, 1, 0, 1, 2, 1, 0], dtype=int32)
    """
    x = as_operand("pad", array)
    widths = _widths(pad_width, x.ndim)
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0) if mode == "constant" else 0
        _refuse(mode, kwargs)
        return _with_constants(x, widths, values)
    if mode not in _BY_ORDER:
        raise NotImplementedError(f"pad: mode={mode!r}; it takes constant, empty, {', '.join(_BY_ORDER)}")
    if kwargs.pop("reflect_type", "even") != "even":
        raise NotImplementedError("pad: reflect_type must be 'even'")
    _refuse(mode, kwargs)
    return _by_order(x, widths, mode)


def _refuse(mode: str, rest: dict[str, Any]) -> None:
    if rest:
        raise ValueError(f"pad: mode {mode!r} takes no {', '.join(rest)}")


def _widths(pad_width: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    given = np.asarray(pad_width)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"pad: pad_width must be of integers, got {pad_width!r}")
    try:
        pairs = np.broadcast_to(given, (ndim, 2))
    except ValueError:
        raise ValueError(
            f"pad: pad_width of shape {given.shape} does not fit an array of {ndim} dimensions; give one number, "
            f"a pair, or {ndim} pairs"
        ) from None
    if (pairs < 0).any():
        raise ValueError(f"pad: pad_width holds negative numbers: {pad_width!r}; cut elements off with a slice")
    return tuple((int(before), int(after)) for before, after in pairs)


@composite(static=("widths",))
def _with_constants(x: Any, widths: Sequence[tuple[int, int]], values: Any) -> Any:
    dtype = aval_of(x).dtype
    if not isinstance(values, Sequence) and not np.ndim(values):
        return _pad(x, _scalar(values, dtype), [(before, after, 0) for before, after in widths])
    nothing = [(0, 0, 0)] * len(widths)
    for axis, (width, pair) in enumerate(zip(widths, _value_pairs(values, len(widths)), strict=True)):
        for (before, after), value in zip(((width[0], 0), (0, width[1])), pair, strict=True):
            config = [*nothing[:axis], (before, after, 0), *nothing[axis + 1 :]]
            x = _pad(x, _scalar(value, dtype), config)
    return x


def _scalar(value: Any, dtype: Any) -> Any:
    return in_dtype(np.asarray(value) if isinstance(value, np.generic) else value, dtype)


def _value_pairs(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """A value before and one after for each axis."""
    nested = isinstance(values[0], Sequence) or np.ndim(values[0]) > 0
    pairs = [(pair[0], pair[-1]) for pair in (values if nested else [values])]
    if len(pairs) not in (1, ndim):
        raise ValueError(f"pad: constant_values has {len(pairs)} pairs for {ndim} axes")
    return pairs * ndim if len(pairs) == 1 else pairs


@composite(static=("widths", "mode"))
def _by_order(x: Any, widths: Sequence[tuple[int, int]], mode: Any) -> Any:
    for axis, width in enumerate(widths):
        if any(width):
            length = x.shape[axis]
            if not length:
                raise ValueError(f"pad: axis {axis} of shape {x.shape} is empty; mode {mode!r} has nothing to repeat")
            x = take_runs(x, np.pad(np.arange(length), width, mode), axis)
    return x
