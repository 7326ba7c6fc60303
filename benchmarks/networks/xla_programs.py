"""The layers as functions of xlamini or JAX, which is an argument."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.networks.layers import FORWARD, INPUT, Layer


def program(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    """The function of the layer's operands, followed by the result's cotangent if a cotangent is what it computes."""
    forward = _KINDS[layer.kind](jax, layer)
    if layer.of == FORWARD:
        return forward
    which = 0 if layer.of == INPUT else 1
    return lambda *operands: jax.vjp(forward, *operands[:-1])[1](operands[-1])[which]


def _conv(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    space = len(layer.x) - 2

    def conv(x: Any, kernel: Any) -> Any:
        steps, holes = (layer.stride,) * space, (layer.dilation,) * space
        padding = [layer.pad] * space
        return jax.lax.conv_general_dilated(
            x, kernel, steps, padding, rhs_dilation=holes, feature_group_count=layer.groups
        )

    return conv


def _up_conv(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    steps, numbers = (layer.stride,) * 2, ("NCHW", "IOHW", "NCHW")
    return lambda x, kernel: jax.lax.conv_transpose(x, kernel, steps, "VALID", dimension_numbers=numbers)


def _windows(layer: Layer) -> dict[str, Any]:
    return {
        "window_dimensions": (1, 1, *layer.kernel),
        "window_strides": (1, 1, layer.stride, layer.stride),
        "padding": [(0, 0), (0, 0), layer.pad, layer.pad],
    }


def _max_pool(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    lax = jax.lax
    return lambda x: lax.reduce_window(x, -float("inf"), lax.max, **_windows(layer))


def _average_pool(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    lax, places = jax.lax, layer.kernel[0] * layer.kernel[1]
    return lambda x: lax.reduce_window(x, 0.0, lax.add, **_windows(layer)) / places


def _layer_norm(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    def norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    return norm


def _group_norm(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    norm = _layer_norm(jax, layer)
    return lambda x: norm(x.reshape(x.shape[0], layer.groups, -1)).reshape(x.shape)


def _attention(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    jnp = jax.numpy

    def attention(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8, axis=-1)
        return jnp.einsum("bhqk,bhkd->bhqd", weights, v)

    return attention


def _gru(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    """The inputs' products are taken at once, before the loop over the sequence."""
    lax, jnp = jax.lax, jax.numpy

    def gru(x: Any, kernel: Any, recurrent: Any) -> Any:
        def step(state: Any, given: Any) -> tuple[Any, Any]:
            (z, r, n), (kept_z, kept_r, kept_n) = (jnp.split(a, 3, -1) for a in (given, state @ recurrent.T))
            keep = jax.nn.sigmoid(z + kept_z)
            new = jnp.tanh(n + jax.nn.sigmoid(r + kept_r) * kept_n)
            state = new + keep * (state - new)
            return state, state

        start = jnp.zeros((x.shape[1], recurrent.shape[1]), x.dtype)
        return lax.scan(step, start, x @ kernel.T)[1]

    return gru


def _matmul(jax: ModuleType, layer: Layer) -> Callable[..., Any]:
    """Integers give int32, floats their own dtype."""
    result = "int32" if "int8" in layer.dtypes else None
    return lambda x, y: jax.numpy.matmul(x, y, preferred_element_type=result)


_KINDS: dict[str, Callable[[ModuleType, Layer], Callable[..., Any]]] = {
    "conv": _conv,
    "depthwise": _conv,
    "up-conv": _up_conv,
    "max pool": _max_pool,
    "average pool": _average_pool,
    "layer norm": _layer_norm,
    "group norm": _group_norm,
    "attention": _attention,
    "softmax": lambda jax, layer: lambda x: jax.nn.softmax(x, axis=-1),
    "gelu": lambda jax, layer: lambda x: jax.nn.gelu(x, approximate=False),
    "matmul": _matmul,
    "GRU": _gru,
    "embedding": lambda jax, layer: lambda ids, table: table[ids],
    "sort": lambda jax, layer: jax.numpy.sort,
    "FFT": lambda jax, layer: jax.numpy.fft.fft,
    "random normal": lambda jax, layer: lambda seed: jax.random.normal(jax.random.key(seed), layer.x),
}
