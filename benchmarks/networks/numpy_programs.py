"""The layers as a user of NumPy writes them; convolutions as products of all windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.networks.layers import FORWARD, Layer
from benchmarks.networks.operands import operands


def program(layer: Layer) -> Callable[[], Any] | None:
    """A call of the layer; None for derivatives and for what NumPy has no function of: erf."""
    function = _KINDS.get(layer.kind)
    if function is None or layer.of != FORWARD:
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


_KINDS: dict[str, Callable[..., np.ndarray]] = {
    "conv": _conv,
    "depthwise": _depthwise,
    "max pool": lambda layer, x: _windows(layer, x, -np.inf).max((-2, -1)),
    "average pool": lambda layer, x: _windows(layer, x).mean((-2, -1)),
    "layer norm": _layer_norm,
    "group norm": _group_norm,
    "attention": lambda layer, q, k, v: _softmax(q @ np.swapaxes(k, -1, -2) / 8) @ v,
    "softmax": lambda layer, x: _softmax(x),
    "matmul": lambda layer, x, y: x @ y,
}
