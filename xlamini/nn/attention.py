"""Attention: each query takes the mean of the values, weighted by how well their keys fit it.

Axes have one letter each: b the example, t the query, s the key and its value, k the head of keys, g one of the query
heads that share it, h the features. Where each query head has keys of its own, g is left out: XLA's CPU compiler would
copy the logits once more for an axis of size 1.
"""
from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError
from xlamini.nn.cudnn_attention import cudnn_attention
from xlamini.nn.softmax import logsumexp, softmax
from xlamini.nn.tiled_attention import tiled_attention
from xlamini.numpy.arguments import as_index, as_operand
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_NAME = "dot_product_attention"
# A finite substitute for minus infinity: a query whose keys are all masked then weighs them equally, without NaN.
_NEVER = -0.7 * float(np.finfo(np.float32).max)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    return_residual: bool = False,
    implementation: Literal["xla", "cudnn", "flash"] | None = None,
) -> Any:
    """`softmax(scale * query @ key + bias) @ value` for each head (Vaswani et al., 2017).

    Args:
      query: shape (batch, queries, heads, features), or without the batch, here and below.
      key, value: shape (batch, keys, key heads, features); each key head serves as many query heads in a row.
      bias: added to the products; it broadcasts to (batch, heads, queries, keys), and may lack the batch.
      mask: booleans of such a shape: which keys a query sees.
      scale: 1 / sqrt(features) if it is not given.
      is_causal: query t sees keys up to t only.
      query_seq_lengths, key_value_seq_lengths: shape (batch,): how many there are in each example; what is computed
        for later queries is zero, and later keys are not seen.
      local_window_size: how many keys a query sees before and after its own place: a pair, or one number for both.
      return_residual: whether to return the logarithm of each softmax's denominator too, shape (batch, queries, heads).
      implementation: "xla" or None for operations that XLA compiles, on every platform. "flash" for kernels that write
        no products to memory, in forward and backward passes, on a TPU, on a GPU, and as a loop on a CPU; they take a
        `scale` that is a Python number, have first derivatives in reverse mode on a device, and give 0 for a query
        that sees no key. "cudnn" for fused kernels of an NVIDIA GPU, which write no products to memory; they take
        bfloat16 and float16, a `scale` that is a Python number, and have first derivatives only, of the array alone.

    Returns an array of the shape and dtype of `query`; products are summed and the softmax is taken in float32 or
    wider. ShapeError and TypeError for arrays that do not fit, ValueError for an unknown `implementation`,
    NotImplementedError for what cuDNN lacks, PlatformError where it is not.

    >>> x = jnp.ones((4, 2, 8))
    >>> dot_product_attention(x, x, x, is_causal=True).shape
    (4, 2, 8)
    """
    attend = {None: _by_xla, "xla": _by_xla, "cudnn": _by_cudnn, "flash": _by_tiles}.get(implementation)
    if attend is None:
        raise ValueError(f"{_NAME}: implementation must be 'xla', 'cudnn', 'flash' or None, got {implementation!r}")
    return attend(
        query,
        key,
        value,
        bias,
        mask,
        query_seq_lengths,
        key_value_seq_lengths,
        scale=scale,
        is_causal=is_causal,
        local_window_size=local_window_size,
        return_residual=return_residual,
    )


@composite(static=("is_causal", "local_window_size", "return_residual"))
def _by_xla(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    mask: Any,
    query_seq_lengths: Any,
    key_value_seq_lengths: Any,
    *,
    scale: Any,
    is_causal: bool,
    local_window_size: Any,
    return_residual: bool,
) -> Any:
    q, k, v, outer = _operands(query, key, value)
    fit = _fits(q, k, bias, scale)
    seen = _seen(mask, is_causal, local_window_size, key_value_seq_lengths, _sizes(q, k))
    if seen is not None:
        fit = jnp.where(_by_group(seen, q, k), fit, _NEVER)
    mean = _weighted(softmax(fit, axis=-1).astype(k.dtype), v)
    mean = _of_lengths(mean, query_seq_lengths).reshape(*outer, q.shape[-1])
    if not return_residual:
        return mean
    return mean, logsumexp(fit, axis=-1).swapaxes(1, 2).reshape(outer).astype(k.dtype)


@composite(static=("scale", "is_causal", "local_window_size", "return_residual"))
def _by_cudnn(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    mask: Any,
    query_seq_lengths: Any,
    key_value_seq_lengths: Any,
    *,
    scale: float | None,
    is_causal: bool,
    local_window_size: Any,
    return_residual: bool,
) -> Any:
    q, k, v, outer = _operands(query, key, value)
    sizes = _sizes(q, k)
    given = (("query_seq_lengths", query_seq_lengths), ("key_value_seq_lengths", key_value_seq_lengths))
    mean, *logs = cudnn_attention(
        q,
        k,
        v,
        None if bias is None else _broadcasting("bias", bias, sizes),
        None if mask is None else _checked_mask(mask, sizes),
        tuple(_given_lengths(what, x, q.shape[0]) for what, x in given),
        1 / math.sqrt(q.shape[3]) if scale is None else scale,
        is_causal,
        None if local_window_size is None else _window(local_window_size),
        return_residual,
    )
    mean = mean.reshape(*outer, q.shape[-1])
    return (mean, logs[0].transpose(0, 2, 1).reshape(outer).astype(k.dtype)) if return_residual else mean


