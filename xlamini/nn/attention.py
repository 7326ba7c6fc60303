"""Attention: each query takes the mean of the values, weighted by how well their keys fit it."""
from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.nn.attention_products import both, logs_of, seen_keys, weighted_means
from xlamini.nn.cudnn_attention import cudnn_attention
from xlamini.nn.fused_attention import LEAST_PLACES, Attention, fused_attention
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import Flash
from xlamini.nn.tiled_attention import attend, ids_of, masked
from xlamini.numpy.arguments import as_index, as_operand
from xlamini.primitives.base.precision import canonical_precision
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
      implementation: None for the best that the platform has: from 512 queries and keys on kernels that write no
        products to memory, on a TPU and for bfloat16 and float16 on a newer NVIDIA GPU, in forward and reverse mode;
        else, and for all other derivatives, a bias, a traced `scale` or a residual, "xla", the operations that XLA
        compiles.
        "flash" for kernels of this library wherever it runs, as a loop on a CPU; they take a `scale` that is a Python
        number, have first derivatives in reverse mode on a device, and give 0 for a query that sees no key. "cudnn"
        for those of cuDNN; they take bfloat16 and float16, a `scale` that is a Python number, and have first
        derivatives only, of the array alone.

    Returns an array of the shape and dtype of `query`; products are summed and the softmax is taken in float32 or
    wider. ShapeError and TypeError for arrays that do not fit, ValueError for an unknown `implementation`,
    NotImplementedError for what cuDNN lacks, PlatformError where it is not.

    >>> x = jnp.ones((4, 2, 8))
    >>> dot_product_attention(x, x, x, is_causal=True).shape
    (4, 2, 8)
    """
    may_fuse = bias is None and not return_residual and _may_be_fused(query, key, scale)
    automatic = _fused if may_fuse else _by_xla
    compute = {None: automatic, "xla": _by_xla, "cudnn": _by_cudnn, "flash": _by_tiles}.get(implementation)
    if compute is None:
        raise ValueError(f"{_NAME}: implementation must be 'xla', 'cudnn', 'flash' or None, got {implementation!r}")
    arrays = _Given(query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths)
    options = {"is_causal": is_causal, "local_window_size": local_window_size, "return_residual": return_residual}
    return compute(arrays, scale, **options)


class _Given(NamedTuple):
    query: Any
    key: Any
    value: Any
    bias: Any
    mask: Any
    query_lengths: Any
    key_lengths: Any


_STATIC = "is_causal", "local_window_size", "return_residual"


@composite(static=_STATIC)
def _by_xla(arrays: _Given, scale: Any, *, is_causal: bool, local_window_size: Any, return_residual: bool) -> Any:
    x = _checked(arrays)
    mask = both(_with_lengths(x), seen_keys(x.q.shape[1], x.k.shape[1], *_reach(is_causal, local_window_size)))
    mean, fit = weighted_means(x.q, x.k, x.v, x.bias, mask, _scale(scale, x.q))
    return _results(x, mean, logs_of(fit, x.q) if return_residual else None)


@composite(static=("scale", *_STATIC))
def _fused(
    arrays: _Given, scale: float | None, *, is_causal: bool, local_window_size: Any, return_residual: bool
) -> Any:
    x = _checked(arrays)
    mask, reach = _with_lengths(x), _reach(is_causal, local_window_size)
    how = Attention(_scale(scale, x.q), *reach, canonical_precision(None, _NAME), mask is not None)
    return _results(x, fused_attention(how, (x.q, x.k, x.v, *([] if mask is None else [mask]))), None)


@composite(static=("scale", *_STATIC))
def _by_cudnn(
    arrays: _Given, scale: float | None, *, is_causal: bool, local_window_size: Any, return_residual: bool
) -> Any:
    x = _checked(arrays)
    lengths = x.query_lengths, x.key_lengths
    window = None if local_window_size is None else _window(local_window_size)
    options = _scale(scale, x.q), is_causal, window, return_residual
    mean, *logs = cudnn_attention(x.q, x.k, x.v, x.bias, x.mask, lengths, *options)
    return _results(x._replace(query_lengths=None), mean, logs[0] if logs else None)


@composite(static=("scale", *_STATIC))
def _by_tiles(
    arrays: _Given, scale: float | None, *, is_causal: bool, local_window_size: Any, return_residual: bool
) -> Any:
    x = _checked(arrays)
    ids = None if x.key_lengths is None else ids_of(x.key_lengths, x.q.shape[1], x.k.shape[1])
    q, k, v = (a.swapaxes(1, 2) for a in (x.q, x.k, x.v))
    whole = Arrays(q, k, v, masked(x.bias, x.mask), ids)
    mean, logs = attend(whole, Flash(_scale(scale, x.q), *_reach(is_causal, local_window_size)))
    return _results(x, mean.swapaxes(1, 2), logs if return_residual else None)


# --- helpers


def _may_be_fused(query: Any, key: Any, scale: Any) -> bool:
    """Whether there are so many products of queries and keys that a platform may have a kernel for them."""
    shapes = np.shape(query)[-3:], np.shape(key)[-3:]
    sizes = [shape[0] for shape in shapes if len(shape) == 3]
    is_number = scale is None or isinstance(scale, int | float)
    return is_number and len(sizes) == 2 and not is_symbolic_shape(sizes) and min(sizes) >= LEAST_PLACES


class _Checked(NamedTuple):
    """The arrays with a batch, and the shape of the queries as given but for the features."""

    q: Any
    k: Any
    v: Any
    bias: Any
    mask: Any
    query_lengths: Any
    key_lengths: Any
    outer: tuple[int, ...]


def _checked(x: _Given) -> _Checked:
    q, k, v = (as_operand(_NAME, each) for each in x[:3])
    outer = q.shape[:-1]
    if q.ndim == 3:
        q, k, v = (each[None] for each in (q, k, v))
    _check(q, k, v)
    sizes = q.shape[0], q.shape[2], q.shape[1], k.shape[1]
    bias = None if x.bias is None else _broadcasting("bias", x.bias, sizes)
    mask = None if x.mask is None else _checked_mask(x.mask, sizes)
    named = (("query_seq_lengths", x.query_lengths), ("key_value_seq_lengths", x.key_lengths))
    of_queries, of_keys = (None if each is None else _lengths(what, each, q.shape[0]) for what, each in named)
    return _Checked(q, k, v, bias, mask, of_queries, of_keys, outer)


def _results(x: _Checked, mean: Any, logs: Any) -> Any:
    """The means of the first queries of each example, and zeros; with `logs`, of shape (batch, heads, queries)."""
    if x.query_lengths is not None:
        there = jnp.arange(mean.shape[1]) < x.query_lengths[:, None]
        mean = mean * there[:, :, None, None].astype(mean.dtype)
    mean = mean.reshape(*x.outer, x.q.shape[-1])
    return mean if logs is None else (mean, logs.swapaxes(1, 2).reshape(x.outer).astype(x.k.dtype))


def _with_lengths(x: _Checked) -> Any:
    """The mask, which also hides keys from the length on; None without either."""
    there = None if x.key_lengths is None else jnp.arange(x.k.shape[1]) < x.key_lengths[:, None, None, None]
    return both(x.mask, there)


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


def _lengths(what: str, lengths: Any, batch: int) -> Any:
    """Lengths, one for each example."""
    lengths = as_operand(_NAME, lengths)
    if lengths.shape != (batch,):
        raise ShapeError(f"{_NAME}: {what} must have shape ({batch},), one for each example; got {lengths.shape}")
    return lengths
