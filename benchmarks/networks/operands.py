"""The layers' operands: random numbers, equal in each process."""

from __future__ import annotations

import numpy as np

from benchmarks.networks.layers import FORWARD, Layer, Shape

_WITH_KERNEL = {"conv", "depthwise", "up-conv", "matmul", "embedding"}


def operands(layer: Layer) -> list[np.ndarray]:
    """The operands of the forward computation, then the result's cotangent if a cotangent is computed."""
    if layer.kind == "random normal":
        return [np.array(0, np.int32)]  # the seed
    shapes = [layer.x, *_others(layer)]
    if layer.of != FORWARD:
        shapes.append(_result(layer))
    dtypes = [*layer.dtypes, *["float32"] * (len(shapes) - len(layer.dtypes))]
    rng, greatest = np.random.default_rng(0), layer.kernel[0] if layer.kind == "embedding" else None
    return [_random(rng, shape, dtype, greatest) for shape, dtype in zip(shapes, dtypes, strict=True)]


def _others(layer: Layer) -> list[Shape]:
    """The shapes of the operands after the first."""
    if layer.kind == "attention":
        return [layer.x, layer.x]
    if layer.kind == "GRU":
        return [layer.kernel, (layer.kernel[0], layer.kernel[0] // 3)]
    return [layer.kernel] if layer.kind in _WITH_KERNEL else []


def _random(rng: np.random.Generator, shape: Shape, dtype: str, greatest: int | None) -> np.ndarray:
    """Normal numbers; integers of all the dtype's values, or below `greatest`."""
    if "int" in dtype:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        return rng.integers(0 if greatest else least, greatest or most + 1, shape, dtype)
    if dtype == "complex64":
        return rng.standard_normal((*shape, 2), np.float32).view(dtype)[..., 0]
    return rng.standard_normal(shape, np.float32).astype(dtype)


def _result(layer: Layer) -> Shape:
    if layer.kind == "GRU":
        return (*layer.x[:-1], layer.kernel[0] // 3)
    if layer.kind == "embedding":
        return (*layer.x, layer.kernel[1])
    if not layer.kernel:
        return layer.x
    window = layer.kernel[-(len(layer.x) - 2) :]
    if layer.kind == "up-conv":
        space = [(n - 1) * layer.stride + k for n, k in zip(layer.x[2:], window, strict=True)]
        return (layer.x[0], layer.kernel[1], *space)
    features = layer.kernel[0] if layer.kind in ("conv", "depthwise") else layer.x[1]
    sizes = zip(layer.x[2:], window, strict=True)
    space = [(n + sum(layer.pad) - layer.dilation * (k - 1) - 1) // layer.stride + 1 for n, k in sizes]
    return (layer.x[0], features, *space)
