"""pad: more elements at the ends of each axis."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of, canonicalize_dtype, issubdtype
from xlamini.core.sizes.expression import SymbolicSize, as_size, is_symbolic_shape, max_size, min_size
from xlamini.numpy import reductions
from xlamini.numpy.along_axes import apply_along_axis
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.arithmetic import clip, minimum
from xlamini.numpy.indexing.take import take
from xlamini.numpy.medians import median
from xlamini.numpy.rounding import round
from xlamini.numpy.static_take import take_runs
from xlamini.numpy.statistics import mean
from xlamini.primitives import broadcast_in_dim, in_dtype, promoted_inexact, reshape, rev, slice_in_dim
from xlamini.primitives.base import operators
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import iota
from xlamini.primitives.shape.pad import pad as _pad
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_BY_ORDER = ("edge", "reflect", "symmetric", "wrap")


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """Pad `array` before and after along each axis.

    Args: array: what is padded. pad_width: how many: one number, `(before, after)`, or such a pair for each axis.
    mode: "constant" (the keyword `constant_values` has one value, a pair, or a pair for each axis; 0 if it is not
    given), "edge", "wrap" or "empty"; "reflect" and "symmetric" (with reflect_type="odd" the image is turned over the
    edge's value); "linear_ramp" to `end_values`; "maximum", "minimum", "mean" and "median", of the `stat_length`
    elements at the edge, or of all. Or a function of a padded vector, its widths, the axis and the keywords, which
    returns the vector.

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
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0) if mode == "constant" else 0
        _refuse(mode, kwargs)
        return _with_constants(x, widths, values)
    if mode == "linear_ramp":
        ends = kwargs.pop("end_values", 0)
        _refuse(mode, kwargs)
        return _with_ramps(x, widths, ends)
    if mode in _STATISTICS:
        lengths = kwargs.pop("stat_length", None)
        _refuse(mode, kwargs)
        return _with_statistics(x, widths, mode, None if lengths is None else _widths(lengths, x.ndim, "stat_length"))
    if mode not in _BY_ORDER:
        known = ("constant", "empty", "linear_ramp", *_BY_ORDER, *_STATISTICS)
        raise NotImplementedError(f"pad: mode={mode!r}; it takes {', '.join(known)}")
    odd = mode in ("reflect", "symmetric") and _is_odd(kwargs.pop("reflect_type", "even"))
    _refuse(mode, kwargs)
    return _by_order(x, widths, mode, odd)


def _is_odd(reflect_type: str) -> bool:
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type={reflect_type!r}; it takes 'even' or 'odd'")
    return reflect_type == "odd"


def _refuse(mode: str, rest: dict[str, Any]) -> None:
    if rest:
        raise ValueError(f"pad: mode {mode!r} takes no {', '.join(rest)}")


def _widths(pad_width: Any, ndim: int, name: str = "pad_width") -> tuple[tuple[int, int], ...]:
    if _has_symbolic(pad_width):
        return _symbolic_widths(pad_width, ndim, name)
    given = np.asarray(pad_width)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"pad: {name} must be of integers, got {pad_width!r}")
    try:
        pairs = np.broadcast_to(given, (ndim, 2))
    except ValueError:
        raise _no_fit(name, given.shape, ndim) from None
    if (pairs < 0).any():
        raise _negative(name, pad_width)
    return tuple((int(before), int(after)) for before, after in pairs)


def _has_symbolic(widths: Any) -> bool:
    return type(widths) is SymbolicSize or (isinstance(widths, list | tuple) and any(map(_has_symbolic, widths)))


def _symbolic_widths(widths: Any, ndim: int, name: str) -> tuple[tuple[int, int], ...]:
    """The pairs that NumPy would broadcast: it makes no arrays of symbolic sizes."""
    rows = widths if isinstance(widths, list | tuple) else [widths]
    rows = rows if any(isinstance(row, list | tuple) for row in rows) else [rows]
    pairs = [(as_size(row[0]), as_size(row[-1])) for row in rows]
    if len(pairs) not in (1, ndim) or any(len(row) > 2 for row in rows):
        raise _no_fit(name, (len(pairs), max(map(len, rows))), ndim)
    if not all(n >= 0 for pair in pairs for n in pair):
        raise _negative(name, widths)
    return tuple(pairs) * (ndim if len(pairs) == 1 else 1)


def _no_fit(name: str, shape: tuple[int, ...], ndim: int) -> ValueError:
    return ValueError(
        f"pad: {name} of shape {shape} does not fit an array of {ndim} dimensions; give one number, "
        f"a pair, or {ndim} pairs"
    )


def _negative(name: str, widths: Any) -> ValueError:
    return ValueError(f"pad: {name} holds negative numbers: {widths!r}; cut elements off with a slice")


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


@composite(static=("widths", "mode", "odd"))
def _by_order(x: Any, widths: Sequence[tuple[int, int]], mode: Any, odd: bool) -> Any:
    for axis, width in enumerate(widths):
        if any(width):
            length = x.shape[axis]
            if not length:
                raise ValueError(f"pad: axis {axis} of shape {x.shape} is empty; mode {mode!r} has nothing to repeat")
            if is_symbolic_shape((length, *width)) and not odd:
                x = take(x, _places(length, width, mode), axis, mode="clip")
                continue
            mirrored = _mirrored(x, np.pad(np.arange(length), width, mode), axis, width[0])
            x = _odd_reflection(x, mirrored, axis, width, mode) if odd else mirrored
    return x