@composite(static=("scale", "is_causal", "local_window_size", "return_residual"))
def _by_tiles(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    mask: Any,
    query_seq_lengths: Any,
    key_value_seq_lengths: Any,
    *,
    scale: float | None,
    is_causal: bool,
    local_window_size: Any,
    return_residual: bool,
) -> Any:
    q, k, v, outer = _operands(query, key, value)
    sizes = _sizes(q, k)
    mean, logs = tiled_attention(
        q,
        k,
        v,
        None if bias is None else _broadcasting("bias", bias, sizes),
        None if mask is None else _checked_mask(mask, sizes),
        _given_lengths("key_value_seq_lengths", key_value_seq_lengths, q.shape[0]),
        1 / math.sqrt(q.shape[3]) if scale is None else scale,
        is_causal,
        None if local_window_size is None else _window(local_window_size),
    )
    mean = _of_lengths(mean, query_seq_lengths).reshape(*outer, q.shape[-1])
    return (mean, logs.swapaxes(1, 2).reshape(outer).astype(k.dtype)) if return_residual else mean


# --- helpers


def _operands(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Queries, keys and values with a batch, checked, and the shape of the queries as given but for the features."""
    q, k, v = (as_operand(_NAME, x) for x in (query, key, value))
    outer = q.shape[:-1]
    if q.ndim == 3:
        q, k, v = (x[None] for x in (q, k, v))
    _check(q, k, v)
    return q, k, v, outer


def _of_lengths(mean: Any, lengths: Any) -> Any:
    """The means of the first queries of each example, and zeros."""
    if lengths is None:
        return mean
    there = jnp.arange(mean.shape[1]) < _lengths("query_seq_lengths", lengths, mean.shape[0])[:, None]
    return mean * there[:, :, None, None].astype(mean.dtype)


def _sizes(q: Any, k: Any) -> tuple[int, ...]:
    return q.shape[0], q.shape[2], q.shape[1], k.shape[1]


def _check(q: Any, k: Any, v: Any) -> None:
    found = f"query {q.shape}, key {k.shape}, value {v.shape}"
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3]):
        raise ShapeError(
            f"{_NAME}: key and value must have shape (batch, keys, heads, features), with batch and features of the "
            f"query; got {found}"
        )
    if not k.shape[2] or q.shape[2] % k.shape[2]:
        heads = f"the {q.shape[2]} query heads must be a multiple of the {k.shape[2]} key heads"
        raise ShapeError(f"{_NAME}: {heads}: {found}")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            f"{_NAME}: query, key and value must have one dtype, got {q.dtype}, {k.dtype}, {v.dtype}; "
            "convert them with .astype"
        )


def _fits(q: Any, k: Any, bias: Any, scale: Any) -> Any:
    """The attention logits of each key for each query, in the order of axes b, k, t, g, s."""
    wide = jnp.promote_types(q.dtype, np.float32)
    if _share_keys(q, k):
        grouped = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
        fit = jnp.einsum("btkgh,bskh->bktgs", grouped, k, preferred_element_type=wide)
    else:
        fit = jnp.einsum("btkh,bskh->bkts", q, k, preferred_element_type=wide)
    fit = (fit * (1 / math.sqrt(q.shape[3]) if scale is None else scale)).astype(wide)
    return fit if bias is None else (fit + _by_group(_broadcasting("bias", bias, _sizes(q, k)), q, k)).astype(wide)


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


def _broadcasting(what: str, x: Any, sizes: tuple[int, ...]) -> Any:
    """An array of four dimensions that broadcasts to (batch, heads, queries, keys)."""
    given = as_operand(_NAME, x)
    x = given[None] if given.ndim == 3 else given
    if x.ndim != 4 or any(m not in (1, n) for m, n in zip(x.shape, sizes, strict=True)):
        raise ShapeError(
            f"{_NAME}: {what} must have four dimensions, or three without the batch, that broadcast to "
            f"(batch, heads, queries, keys) = {sizes}, got {given.shape}"
        )
    return x


def _checked_mask(mask: Any, sizes: tuple[int, ...]) -> Any:
    if as_operand(_NAME, mask).dtype != bool:
        raise TypeError(f"{_NAME}: mask must hold booleans, not {mask.dtype}; numbers are added as bias")
    return _broadcasting("mask", mask, sizes)


def _seen(mask: Any, is_causal: bool, window: Any, lengths: Any, sizes: tuple[int, ...]) -> Any:
    """The attention mask: the keys that each query may see, for (batch, heads, queries, keys); None for all."""
    b, _, t, s = sizes
    found = []
    if mask is not None:
        found.append(_checked_mask(mask, sizes))
    queries, keys = jnp.arange(t)[None, None, :, None], jnp.arange(s)
    if is_causal:
        found.append(keys <= queries)
    if window is not None:
        before, after = _window(window)
        found.append((keys >= queries - before) & (keys <= queries + after))
    if lengths is not None:
        found.append(keys < _lengths("key_value_seq_lengths", lengths, b)[:, None, None, None])
    seen = None
    for each in found:
        seen = each if seen is None else seen & each
    return seen


def _window(window: Any) -> tuple[int, int]:
    before, after = window if isinstance(window, tuple) else (window, window)
    return as_index(_NAME, "local_window_size", before), as_index(_NAME, "local_window_size", after)


def _given_lengths(what: str, lengths: Any, batch: int) -> Any:
    return None if lengths is None else _lengths(what, lengths, batch)


def _lengths(what: str, lengths: Any, batch: int) -> Any:
    """Lengths, one for each example."""
    lengths = as_operand(_NAME, lengths)
    if lengths.shape != (batch,):
        raise ShapeError(f"{_NAME}: {what} must have shape ({batch},), one for each example; got {lengths.shape}")
    return lengths
