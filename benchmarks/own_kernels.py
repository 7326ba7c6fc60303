"""Attention and products in groups by kernels on a GPU, by the clock: forward and gradient, in microseconds.

    python benchmarks/own_kernels.py xlamini
    python benchmarks/own_kernels.py jax

The rows of results/ called `own_kernels` are its lines; JAX's kernel is that of `jax.experimental.pallas.ops.gpu`.
"""
from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES = ((4, 2048, 16, 64), (4, 2048, 16, 128), (1, 8192, 16, 128))
SHORT = ((8, 256, 16, 64), (8, 512, 16, 64), (8, 1024, 16, 64))
GROUPS = ((4096, 1024, 4096, 8), (16384, 2048, 1024, 64), (1024, 512, 512, 8))
"""Rows, features, columns and groups."""


def microseconds(jax: Any, fun: Callable[..., Any], *args: Any, calls: int = 30) -> float:
    """The time of a call, the least of three rounds."""
    jitted = jax.jit(fun)
    jax.block_until_ready(jitted(*args))
    rounds = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(calls):
            out = jitted(*args)
        jax.block_until_ready(out)
        rounds.append((time.perf_counter() - start) / calls)
    return round(min(rounds) * 1e6, 1)


def own(jax: Any, causal: bool) -> Callable[..., Any]:
    """Attention by the library's own kernel."""
    if jax.__name__ == "xlamini":
        return lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="flash")
    kernel = importlib.import_module("jax.experimental.pallas.ops.gpu.attention")
    return lambda q, k, v: kernel.mha(q, k, v, None, sm_scale=q.shape[-1] ** -0.5, causal=causal)


def implementations(jax: Any, causal: bool) -> dict[str, Callable[..., Any]]:
    def by(name: str) -> Callable[..., Any]:
        return lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=name)

    return {"own": own(jax, causal), "cudnn": by("cudnn"), "xla": by("xla"), "chosen": by(None)}


def loss_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: (fun(*args).astype("float32") ** 2).sum()


def main(library: str) -> None:
    jax, rng = importlib.import_module(library), np.random.default_rng(0)
    for shape in (*SHORT, *SHAPES):
        q, k, v = (jax.numpy.asarray(rng.standard_normal(shape), "bfloat16") for _ in range(3))
        for causal in (False, True):
            row: dict[str, Any] = {"shape": shape, "causal": causal}
            for name, fun in implementations(jax, causal).items():
                row[name] = microseconds(jax, fun, q, k, v)
                row[f"{name}, grad"] = microseconds(jax, jax.grad(loss_of(fun), (0, 1, 2)), q, k, v)
            sys.stdout.write(f"{json.dumps(row)}\n")
    for m, k, n, groups in GROUPS:
        rows, matrices = (jax.numpy.asarray(rng.standard_normal(s), "bfloat16") for s in ((m, k), (groups, k, n)))
        sizes = jax.numpy.asarray(rng.multinomial(m, [1 / groups] * groups), "int32")
        row = {"ragged_dot": (m, k, n, groups), "forward": microseconds(jax, jax.lax.ragged_dot, rows, matrices, sizes)}
        row["grad"] = microseconds(jax, jax.grad(loss_of(jax.lax.ragged_dot), (0, 1)), rows, matrices, sizes)
        sys.stdout.write(f"{json.dumps(row)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
