"""Derivatives of sampled functions, and phases without jumps."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of, issubdtype
from xlamini.numpy.arguments import as_axes, as_axis, as_operand
from xlamini.numpy.curves import diff
from xlamini.numpy.joining import concatenate
from xlamini.primitives import check_operands, convert, in_dtype, promoted_inexact_dtypes, slice_in_dim, where
from xlamini.primitives.base import operators
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None
) -> Any:
    """The derivative along each axis (or `axis`) of a function that `f` holds samples of, by central differences.

    The distance between samples is 1, or given: one for all axes, or for each axis a distance or the coordinates of
    the samples. At the ends differences are one-sided, of second order if `edge_order` is 2, which takes three
    samples. A list of arrays, or one array for one axis. ValueError for fewer than two samples.

    >>> gradient(jnp.array([1.0, 2.0, 4.0]))
    Array([1. , 1.5, 2. ], dtype=float32)
    """
    samples = as_operand("gradient", f)
    axes = as_axes("gradient", axis, samples.ndim)
    order = 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes; give one, or one for each")
    spacings = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    _check_samples(samples, axes, spacings, order)
    found = _gradients(samples, list(spacings), axes, order)
    return found[0] if len(axes) == 1 else found


@composite(static=("axis",))
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi) -> Array:
    """Phases along an axis with multiples of `period` added, so that neighbours differ by half of it at most.

    Jumps below `discont`, if that is more than half a period, are left in. Integers stay integers where period is one.
    ValueError for complex numbers.

    >>> unwrap(jnp.array([0, 3, 6, 1]), period=8)
    Array([0, 3, 6, 9], dtype=int32)
    """
    phases = as_operand("unwrap", p)
    if issubdtype(phases.dtype, np.complexfloating):
        raise ValueError("unwrap: complex numbers have no order; unwrap jnp.angle of them")
    along = as_axis("unwrap", axis, phases.ndim)
    if not phases.shape[along]:
        return phases
    steps = diff(phases, axis=along)
    half = _half(phases, period)
    wrapped = operators.remainder(steps + half, period) - half
    doubtful = _all(operators.equal(wrapped, -half), operators.greater(steps, 0), operators.equal(half + half, period))
    wrapped = where(doubtful, convert(half, aval_of(wrapped).dtype), wrapped)
    least = operators.true_divide(period, 2) if discont is None else discont
    change = where(
        operators.less(operators.absolute(steps), least), in_dtype(0, aval_of(wrapped).dtype), wrapped - steps
    )
    start = slice_in_dim(phases, 0, 1, axis=along)
    rest = operators.add(slice_in_dim(phases, 1, phases.shape[along], axis=along), cumsum(change, axis=along))
    return concatenate([start, rest], axis=along)


# --- helpers


def _check_samples(f: Any, axes: Sequence[int], spacings: Sequence[Any], order: int) -> None:
    for axis, spacing in zip(axes, spacings, strict=True):
        length, shape = f.shape[axis], np.shape(spacing)
        if not length >= order + 1:
            raise ValueError(f"gradient: axis {axis} has {length} samples; edge_order={order} takes {order + 1}")
        if shape not in ((), (length,)):
            raise ShapeError(
                f"gradient: a spacing of shape {shape} for axis {axis} of length {length}; give a number or "
                "one coordinate for each sample"
            )


@composite(static=("axes", "order"))
def _gradients(f: Any, spacings: list[Any], axes: tuple[int, ...], order: int) -> list[Any]:
    (f,) = promoted_inexact_dtypes(f)
    distances = [in_dtype(h, aval_of(f).dtype) for h in check_operands("gradient", spacings)]
    return [_along(f, h, axis, order) for h, axis in zip(distances, axes, strict=True)]


def _along(f: Any, h: Any, axis: int, order: int) -> Any:
    """Differences along one axis."""
    length, even = f.shape[axis], not aval_of(h).ndim

    def at_end(i: int) -> Any:
        return _slopes(slice_in_dim(f, i, i + 2, axis=axis), h if even else slice_in_dim(h, i, i + 2), axis)

    first, last = at_end(0), at_end(length - 2)
    if length == 2:
        return concatenate([first, last], axis=axis)
    inner = _central(f, h, axis) if even else _inner(_slopes(f, h, axis), diff(h), axis)
    if order == 2:
        beside = (slice_in_dim(inner, i, i + 1, axis=axis) for i in (0, length - 3))
        first, last = (2 * outer - x for outer, x in zip((first, last), beside, strict=True))
    return concatenate([first, inner, last], axis=axis)


def _slopes(f: Any, h: Any, axis: int) -> Any:
    """The slopes between neighbours."""
    return operators.true_divide(diff(f, axis=axis), _columns(diff(h), f, axis) if aval_of(h).ndim else h)


def _central(f: Any, distance: Any, axis: int) -> Any:
    """The slopes between the neighbours of each inner sample, which itself may be infinite."""
    length = f.shape[axis]
    before, after = slice_in_dim(f, 0, length - 2, axis=axis), slice_in_dim(f, 2, length, axis=axis)
    return (after - before) / operators.multiply(2, distance)


def _inner(slopes: Any, steps: Any, axis: int) -> Any:
    """The slope in the middle of the parabola through three samples: each side weighs as much as the other is wide."""
    length = slopes.shape[axis]
    before, after = slice_in_dim(slopes, 0, length - 1, axis=axis), slice_in_dim(slopes, 1, length, axis=axis)
    share = _columns(steps[1:] / (steps[1:] + steps[:-1]), slopes, axis)
    return before * share + after * (1 - share)


def _columns(x: Any, f: Any, axis: int) -> Any:
    shape = [1] * f.ndim
    shape[axis] = x.shape[0]
    return x.reshape(shape)


def _all(*conditions: Any) -> Any:
    return functools.reduce(operators.bitwise_and, conditions)


def _half(phases: Any, period: Any) -> Any:
    """Half a period, rounded down for integers."""
    integers = all(issubdtype(aval_of(v).dtype, np.integer) for v in (phases, period))
    return operators.floor_divide(period, 2) if integers else operators.true_divide(period, 2)
