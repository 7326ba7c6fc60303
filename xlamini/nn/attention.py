"""Attention: each query takes the mean of the values, weighted by how well their keys fit it."""
from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.nn.attention_products import both, logs_of, seen_keys, weighted_means
from xlamini.nn.cudnn_attention import cudnn_attention
from xlamini.nn.fused_attention import LEAST_PLACES, Attention, fused_attention
from xlamini.nn.tiled_attention import tiled_attention
from xlamini.numpy.arguments import as_index, as_operand
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_NAME = "dot_product_attention"


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
    automatic = _fused if _may_be_fused(query, key, scale, return_residual) else _by_xla
    attend = {None: automatic, "xla": _by_xla, "cudnn": _by_cudnn, "flash": _by_tiles}.get(implementation)
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
    sizes = _sizes(q, k)
    bias = None if bias is None else _broadcasting("bias", bias, sizes)
    mask = _with_lengths(mask, key_value_seq_lengths, sizes)
    seen = both(mask, seen_keys(*sizes[2:], *_reach(is_causal, local_window_size)))
    mean, fit = weighted_means(q, k, v, bias, seen, _scale(scale, q))
    mean = _of_lengths(mean, query_seq_lengths).reshape(*outer, q.shape[-1])
    return (mean, logs_of(fit, q).swapaxes(1, 2).reshape(outer).astype(k.dtype)) if return_residual else mean


@composite(static=("scale", "is_causal", "local_window_size", "return_residual"))
def _fused(
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
    bias = None if bias is None else _broadcasting("bias", bias, sizes)
    mask = _with_lengths(mask, key_value_seq_lengths, sizes)
    before, after = _reach(is_causal, local_window_size)
    how = Attention(_scale(scale, q), before, after, bias is not None, mask is not None)
    mean = fused_attention(how, (q, k, v, *(x for x in (bias, mask) if x is not None)))
    return _of_lengths(mean, query_seq_lengths).reshape(*outer, q.shape[-1])


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
        _scale(scale, q),
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
        _scale(scale, q),
        *_reach(is_causal, local_window_size),
    )
    mean = _of_lengths(mean, query_seq_lengths).reshape(*outer, q.shape[-1])
    return (mean, logs.swapaxes(1, 2).reshape(outer).astype(k.dtype)) if return_residual else mean


# --- helpers


def _may_be_fused(query: Any, key: Any, scale: Any, return_residual: bool) -> bool:
    """Whether there are so many products of queries and keys that a platform may have a kernel for them."""
    shapes = np.shape(query)[-3:], np.shape(key)[-3:]
    sizes = [shape[0] for shape in shapes if len(shape) == 3]
    is_number = scale is None or isinstance(scale, int | float)
    return is_number and not return_residual and len(sizes) == 2 and min(sizes) >= LEAST_PLACES


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


def _with_lengths(mask: Any, lengths: Any, sizes: tuple[int, ...]) -> Any:
    """The mask, which also hides keys from the length on; None without either."""
    mask = None if mask is None else _checked_mask(mask, sizes)
    if lengths is None:
        return mask
    there = jnp.arange(sizes[3]) < _lengths("key_value_seq_lengths", lengths, sizes[0])[:, None, None, None]
    return both(mask, there)


def _reach(is_causal: bool, window: Any) -> tuple[int | None, int | None]:
    """How many keys a query sees before and after its own place; None for all."""
    before, after = (None, None) if window is None else _window(window)
    if is_causal:
        after = 0 if after is None else min(after, 0)
    return before, after


def _scale(scale: Any, q: Any) -> Any:
    return 1 / math.sqrt(q.shape[3]) if scale is None else scale


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
