"""Attention by cuDNN's fused kernels: what they take, and their derivative.

Which keys a query sees is told to a kernel by name where it knows the pattern; a mask of booleans is added to the bias.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.primitives.products.cudnn_attention import Fused, cudnn_attention_backward_p, cudnn_attention_p
from xlamini.transforms.custom.custom_vjp import custom_vjp

_NAME = "dot_product_attention"
_NEVER = {"bfloat16": -(2.0**41), "float16": -(2.0**15)}
"""Added to the products of queries with keys that they do not see."""
_MOST_FEATURES, _MULTIPLE = 256, 8
_MOST_FEATURES_ANYWHERE = 128
"""256 are for the derivative on a Hopper or newer."""


def cudnn_attention(
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    mask: Any,
    lengths: tuple[Any, ...],
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
    residual: bool,
) -> tuple[Any, ...]:
    """The means, and with `residual` the logarithms of the denominators, of shape (batch, heads, queries).

    `bias` and `mask` have four dimensions, `lengths` are those of queries and keys or None. NotImplementedError for
    what cuDNN lacks. The logarithms have no derivative, as in JAX.
    """
    _check_supported(q)
    added = _added(q, k, bias, mask)
    counts = _counts(q, k, *lengths)
    how = Fused(
        scale=float(scale),
        causal=causal or _ends_at_its_place(window),
        window=0 if window is None else _seen_before(window, causal),
        has_bias=added is not None,
        has_lengths=bool(counts),
    )
    return tuple(_fused(how, residual, (q, k, v, *([] if added is None else [added]), *counts)))


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _fused(how: Fused, residual: bool, operands: tuple[Any, ...]) -> list[Any]:
    return cudnn_attention_p.bind(*operands, how=how, residual=residual)


def _forward(how: Fused, residual: bool, operands: tuple[Any, ...]) -> Any:
    queries, keys = operands[0].shape[1], operands[1].shape[1]
    if queries % 2 or keys % 2:
        raise NotImplementedError(
            f"{_NAME}: cuDNN has a derivative for even numbers of queries and keys, got {queries} and {keys}; pad "
            "them and pass the lengths, or pass implementation=None"
        )
    mean, logs = cudnn_attention_p.bind(*operands, how=how, residual=True)
    return [mean, logs] if residual else [mean], (operands, mean, logs)


def _backward(how: Fused, residual: bool, kept: Any, cts: Any) -> Any:
    operands, mean, logs = kept
    inputs = 4 if how.has_bias else 3
    counts = operands[inputs:]
    found = cudnn_attention_backward_p.bind(*operands[:3], logs, cts[0], *operands[3:inputs], mean, *counts, how=how)
    return ((*found, *(None for _ in counts)),)


_fused.defvjp(_forward, _backward)


def fits_cudnn(q: Any, k: Any, before: int | None, after: int | None) -> bool:
    """Whether cuDNN has attention and its derivative for such queries and keys, on all GPUs that have attention."""
    knows_pattern = after == 0 or before is after is None
    fits = q.dtype.name in _NEVER and q.shape[3] % _MULTIPLE == 0 and q.shape[3] <= _MOST_FEATURES_ANYWHERE
    return knows_pattern and fits and q.shape[2] == k.shape[2] and not (q.shape[1] % 2 or k.shape[1] % 2)


def pattern(scale: float, before: int | None, after: int | None) -> Fused:
    """What a kernel computes for what `fits_cudnn`."""
    return Fused(float(scale), after == 0, 0 if before is None else before + 1, has_bias=False, has_lengths=False)


def forward(q: Any, k: Any, v: Any, how: Fused) -> Any:
    """The means and the logarithms of the denominators."""
    return cudnn_attention_p.bind(q, k, v, how=how, residual=True)


def backward(q: Any, k: Any, v: Any, mean: Any, logs: Any, ct: Any, how: Fused) -> Any:
    """The cotangents of queries, keys and values."""
    return cudnn_attention_backward_p.bind(q, k, v, logs, ct, mean, how=how)


# --- helpers


def _check_supported(q: Any) -> None:
    if q.dtype.name not in _NEVER:
        raise NotImplementedError(f"{_NAME}: cuDNN takes bfloat16 and float16, got {q.dtype}; convert with .astype")
    features = q.shape[3]
    if features % _MULTIPLE or features > _MOST_FEATURES:
        raise NotImplementedError(
            f"{_NAME}: cuDNN takes a multiple of {_MULTIPLE} features, {_MOST_FEATURES} at most, got {features}; pad "
            "them with zeros, or pass implementation=None"
        )


def _added(q: Any, k: Any, bias: Any, mask: Any) -> Any:
    """The bias with the mask in it, for all queries and keys; None without either."""
    if bias is not None and bias.dtype not in (q.dtype, np.float32):
        bias = bias.astype(q.dtype)
    if mask is not None:
        seen = jnp.where(mask, np.zeros((), q.dtype), np.asarray(_NEVER[q.dtype.name], q.dtype))
        bias = seen if bias is None else bias + seen
    if bias is None:
        return None
    return jnp.broadcast_to(bias, (*bias.shape[:2], q.shape[1], k.shape[1]))


def _counts(q: Any, k: Any, queries: Any, keys: Any) -> list[Any]:
    """How many queries and keys there are in each example; nothing where there are all."""
    if queries is None and keys is None:
        return []
    given = ((queries, q.shape[1]), (keys, k.shape[1]))
    return [jnp.full(q.shape[:1], most, np.int32) if x is None else x.astype(np.int32) for x, most in given]


def _ends_at_its_place(window: tuple[int, int] | None) -> bool:
    return window is not None and window[1] == 0


def _seen_before(window: tuple[int, int], causal: bool) -> int:
    before, after = window
    if after and not causal:
        raise NotImplementedError(
            f"{_NAME}: cuDNN has no windows of later keys, got local_window_size={window}; pass ({before}, 0) or "
            "implementation=None"
        )
    return before + 1
