"""Convolutions: gradients of depthwise and transposed ones, and the training step of three bottlenecks of a ResNet."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.targets.program import Program, f32, i32

NUMBERS = ("NHWC", "HWIO", "NHWC")
STRIDES = (1, 1, 2)


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""

    def depthwise(x: Any, w: Any) -> Any:
        return _conv(jax, x, w, groups=128).sum() ** 2

    def transposed(x: Any, w: Any) -> Any:
        return (jax.lax.conv_transpose(x, w, (2, 2), "SAME") ** 2).sum()

    state = (_shapes(), f32(32, 224, 224, 3), i32(32))
    dtypes = {"f32": "float32", "bf16": "bfloat16"}
    return [
        Program("conv_depthwise_grad", jax.grad(depthwise, (0, 1)), (f32(8, 64, 64, 128), f32(3, 3, 1, 128))),
        Program("conv_transpose_grad", jax.grad(transposed, (0, 1)), (f32(8, 32, 32, 64), f32(4, 4, 64, 64))),
        *(Program(f"resnet_train_{short}", _step(jax, dtype), state, (0,)) for short, dtype in dtypes.items()),
    ]


def _conv(jax: ModuleType, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    conv = jax.lax.conv_general_dilated
    return conv(x, w, (stride, stride), "SAME", dimension_numbers=NUMBERS, feature_group_count=groups)


def _batch_norm(jax: ModuleType, x: Any, p: Any) -> Any:
    wide = x.astype(jax.numpy.float32)
    mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    return ((x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[0] + p[1]).astype(x.dtype)


def _bottleneck(jax: ModuleType, x: Any, p: Any, stride: int) -> Any:
    relu = jax.nn.relu
    y = relu(_batch_norm(jax, _conv(jax, x, p["c1"]), p["b1"]))
    y = relu(_batch_norm(jax, _conv(jax, y, p["c2"], stride), p["b2"]))
    y = _batch_norm(jax, _conv(jax, y, p["c3"]), p["b3"])
    beside = _batch_norm(jax, _conv(jax, x, p["cs"], stride), p["bs"]) if "cs" in p else x
    return relu(y + beside)


def _shapes() -> dict[str, Any]:
    blocks = [_block_shapes(64, 64, 256, True), _block_shapes(256, 64, 256, False), _block_shapes(256, 128, 512, True)]
    return {"stem": f32(7, 7, 3, 64), "norm": _pair(64), "blocks": blocks, "head": f32(512, 1000)}


def _block_shapes(before: int, inside: int, after: int, beside: bool) -> dict[str, Any]:
    kernels = {"c1": f32(1, 1, before, inside), "c2": f32(3, 3, inside, inside), "c3": f32(1, 1, inside, after)}
    norms = {"b1": _pair(inside), "b2": _pair(inside), "b3": _pair(after)}
    return kernels | norms | ({"cs": f32(1, 1, before, after), "bs": _pair(after)} if beside else {})


def _pair(size: int) -> Any:
    return f32(size), f32(size)


def _step(jax: ModuleType, dtype: str) -> Callable[[Any, Any, Any], Any]:
    def loss(params: Any, x: Any, labels: Any) -> Any:
        params, x = jax.tree.map(lambda p: p.astype(dtype), (params, x))
        x = jax.nn.relu(_batch_norm(jax, _conv(jax, x, params["stem"], 2), params["norm"]))
        start = np.array(-np.inf, x.dtype)
        x = jax.lax.reduce_window(x, start, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for p, stride in zip(params["blocks"], STRIDES, strict=True):
            x = _bottleneck(jax, x, p, stride)
        logs = jax.nn.log_softmax((x.mean((1, 2)) @ params["head"]).astype(jax.numpy.float32))
        return -jax.numpy.take_along_axis(logs, labels[:, None], 1).mean()

    def step(params: Any, x: Any, labels: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, x, labels)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    return step
