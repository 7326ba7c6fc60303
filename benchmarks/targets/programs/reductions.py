"""Reductions and cumulative sums, and their gradients."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, each, f32


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    jnp, lax, nn = jax.numpy, jax.lax, jax.nn
    functions: dict[str, Any] = {
        "cumsum": lambda x: jnp.cumsum(x, 1),
        "cumprod": lambda x: jnp.cumprod(x, 0),
        "cummax": lambda x: lax.cummax(x, 1),
        "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 1),
        "cumsum_grad": jax.grad(lambda x: (jnp.cumsum(x, 1) ** 2).sum()),
        "softmax_grad": jax.grad(lambda x: (nn.softmax(x) ** 2).sum()),
        "logsumexp": lambda x: nn.logsumexp(x, 1),
        "var": lambda x: jnp.var(x, 0),
        "max_grad": jax.grad(lambda x: x.max(1).sum()),
    }
    return each(functions, f32(1024, 1024)) + each({"cumsum_1m": jnp.cumsum}, f32(1 << 20))
