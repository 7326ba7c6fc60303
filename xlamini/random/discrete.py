"""Draws from a few outcomes: coins, signs, categories."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import Shape, aval_of, canonicalize_dtype, check_user_dtype, finfo, issubdtype, literal, result_type
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_axis
from xlamini.primitives import (
    broadcast_to,
    broadcasted_iota,
    convert,
    eq,
    floor,
    in_dtype,
    log,
    log1p,
    lt,
    moveaxis,
    reshape,
    slice_in_dim,
    where,
)
from xlamini.primitives.reductions.arg_extrema import argmax
from xlamini.primitives.reductions.sort import sort_key_val
from xlamini.random.arguments import broadcast_shape, checked_dtype, checked_shape, float_dtype, sampler
from xlamini.random.continuous import checked_mode, gumbel_noise
from xlamini.random.narrow import wide
from xlamini.random.uniform import halves, uniform_between
from xlamini.runtime import Array


@sampler("shape", "mode")
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Array:
    """Booleans that are True with probability `p`, which is a float or an array of floats.

    Without `shape` they have the shape of `p`. Raises TypeError for a `p` that is no float.

    >>> xlamini.random.bernoulli(xlamini.random.key(0), 0.2, (2,))
    Array([False, False], dtype=bool)
    """
    dtype = result_type(p)
    if not issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli: p must be a float or an array of floats, got dtype {dtype}")
    shape = broadcast_shape("bernoulli", shape, p=p)
    dtype = wide(dtype)
    p = broadcast_to(in_dtype(p, dtype), shape)
    if not checked_mode("bernoulli", mode):
        return lt(uniform_between(key, shape, dtype, 0.0, 1.0), p)
    coarse, rest = halves(uniform_between(key, (2, *shape), dtype, 0.0, 1.0))
    return lt(rest * literal(finfo(dtype).eps, dtype), p - coarse)


@sampler("shape", "dtype")
def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Signs, 1 and -1, each with probability 1/2; both are True as booleans.

    >>> xlamini.random.rademacher(xlamini.random.key(0), (3,))
    Array([-1, -1,  1], dtype=int32)
    """
    found = check_user_dtype(int if dtype is None else dtype, "rademacher")
    return signs(key, checked_shape("rademacher", shape), found)


def signs(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """1 and -1, each with probability 1/2, for arguments that have been checked."""
    heads = lt(uniform_between(key, shape, result_type(float), 0.0, 1.0), 0.5)
    one: Any = literal(1, dtype)
    return where(heads, one, one if dtype.kind == "b" else -one)


@sampler("shape", "dtype")
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Integers from the geometric distribution: the number of trials up to the first success of probability `p`.

    Without `shape` they have the shape of `p`. Raises ValueError for a dtype that is no integer.

    >>> xlamini.random.geometric(xlamini.random.key(0), 0.2, (3,)).shape
    (3,)
    """
    found = checked_dtype("geometric", dtype, int, np.integer, "an integer dtype such as 'int32'")
    shape = broadcast_shape("geometric", shape, p=p)
    inexact = result_type(p, float) if not issubdtype(result_type(p), np.floating) else result_type(p)
    inexact = wide(inexact)
    p = broadcast_to(in_dtype(p, inexact), shape)
    u = uniform_between(key, shape, inexact, 0.0, 1.0)
    trials = floor(log(where(eq(u, 0.0), 1.0, u)) / log1p(-p)) + literal(1, inexact)
    return convert(trials, found)


def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Indices along `axis`, drawn with probabilities softmax(logits).

    `shape` ends with, or broadcasts from, the shape of the logits without that axis, which is the default. Without
    `replace` the draws for one row of logits differ. Raises ValueError for a shape that does not fit.

    >>> xlamini.random.categorical(xlamini.random.key(0), xlamini.numpy.zeros((2, 4))).shape
    (2,)
    """
    aval = aval_of(logits)
    axis = as_axis("categorical", axis, aval.ndim)
    rows = (*aval.shape[:axis], *aval.shape[axis + 1 :])
    shape = _rows_of_draws(rows, shape)
    if not replace and math.prod(shape[: len(shape) - len(rows)]) > aval.shape[axis]:
        raise ValueError(
            f"categorical: shape {shape} asks for more draws than the {aval.shape[axis]} categories there are"
        )
    fine = checked_mode("categorical", mode)
    return _categorical(key, logits, axis, shape, bool(replace), fine, out_sharding=out_sharding)  # type: ignore[call-arg]


def _rows_of_draws(rows: Shape, shape: Any) -> Shape:
    """The shape of the draws; ValueError unless the rows of logits broadcast to it."""
    if shape is None:
        return rows
    wanted = checked_shape("categorical", shape)
    try:
        fits = broadcast_shapes(wanted, rows) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"categorical: shape {wanted} must end with {rows}, the shape of the logits without the axis")
    return wanted


@sampler("axis", "shape", "replace", "fine", name="categorical")
def _categorical(key: Any, logits: Any, axis: int, shape: Shape, replace: bool, fine: bool) -> Any:
    dtype = wide(float_dtype("categorical", aval_of(logits).dtype))
    logits = in_dtype(logits, dtype)
    extra, own = shape[: len(shape) - logits.ndim + 1], shape[len(shape) - logits.ndim + 1 :]
    table = (*own[:axis], logits.shape[axis], *own[axis:])
    if replace:
        noise = gumbel_noise(key, (*extra, *table), dtype, fine)
        return argmax(noise + broadcast_to(logits, noise.shape), len(extra) + axis, canonicalize_dtype(int))
    noisy = gumbel_noise(key, logits.shape, dtype, fine) + logits
    places = broadcasted_iota(np.int32, logits.shape, axis)
    _, order = sort_key_val(-noisy, places, axis)
    drawn = moveaxis(slice_in_dim(order, 0, math.prod(extra), axis=axis), axis, 0)
    return broadcast_to(reshape(drawn, (*extra, *drawn.shape[1:])), shape)
