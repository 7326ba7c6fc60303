"""The layers as a user of NumPy writes them; convolutions as products of all windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.networks.layers import FORWARD, KERNEL, Layer
from benchmarks.networks.operands import operands


def program(layer: Layer) -> Callable[[], Any] | None:
    """A call of the layer; None for what NumPy has no function of: erf, bfloat16, derivatives but the embedding's."""
    function = _KINDS.get(layer.kind if layer.of == FORWARD else f"{layer.kind}, {layer.of}")
    if function is None or "bfloat16" in layer.dtypes:
        return None
    arrays = operands(layer)
    return lambda: function(layer, *arrays)


def _windows(layer: Layer, x: np.ndarray, filler: float = 0.0) -> np.ndarray:
    """All windows of an operand, as a view: (batch, channels, space…, window…)."""
    space = len(x.shape) - 2
    around = np.pad(x, [(0, 0)] * 2 + [layer.pad] * space, constant_values=filler)
    size = [layer.dilation * (k - 1) + 1 for k in layer.kernel[-space:]]
    views = sliding_window_view(around, size, tuple(range(2, 2 + space)))
    steps = [slice(None)] * 2 + [slice(None, None, layer.stride)] * space + [slice(None, None, layer.dilation)] * space
    return views[tuple(steps)]


def _conv(layer: Layer, x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    if layer.groups > 1:
        return _grouped(layer, x, kernel)
    views, space = _windows(layer, x), len(x.shape) - 2
    axes = [1, *range(2 + space, 2 + 2 * space)]
    return np.moveaxis(np.tensordot(views, kernel, (axes, range(1, 2 + space))), -1, 1)


def _grouped(layer: Layer, x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    parts = zip(np.split(x, layer.groups, 1), np.split(kernel, layer.groups), strict=True)
    return np.concatenate([_conv(replace(layer, groups=1), *pair) for pair in parts], 1)


def _depthwise(layer: Layer, x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    return np.einsum("nchwij,cij->nchw", _windows(layer, x), kernel[:, 0])


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _layer_norm(layer: Layer, x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def _group_norm(layer: Layer, x: np.ndarray) -> np.ndarray:
    return _layer_norm(layer, x.reshape(x.shape[0], layer.groups, -1)).reshape(x.shape)


def _gru(layer: Layer, x: np.ndarray, kernel: np.ndarray, recurrent: np.ndarray) -> np.ndarray:
    states, state = [], np.zeros((x.shape[1], recurrent.shape[1]), x.dtype)
    for given in x @ kernel.T:
        (z, r, n), (kept_z, kept_r, kept_n) = (np.split(a, 3, -1) for a in (given, state @ recurrent.T))
        new = np.tanh(n + kept_n / (1 + np.exp(-r - kept_r)))
        state = new + (state - new) / (1 + np.exp(-z - kept_z))
        states.append(state)
    return np.stack(states)


def _embedding_gradient(layer: Layer, ids: np.ndarray, table: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
    gradient = np.zeros_like(table)
    np.add.at(gradient, ids, cotangent)
    return gradient


def _matmul(layer: Layer, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.matmul(x, y, dtype=np.int32 if x.dtype.kind in "iu" else None)


_KINDS: dict[str, Callable[..., np.ndarray]] = {
    "conv": _conv,
    "depthwise": _depthwise,
    "max pool": lambda layer, x: _windows(layer, x, -np.inf).max((-2, -1)),
    "average pool": lambda layer, x: _windows(layer, x).mean((-2, -1)),
    "layer norm": _layer_norm,
    "group norm": _group_norm,
    "attention": lambda layer, q, k, v: _softmax(q @ np.swapaxes(k, -1, -2) / 8) @ v,
    "softmax": lambda layer, x: _softmax(x),
    "matmul": _matmul,
    "GRU": _gru,
    "embedding": lambda layer, ids, table: table[ids],
    f"embedding, {KERNEL}": _embedding_gradient,
    "sort": lambda layer, x: np.sort(x),
    "FFT": lambda layer, x: np.fft.fft(x),
    "random normal": lambda layer, seed: np.random.default_rng(seed.item()).standard_normal(layer.x, np.float32),
}
