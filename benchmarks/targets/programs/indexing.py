"""Gathers and scatters, segments, and searches of sorted arrays."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, each, f32, i32

MANY, SEGMENTS = 65536, 1000


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    return [*_segments(jax), *_gradients(jax), *_searches(jax)]


def _segments(jax: ModuleType) -> list[Program]:
    ops = jax.ops

    def largest(x: Any, ids: Any) -> Any:
        return ops.segment_max(x, ids, SEGMENTS)

    sums = {
        "segment_sum": lambda x, ids: ops.segment_sum(x, ids, SEGMENTS),
        "segment_sum_sorted": lambda x, ids: ops.segment_sum(x, ids, SEGMENTS, indices_are_sorted=True),
    }
    return [*each(sums, f32(MANY, 64), i32(MANY)), Program("segment_max", largest, (f32(MANY), i32(MANY)))]


def _gradients(jax: ModuleType) -> list[Program]:
    jnp = jax.numpy

    def sparse(x: Any, rows: Any, columns: Any, values: Any) -> Any:
        product = jnp.zeros_like(x).at[rows].add(x[columns] * values[:, None])
        return (product**2).sum()

    entries = i32(100000)
    embedding = jax.grad(lambda table, ids: (table[ids] ** 2).sum())
    taken = jax.grad(lambda x, i: (jnp.take_along_axis(x, i, 1) ** 2).sum())
    return [
        Program("spmm_coo_grad", jax.grad(sparse, (0, 3)), (f32(10000, 64), entries, entries, f32(100000))),
        Program("embedding_grad", embedding, (f32(50304, 768), i32(4, 1024))),
        Program("take_along_axis_grad", taken, (f32(1024, 1024), i32(1024, 1024))),
        Program("at_set_2d", lambda x, i, j, v: x.at[i, j].set(v), (f32(1024, 1024), i32(128), i32(128), f32(128))),
    ]


def _searches(jax: ModuleType) -> list[Program]:
    jnp = jax.numpy
    return [
        Program("nonzero_size", lambda x: jnp.nonzero(x > 0, size=1024), (f32(MANY),)),
        Program("bincount", lambda x: jnp.bincount(x, length=256), (i32(MANY),)),
        Program("histogram", lambda x: jnp.histogram(x, 64), (f32(MANY),)),
        Program("unique_size", lambda x: jnp.unique(x, size=256), (i32(MANY),)),
        Program("searchsorted", jnp.searchsorted, (f32(1024), f32(MANY))),
        Program("interp", lambda a, b, x: jnp.interp(x, a, b), (f32(1024), f32(1024), f32(MANY))),
    ]
