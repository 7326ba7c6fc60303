"""What is said of samples: their most common value, their ranks, the error of their mean."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini import numpy as jnp
from xlamini.lax import cummax, cummin
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_RANKS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The most common value, and how often it occurs."""

    mode: Array
    count: Array


@composite(static=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most common value along an axis, or of all: the smallest one of several, and how often it occurs.

    NaNs count as equal. A number is an array of one. NaN and a count of 0 where there is no element.
    NotImplementedError for a `nan_policy` but "propagate".

    >>> mode(jnp.array([3, 1, 3, 2]))
    ModeResult(mode=Array(3, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy("mode", nan_policy, ("propagate",))
    a = as_operand("mode", a)
    x, axis, n, shape = _rows("mode", a.reshape(a.shape or 1), axis)
    if n == 0:
        nothing = jnp.full(x.shape[:-1], np.nan, float)
        return ModeResult(*(_kept(v, axis, shape, keepdims) for v in (nothing, jnp.zeros_like(nothing))))
    ordered = jnp.sort(x, -1)
    start = jnp.concatenate([jnp.ones_like(ordered[..., :1], bool), _differ(ordered[..., 1:], ordered[..., :-1])], -1)
    places = jnp.arange(n)
    runs = places - cummax(jnp.where(start, places, 0), axis=start.ndim - 1) + 1
    last = runs.argmax(-1)[..., None]
    found = (jnp.take_along_axis(v, last, -1)[..., 0] for v in (ordered, runs))
    return ModeResult(*(_kept(v, axis, shape, keepdims) for v in found))


@composite(static=("method", "axis", "nan_policy"))
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """The place of each element in sorted order, from 1 on, as floats; of all elements in one row without `axis`.

    Equal elements have by `method` the "average", "min" or "max" of their places; "dense" counts values, "ordinal"
    gives places in turn. All are NaN where one is NaN. ValueError for another method, NotImplementedError for a
    `nan_policy` but "propagate".

    >>> rankdata(jnp.array([30, 10, 20, 20]))
    Array([4. , 1. , 2.5, 2.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in _RANKS:
        raise ValueError(f"rankdata: method must be one of {', '.join(map(repr, _RANKS))}, got {method!r}")
    a = as_operand("rankdata", a)
    x = a.reshape(-1) if axis is None else jnp.moveaxis(a, as_axis("rankdata", axis, a.ndim), -1)
    order = jnp.argsort(x, -1)
    places = jnp.argsort(order, -1)
    sorted_ranks = _ranks(jnp.take_along_axis(x, order, -1), method).astype(float)
    ranks = jnp.take_along_axis(sorted_ranks, places, -1)
    if jnp.issubdtype(x.dtype, np.inexact):
        ranks = jnp.where(jnp.isnan(x).any(-1, keepdims=True), np.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, axis)


@composite(static=("axis", "ddof", "nan_policy", "keepdims"))
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean along an axis, or of all: the standard deviation over the root of the number.

    With `nan_policy="omit"` NaNs are left out. ValueError for another policy.

    >>> sem(jnp.array([1.0, 3.0]))
    Array(0.99999994, dtype=float32)
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    a = as_operand("sem", a)
    if nan_policy == "omit":
        count = (~jnp.isnan(a)).sum(axis, keepdims=keepdims)
        deviation = jnp.nanstd(a, axis, ddof=ddof, keepdims=keepdims)
        return deviation / jnp.sqrt(count.astype(deviation.dtype))
    count = a.size if axis is None else a.shape[as_axis("sem", axis, a.ndim)]
    return jnp.std(a, axis, ddof=ddof, keepdims=keepdims) / count**0.5


# --- helpers


def _check_policy(name: str, policy: str, known: tuple[str, ...]) -> None:
    if policy in known:
        return
    error = NotImplementedError if policy in ("omit", "raise") else ValueError
    raise error(f"{name}: nan_policy must be {' or '.join(map(repr, known))}, got {policy!r}")


def _rows(name: str, a: Any, axis: int | None) -> tuple[Any, int | None, int, tuple[int, ...]]:
    """The array with `axis` last, or flat; the axis; its length; the shape before."""
    x = as_operand(name, a)
    shape = x.shape
    if axis is None:
        return x.reshape(-1), None, x.size, shape
    axis = as_axis(name, axis, x.ndim)
    return jnp.moveaxis(x, axis, -1), axis, shape[axis], shape


def _kept(v: Any, axis: int | None, shape: tuple[int, ...], keepdims: bool) -> Any:
    if not keepdims:
        return v
    return v.reshape((1,) * len(shape)) if axis is None else jnp.expand_dims(v, axis)


def _differ(x: Any, y: Any) -> Any:
    """Whether elements differ, NaNs being equal."""
    return (x != y) & ~((x != x) & (y != y))


def _ranks(ordered: Any, method: str) -> Any:
    """The ranks of sorted elements."""
    n = ordered.shape[-1]
    places = jnp.broadcast_to(jnp.arange(1, n + 1), ordered.shape)
    if method == "ordinal":
        return places
    differ = ordered[..., 1:] != ordered[..., :-1]
    edge = jnp.ones_like(ordered[..., :1], bool)
    starts, ends = jnp.concatenate([edge, differ], -1), jnp.concatenate([differ, edge], -1)
    if method == "dense":
        return starts.cumsum(-1)
    low = cummax(jnp.where(starts, places, 0), axis=places.ndim - 1)
    high = cummin(jnp.where(ends, places, n), axis=places.ndim - 1, reverse=True)
    return {"min": low, "max": high}.get(method, (low + high) / 2)
