"""Attention without an array of all products: tile by tile, with a softmax that goes on from tile to tile.

Formulas: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness" (2022), algorithms
1 and 4; the softmax that goes on: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.nn.kernels.flash_tiles import LEAST, Flash, fits, fits_across, product, wide
from xlamini.nn.kernels.flash_walks import OverKeys, OverQueries, OverTiles, Sizes
from xlamini.nn.kernels.targets import GRID, for_target
from xlamini.nn.kernels.walks import Named, Sides, State, Steps, WalkStart, walked
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.custom.custom_vjp import custom_vjp


class Arrays(NamedTuple):
    """What attention is computed from, with whole blocks of queries and keys.

    `q` has shape (b, n, t, h), `k` and `v` (b, heads of keys, s, h). `bias` (b or 1, n or 1, t, s) is added to the
    products. `ids` are int32s of queries (b, t) and keys (b, s): a query sees keys of its own id. Either may be None.
    """

    q: Any
    k: Any
    v: Any
    bias: Any = None
    ids: Sides | None = None


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def attention(how: Flash, x: Arrays) -> tuple[Any, Any]:
    """The means of values, as `q`, and the logarithms of the softmaxes' denominators, of shape (b, n, t).

    A query that sees no key has the mean 0 and the logarithm `LEAST`.
    """
    mean, logs = for_target(functools.partial(_forward, how), how.walk, x)
    return mean, logs[:, :, 0]


def _kept(how: Flash, x: Arrays) -> tuple[Any, Any]:
    mean, logs = attention(how, x)
    return (mean, logs), (x, mean, logs)


def _derivative(how: Flash, kept: Any, cts: Any) -> tuple[Arrays]:
    x, back = kept[0], back_of(*kept, *cts)
    of_q, of_k, of_v = derivative(how, back)
    of_bias = None if x.bias is None else for_target(functools.partial(_bias_derivative, how), how.walk, back)
    return (Arrays(of_q, of_k, of_v, of_bias, None if x.ids is None else Sides(None, None)),)


attention.defvjp(_kept, _derivative)


def derivative(how: Flash, back: Back) -> list[Any]:
    """The cotangents of queries, keys and values."""
    return for_target(functools.partial(_backward, how), how.walk, back)


# --- forward


def _forward(how: Flash, walk: str, x: Arrays) -> list[Any]:
    how, sizes = how.at(walk), _sizes(x)
    dtype, across = wide(x.q.dtype), walk == GRID
    bias, ids, seen_by = _optional(x, across)
    outs = [_like("bnth", x.q), Named("bn1t", ShapeDtypeStruct((sizes.b, sizes.n, 1, sizes.t), dtype))]

    def fold(state: State, parts: list[Any], blocks: Sides) -> State:
        q, k, v, *rest = parts
        if across:
            return step_across(state, fits_across(how, q, k, *seen_by(rest, blocks)), v)
        return softmax_step(state, fits(how, q, k, *seen_by(rest, blocks)), v)

    steps = Steps(_start(how.block_q, sizes.h, dtype, across), fold, _results_across if across else _results)
    arrays = [Named("bnth", x.q), Named("bmsh", x.k), Named("bmsh", x.v), *bias, *ids]
    return walked("flash_attention", OverKeys(how, sizes, walk), steps, arrays, outs)


def _start(queries: int, features: int, dtype: Any, across: bool) -> list[WalkStart]:
    """The state: the largest product of each query, the sum of exponentials, and their sum weighted by values.

    A TPU has them `across`, with queries along the last axis: there a sum over keys adds registers, where one along the
    last axis moves numbers from lane to lane. A GPU multiplies weights faster as they come, queries by keys.
    """
    column, sums = (queries, 1), (queries, features)
    shapes = [x[::-1] if across else x for x in (column, column, sums)]
    return [WalkStart(shape, dtype, number) for shape, number in zip(shapes, (LEAST, 0.0, 0.0), strict=True)]


def softmax_step(state: State, fit: Any, v: Any) -> State:
    """The state after one more tile of products, (queries, keys)."""
    most, total, shrink, weights = _exponentials(state, fit, 1)
    return [most, total, state[2] * shrink + product(weights.astype(v.dtype), v, (1, 0))]


def step_across(state: State, fit: Any, v: Any) -> State:
    """The state after one more tile of products, (keys, queries)."""
    most, total, shrink, weights = _exponentials(state, fit, 0)
    return [most, total, state[2] * shrink + product(v, weights.astype(v.dtype), (0, 0))]


def _exponentials(state: State, fit: Any, keys: int) -> tuple[Any, Any, Any, Any]:
    """The largest products, the sums of exponentials, the factor of earlier sums, and the exponentials themselves."""
    largest, total, _ = state
    most = jnp.maximum(largest, fit.max(keys, keepdims=True))
    weights, shrink = jnp.exp(fit - most), jnp.exp(largest - most)
    return most, total * shrink + weights.sum(keys, keepdims=True), shrink, weights


def _results(state: State) -> list[Any]:
    """The means and the logarithms."""
    largest, total, weighted = state
    total = jnp.where(total == 0, 1.0, total)
    return [weighted / total, (largest + jnp.log(total)).T]


def _results_across(state: State) -> list[Any]:
    largest, total, weighted = state
    total = jnp.where(total == 0, 1.0, total)
    return [(weighted / total).T, largest + jnp.log(total)]


# --- backward


class Back(NamedTuple):
    """What derivatives are computed from: `logs` and `shift` have shape (b, n, 1, t).

    `shift` is the sum over features of the mean times its cotangent, less the cotangent of `logs`.
    """

    x: Arrays
    ct: Any
    logs: Any
    shift: Any

    def arrays(self) -> list[Named]:
        """Those of all tiles."""
        x = self.x
        of_queries = [Named("bnth", x.q), Named("bnth", self.ct), Named("bn1t", self.logs), Named("bn1t", self.shift)]
        return [*of_queries, Named("bmsh", x.k), Named("bmsh", x.v)]


def back_of(x: Arrays, mean: Any, logs: Any, ct: Any, ct_logs: Any) -> Back:
    """What derivatives are computed from, for the cotangents of the means and the logarithms."""
    dtype = wide(mean.dtype)
    shift = (ct.astype(dtype) * mean.astype(dtype)).sum(-1) - ct_logs
    return Back(x, ct, logs[:, :, None], shift[:, :, None])


def _backward(how: Flash, walk: str, back: Back) -> list[Any]:
    how = how.at(walk, back=True)
    return [*_of_queries(how, walk, back), *_of_keys(how, walk, back)]


def _of_queries(how: Flash, walk: str, back: Back) -> list[Any]:
    sizes = _sizes(back.x)
    bias, ids, seen_by = _optional(back.x, across=True)

    def fold(state: State, parts: list[Any], blocks: Sides) -> State:
        k = parts[4]
        _, slope = _weights_and_slope(how, parts[:6], *seen_by(parts[6:], blocks))
        return [state[0] + product(slope.astype(k.dtype), k, (0, 0))]

    start = [WalkStart((how.block_q, sizes.h), wide(back.x.q.dtype))]
    steps = Steps(start, fold, lambda state: [state[0] * how.scale])
    arrays, outs = [*back.arrays(), *bias, *ids], [_like("bnth", back.x.q)]
    return walked("flash_attention_dq", OverKeys(how, sizes, walk), steps, arrays, outs)


def _of_keys(how: Flash, walk: str, back: Back) -> list[Any]:
    sizes = _sizes(back.x)
    bias, ids, seen_by = _optional(back.x, across=True)

    def fold(state: State, parts: list[Any], blocks: Sides) -> State:
        q, ct = parts[:2]
        weights, slope = _weights_and_slope(how, parts[:6], *seen_by(parts[6:], blocks))
        of_k = state[0] + product(slope.astype(q.dtype), q, (1, 0))
        return [of_k, state[1] + product(weights.astype(ct.dtype), ct, (1, 0))]

    start = [WalkStart((how.block_k, sizes.h), wide(back.x.q.dtype))] * 2
    steps = Steps(start, fold, lambda state: [state[0] * how.scale, state[1]])
    arrays, outs = [*back.arrays(), *bias, *ids], [_like("bmsh", back.x.k), _like("bmsh", back.x.v)]
    return walked("flash_attention_dkv", OverQueries(how, sizes, walk), steps, arrays, outs)


def _bias_derivative(how: Flash, walk: str, back: Back) -> Any:
    """The cotangent of the bias, summed over the axes along which there is one for all."""
    x, how = back.x, how.at(walk, back=True)
    sizes = _sizes(x)
    bias, ids, seen_by = _optional(x, across=True)

    def fold(state: State, parts: list[Any], blocks: Sides) -> State:
        return [_weights_and_slope(how, parts[:6], *seen_by(parts[6:], blocks))[1].T]

    steps = Steps([], fold, lambda state: state)
    shape = (sizes.b, sizes.n, sizes.t, sizes.s)
    outs = [Named("bnts", ShapeDtypeStruct(shape, x.bias.dtype))]
    (slope,) = walked("flash_attention_dbias", OverTiles(how, sizes), steps, [*back.arrays(), *bias, *ids], outs)
    shared = tuple(axis for axis in (0, 1) if x.bias.shape[axis] == 1)
    return slope.sum(shared, keepdims=True) if shared else slope


def _weights_and_slope(how: Flash, parts: list[Any], bias: Any, blocks: Sides, ids: Sides | None) -> tuple[Any, Any]:
    """The softmax's weights of a tile, and the cotangents of its products, of shape (keys, queries)."""
    q, ct, logs, shift, k, v = parts
    weights = jnp.exp(fits_across(how, q, k, bias, blocks, ids) - logs)
    return weights, weights * (product(v, ct, (1, 1)) - shift)


# --- helpers


def _sizes(x: Arrays) -> Sizes:
    (b, n, t, h), (_, heads, s, _) = x.q.shape, x.k.shape
    return Sizes(b, n, n // heads, t, s, h)


def _like(axes: str, x: Any) -> Named:
    return Named(axes, ShapeDtypeStruct(x.shape, x.dtype))


def _optional(x: Arrays, across: bool) -> Any:
    """Bias and ids as arrays of a kernel, and the function from their parts to what `fits` takes."""
    bias = [] if x.bias is None else [Named("bnts", x.bias)]
    ids = [] if x.ids is None else _along(x.ids, across)

    def seen_by(parts: list[Any], blocks: Sides) -> tuple[Any, Sides, Sides | None]:
        return parts[0] if bias else None, blocks, Sides(*parts[-2:]) if ids else None

    return bias, ids, seen_by


def _along(ids: Sides, across: bool) -> list[Named]:
    """Ids of queries as a column and of keys as a row, or the other way round."""
    q, k = ids
    if across:
        return [Named("b1t", q[:, None]), Named("bs1", k[:, :, None])]
    return [Named("bt1", q[:, :, None]), Named("b1s", k[:, None])]
