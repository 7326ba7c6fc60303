"""Products of large bfloat16 matrices, and attention: the main workloads of accelerators."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.timing import Measurement, Settings, each_per_call

WORST = 1.05
SIZES, QUICK_SIZES = (4096, 8192), (512,)


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure products of square matrices, and causal attention over 4,096 positions with its gradient."""
    jax = load()
    sizes = QUICK_SIZES if settings.quick else SIZES
    calls = [(f"bfloat16 matmul {n}", _product(jax, n)) for n in sizes]
    attention = _attention(jax, 128 if settings.quick else 4096)
    return each_per_call(jax, [*calls, ("bfloat16 attention, gradient", attention)], settings, WORST)


def _normal(jax: ModuleType, *shape: int, seed: int) -> Any:
    return jax.random.normal(jax.random.key(seed), shape, jax.numpy.bfloat16)


def _product(jax: ModuleType, size: int) -> Callable[[], Any]:
    product = jax.jit(lambda x, y: x @ y)
    x, y = (_normal(jax, size, size, seed=seed) for seed in range(2))
    return lambda: product(x, y)


def _attention(jax: ModuleType, length: int) -> Callable[[], Any]:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).astype(jax.numpy.float32).sum()

    gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    operands = [_normal(jax, 1, length, 8, 64, seed=seed) for seed in range(3)]
    return lambda: gradient(*operands)
