"""The formula of attention: products of queries and keys, a softmax over keys, and means of values.

Axes have one letter each: b the example, t the query, s the key and its value, k the head of keys, g one of the query
heads that share it, h the features. Where each query head has keys of its own, g is left out: XLA's CPU compiler would
copy the logits once more for an axis of size 1.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.softmax import logsumexp, softmax

_NEVER = -0.7 * float(np.finfo(np.float32).max)
"""Instead of minus infinity: a query whose keys are all masked then weighs them equally, without NaN."""


def weighted_means(q: Any, k: Any, v: Any, bias: Any, seen: Any, scale: Any) -> tuple[Any, Any]:
    """The mean of values for each query, of the shape of `q`, and the products, in the order of axes b, k, t, g, s.

    `bias` and `seen` broadcast to (batch, heads, queries, keys), or are None.
    """
    fit = _fits(q, k, bias, scale)
    if seen is not None:
        fit = jnp.where(_by_group(seen, q, k), fit, _NEVER)
    return _weighted(softmax(fit, axis=-1).astype(k.dtype), v), fit


def logs_of(fit: Any, q: Any) -> Any:
    """The logarithms of the softmaxes' denominators, of shape (batch, heads, queries)."""
    logs = logsumexp(fit, axis=-1)
    return logs if logs.ndim == 3 else logs.swapaxes(2, 3).reshape(q.shape[0], q.shape[2], q.shape[1])


def seen_keys(queries: int, keys: int, before: int | None, after: int | None) -> Any:
    """Which keys a query sees, of shape (1, 1, queries, keys): from `before` its place to `after`; None for all."""
    query, key = jnp.arange(queries)[None, None, :, None], jnp.arange(keys)
    found = []
    if after is not None:
        found.append(key <= query + after if after else key <= query)
    if before is not None:
        found.append(key >= query - before)
    return both(*found)


def both(*masks: Any) -> Any:
    """What all masks allow; None if there is none."""
    seen = None
    for each in masks:
        if each is not None:
            seen = each if seen is None else seen & each
    return seen


# --- helpers


def _fits(q: Any, k: Any, bias: Any, scale: Any) -> Any:
    """The attention logits of each key for each query, in the order of axes b, k, t, g, s."""
    wide = jnp.promote_types(q.dtype, np.float32)
    if _share_keys(q, k):
        grouped = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
        fit = jnp.einsum("btkgh,bskh->bktgs", grouped, k, preferred_element_type=wide)
    else:
        fit = jnp.einsum("btkh,bskh->bkts", q, k, preferred_element_type=wide)
    fit = (fit * scale).astype(wide)
    return fit if bias is None else (fit + _by_group(bias, q, k)).astype(wide)


def _weighted(weights: Any, v: Any) -> Any:
    """The weighted means of the values, for each query and head."""
    sums = (((1,), (weights.ndim - 1,)), ((0, 2), (0, 1)))
    # The values come first: the other order costs a GPU one copy more in the gradient, and a TPU a seventh more cycles.
    mean = lax.dot_general(v, weights, sums, preferred_element_type=v.dtype)
    if weights.ndim == 4:
        return mean.transpose(0, 3, 1, 2)
    mean = mean.transpose(0, 3, 1, 4, 2)
    return mean.reshape(*mean.shape[:2], -1, mean.shape[-1])


def _share_keys(q: Any, k: Any) -> bool:
    return q.shape[2] > k.shape[2]


def _by_group(x: Any, q: Any, k: Any) -> Any:
    """An array for (batch, heads, queries, keys) in the order of axes b, k, t, g, s; axes of size 1 stay."""
    if not _share_keys(q, k):
        return x
    b, n, t, s = x.shape
    split = x.reshape(b, 1, 1, t, s) if n == 1 else x.reshape(b, k.shape[2], -1, t, s)
    return split.swapaxes(2, 3)
