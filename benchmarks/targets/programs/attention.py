"""Attention in bfloat16: the gradient, also by cuDNN, and the forward pass with fewer heads of keys than of queries."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, bf16

QUERIES, GROUPED = bf16(4, 1024, 12, 64), bf16(4, 1024, 4, 64)


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""

    def attention(q: Any, k: Any, v: Any, by: str | None = None) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=by)

    def loss(q: Any, k: Any, v: Any, by: str | None = None) -> Any:
        return attention(q, k, v, by).astype(jax.numpy.float32).sum()

    fused = partial(loss, by="cudnn")
    return [
        Program("attention_bf16_grad", jax.value_and_grad(loss, (0, 1, 2)), (QUERIES,) * 3),
        Program("attention_cudnn_grad", jax.value_and_grad(fused, (0, 1, 2)), (QUERIES,) * 3),
        Program("attention_gqa_fwd", attention, (QUERIES, GROUPED, GROUPED)),
    ]