def _places(length: int, width: tuple[int, int], mode: str) -> Any:
    """The indices of the elements that a padded axis has."""
    places = iota(np.dtype(np.int32), length + width[0] + width[1]) - width[0]
    if mode == "edge":
        return clip(places, 0, length - 1)
    if mode == "wrap":
        return operators.remainder(places, length)
    twice = mode == "symmetric"  # whether the edge is in its image
    period = 2 * length if twice else max_size(2 * length - 2, 1)
    turned = operators.remainder(places, period)
    return minimum(turned, period - twice - turned)


def _mirrored(x: Any, places: np.ndarray, axis: int, start: int) -> Any:
    """The elements at `places` along an axis, among which are those of x from `start` on: they are joined as a whole.

    As part of a run that begins earlier they would be copied once more.
    """
    end = start + x.shape[axis]
    sides = [take_runs(x, part, axis) if part.size else None for part in (places[:start], places[end:])]
    return concatenate([part for part in (sides[0], x, sides[1]) if part is not None], axis)


def _odd_reflection(x: Any, mirrored: Any, axis: int, width: tuple[int, int], mode: Any) -> Any:
    """`mirrored` with every second image negated, plus the multiple of the edge values that NumPy adds.

    How many times that is follows from what NumPy makes of the unit vectors.
    """
    length = x.shape[axis]
    places = np.pad(np.arange(length), width, mode)
    of_units = np.pad(np.eye(length, dtype=int), (width, (0, 0)), mode, reflect_type="odd")
    period = max(length - 1, 1) if mode == "reflect" else length
    signs = 1 - 2 * ((np.arange(len(places)) - width[0]) // period % 2)
    rest = of_units - signs[:, None] * np.eye(length, dtype=int)[places]
    shape = tuple(len(places) if d == axis else 1 for d in range(x.ndim))
    terms = mirrored * in_dtype(reshape(as_operand("pad", signs), shape), aval_of(x).dtype)
    for edge in {0, length - 1}:
        times = in_dtype(reshape(as_operand("pad", rest[:, edge]), shape), aval_of(x).dtype)
        terms = terms + times * slice_in_dim(x, edge, edge + 1, axis=axis)
    return terms


# --- values from outside


@composite(static=("widths",))
def _with_ramps(x: Any, widths: Sequence[tuple[int, int]], ends: Any) -> Any:
    pairs = _value_pairs(ends, len(widths)) if isinstance(ends, Sequence) or np.ndim(ends) else [(ends, ends)] * x.ndim
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, pairs, strict=True)):
        size = x.shape[axis]
        left = _ramp(first, slice_in_dim(x, 0, 1, axis=axis), before, axis)
        right = _ramp(last, slice_in_dim(x, size - 1, size, axis=axis), after, axis)
        x = concatenate([left, x, rev(right, (axis,))], axis)
    return x


def _ramp(end: Any, edge: Any, count: int, axis: int) -> Any:
    """A linear ramp from `end` on, up to before the edge's value."""
    dtype = aval_of(edge).dtype
    whole = issubdtype(dtype, np.integer)  # is computed as such: a quotient of floats may fall below it
    edge = in_dtype(edge, canonicalize_dtype(int)) if whole else promoted_inexact("pad", edge)[0]
    kind = aval_of(edge).dtype
    steps = reshape(iota(kind, count), tuple(count if d == axis else 1 for d in range(edge.ndim)))
    end = _scalar(end, kind)
    way = (edge - end) * steps
    return in_dtype(end + (way // max_size(count, 1) if whole else way / max_size(count, 1)), dtype)


_STATISTICS = {"maximum": reductions.max, "minimum": reductions.min, "mean": mean, "median": median}


@composite(static=("widths", "mode", "lengths"))
def _with_statistics(x: Any, widths: Sequence[tuple[int, int]], mode: str, lengths: Any) -> Any:
    for axis, (before, after) in enumerate(widths):
        size = x.shape[axis]
        first, last = (size, size) if lengths is None else (min_size(n, size) for n in lengths[axis])
        left = _statistic(slice_in_dim(x, 0, first, axis=axis), mode, axis, before)
        right = _statistic(slice_in_dim(x, size - last, size, axis=axis), mode, axis, after)
        x = concatenate([left, x, right], axis)
    return x


def _statistic(part: Any, mode: str, axis: int, count: int) -> Any:
    dtype, shape = aval_of(part).dtype, list(aval_of(part).shape)
    value = _STATISTICS[mode](part, axis, keepdims=True)
    if issubdtype(dtype, np.integer) and not issubdtype(aval_of(value).dtype, np.integer):
        value = round(value)
    shape[axis] = count
    return broadcast_in_dim(in_dtype(value, dtype), shape, range(len(shape)))


def _by_function(x: Any, widths: Sequence[tuple[int, int]], fun: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    x = _with_constants(x, widths, 0)
    for axis, width in enumerate(widths):
        x = apply_along_axis(fun, axis, x, width, axis, kwargs)
    return x
