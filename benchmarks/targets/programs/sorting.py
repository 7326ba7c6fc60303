"""Sorts, and what is made of them: medians, quantiles, the largest elements."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, each, f32


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    jnp = jax.numpy
    rows = each(_of_rows(jax), f32(1024, 1024))
    return rows + each({"sort_1m": jnp.sort, "median_1m": jnp.median, "argmax_1m": jnp.argmax}, f32(1 << 20))


def _of_rows(jax: ModuleType) -> dict[str, Any]:
    jnp, lax = jax.numpy, jax.lax

    def weighted(x: Any) -> Any:
        return (jnp.sort(x, 1) * jnp.arange(1024.0)).sum()

    return {
        "sort": lambda x: jnp.sort(x, 1),
        "sort_axis0": lambda x: jnp.sort(x, 0),
        "sort_grad": jax.grad(weighted),
        "argsort": lambda x: jnp.argsort(x, 1),
        "lexsort": lambda x: jnp.lexsort((x[0], x[1])),
        "median": lambda x: jnp.median(x, 1),
        "quantile": lambda x: jnp.quantile(x, jnp.array([0.1, 0.9]), axis=1),
        "argmax": lambda x: jnp.argmax(x, 1),
        "top_k": lambda x: lax.top_k(x, 32),
        "approx_max_k": lambda x: lax.approx_max_k(x, 32),
    }
