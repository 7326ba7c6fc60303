"""The layers' operands: random numbers, equal in each process."""

from __future__ import annotations

import numpy as np

from benchmarks.networks.layers import FORWARD, Layer


def operands(layer: Layer) -> list[np.ndarray]:
    """The operands of the forward computation, then the result's cotangent if a cotangent is computed."""
    shapes = [layer.x]
    if layer.kind in ("conv", "depthwise", "up-conv", "matmul"):
        shapes.append(layer.kernel)
    if layer.kind == "attention":
        shapes *= 3
    if layer.of != FORWARD:
        shapes.append(_result(layer))
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def _result(layer: Layer) -> tuple[int, ...]:
    if not layer.kernel:
        return layer.x
    window = layer.kernel[-(len(layer.x) - 2) :]
    features = layer.kernel[0] if layer.kind in ("conv", "depthwise") else layer.x[1]
    sizes = zip(layer.x[2:], window, strict=True)
    space = [(n + sum(layer.pad) - layer.dilation * (k - 1) - 1) // layer.stride + 1 for n, k in sizes]
    return (layer.x[0], features, *space)
