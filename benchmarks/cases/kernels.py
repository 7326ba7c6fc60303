"""The steady-state time of compiled programs of many kinds, large enough that dispatch does not matter."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Measurement, Settings, each_per_call

Calls = list[tuple[str, Callable[..., Any], tuple[Any, ...]]]

WORST, MEAN = 1.05, 0.8


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure each jitted kernel on device arrays, and the mean of all."""
    jax = load()
    programs = [program for group in (_matrices, _networks, _elements, _solvers) for program in group(jax)]
    calls = [(f"kernel: {what}", _jitted(jax, fun, args)) for what, fun, args in programs]
    measured = each_per_call(jax, calls, settings, WORST)
    seconds = [m.value for m in measured if m.value is not None]
    return [*measured, Measurement("kernels, geometric mean", statistics.geometric_mean(seconds), target=MEAN)]


def _jitted(jax: ModuleType, fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    compiled, placed = jax.jit(fun), jax.device_put(args)
    return lambda: compiled(*placed)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers, equal in each process."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _matrices(jax: ModuleType) -> Calls:
    jnp = jax.numpy

    def pairwise(x: Any) -> Any:
        squares = jnp.sum(x * x, axis=1)
        return jnp.sqrt(jnp.maximum(squares[:, None] + squares - 2 * x @ x.T, 0)).min(axis=1)

    return [
        ("matmul 1024", lambda x, y: x @ y, (normal(1024, 1024), normal(1024, 1024, seed=1))),
        ("batched matmul", lambda x, y: x @ y, (normal(64, 128, 128), normal(64, 128, 128, seed=1))),
        ("pairwise distances, 20,000 x 20,000", pairwise, (normal(20_000, 3),)),
        ("fft of 1M", lambda x: jnp.fft.fft(x), (normal(1_000_000),)),
    ]


def _networks(jax: ModuleType) -> Calls:
    jnp, lax = jax.numpy, jax.lax

    def attention(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v)

    def layer_norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def conv(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def recurrent(h: Any, w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), h, xs)[0].sum()

    image, filters = normal(8, 32, 32, 32), normal(3, 3, 32, 32)
    return [
        ("softmax", lambda x: jax.nn.softmax(x, axis=-1), (normal(1000, 1000),)),
        ("layer norm", layer_norm, (normal(2000, 512),)),
        ("attention", attention, tuple(normal(4, 128, 8, 64, seed=i) for i in range(3))),
        ("convolution", conv, (image, filters)),
        ("convolution, gradient", jax.grad(lambda x, w: conv(x, w).sum(), (0, 1)), (image, filters)),
        ("scan of 200 steps", recurrent, (normal(32, 64), normal(64, 64) / 8, normal(200, 32, 64))),
        (
            "scan of 200 steps, gradient",
            jax.grad(recurrent, (0, 1)),
            (normal(32, 64), normal(64, 64) / 8, normal(200, 32, 64)),
        ),
    ]


def _elements(jax: ModuleType) -> Calls:
    jnp = jax.numpy
    rows = np.random.default_rng(0).integers(0, 1_000_000, 1_000_000).astype(np.int32)
    key = jax.random.key(0)

    def smooth(x: Any) -> Any:
        return jnp.sum(jnp.tanh(x) * jnp.exp(-x * x))

    return [
        ("elementwise gradient of 10M", jax.grad(smooth), (normal(10_000_000),)),
        ("sum of 10M", jnp.sum, (normal(10_000_000),)),
        ("gather of 1M", lambda x, i: x[i], (normal(1_000_000), rows)),
        ("scatter-add of 1M", lambda x, i: x.at[i].add(1.0), (normal(1_000_000), rows)),
        ("sort of 1M", jnp.sort, (normal(1_000_000),)),
        ("random normal, 1M", lambda k: jax.random.normal(k, (1_000_000,)), (key,)),
        ("random bits, 1M", lambda k: jax.random.bits(k, (1_000_000,)), (key,)),
    ]


def _solvers(jax: ModuleType) -> Calls:
    linalg = jax.numpy.linalg
    matrix = normal(300, 300)
    positive = matrix @ matrix.T + 300 * np.eye(300, dtype=np.float32)
    return [
        ("solve, 300 x 300", linalg.solve, (positive, normal(300, 8))),
        ("cholesky, 300 x 300", linalg.cholesky, (positive,)),
        ("inverse, 300 x 300", linalg.inv, (positive,)),
        ("eigh, 100 x 100", linalg.eigh, (positive[:100, :100],)),
        ("svd, 100 x 100", linalg.svd, (matrix[:100, :100],)),
        ("qr, 300 x 300", linalg.qr, (matrix,)),
    ]
