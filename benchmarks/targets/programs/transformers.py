"""GPT-2 small, written as users write it: the forward pass, and the training step with Adam, in float32 and bfloat16.

The names ending in `_3layers` are of three of its twelve layers, which a TPU's compiler finishes in minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, f32, i32

WIDTH, HEADS, WORDS, LENGTH, BATCH = 768, 12, 50304, 1024, 4
DTYPES = {"f32": "float32", "bf16": "bfloat16"}


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    return [
        program
        for layers, suffix in ((1, "_1layer"), (3, "_3layers"), (12, ""))
        for short, dtype in DTYPES.items()
        for program in _of_depth(jax, layers, f"{short}{suffix}", dtype)
    ]


def _of_depth(jax: ModuleType, layers: int, suffix: str, dtype: str) -> list[Program]:
    params = _shapes(layers)
    state = (params, params, params, f32(), i32(BATCH, LENGTH + 1))
    forward = _forward(jax, dtype)
    return [
        Program(f"gpt2_fwd_{suffix}", forward, (params, i32(BATCH, LENGTH))),
        Program(f"gpt2_train_{suffix}", _step(jax, forward), state, (0, 1, 2)),
    ]


def _shapes(layers: int) -> dict[str, Any]:
    return {
        "words": f32(WORDS, WIDTH),
        "places": f32(LENGTH, WIDTH),
        "blocks": [_block_shapes() for _ in range(layers)],
        "norm": (f32(WIDTH), f32(WIDTH)),
    }


def _block_shapes() -> dict[str, Any]:
    sizes = {"qkv": (1, 3), "proj": (1, 1), "up": (1, 4), "down": (4, 1)}
    dense = {name: (f32(m * WIDTH, n * WIDTH), f32(n * WIDTH)) for name, (m, n) in sizes.items()}
    return {**dense, "ln1": (f32(WIDTH), f32(WIDTH)), "ln2": (f32(WIDTH), f32(WIDTH))}


def _norm(jax: ModuleType, x: Any, p: Any) -> Any:
    wide = x.astype(jax.numpy.float32)
    mean, variance = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5)).astype(x.dtype) * p[0] + p[1]


def _attention(jax: ModuleType, x: Any, p: Any) -> Any:
    jnp = jax.numpy
    n, t, _ = x.shape
    parts = jnp.split(x @ p["qkv"][0] + p["qkv"][1], 3, -1)
    q, k, v = (a.reshape(n, t, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3) for a in parts)
    scores = jnp.einsum("nhtd,nhsd->nhts", q, k).astype(jnp.float32) / math.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e30)
    weights = jax.nn.softmax(scores, axis=-1).astype(x.dtype)
    out = jnp.einsum("nhts,nhsd->nhtd", weights, v).transpose(0, 2, 1, 3).reshape(n, t, WIDTH)
    return out @ p["proj"][0] + p["proj"][1]


def _block(jax: ModuleType, x: Any, p: Any) -> Any:
    x = x + _attention(jax, _norm(jax, x, p["ln1"]), p)
    hidden = jax.nn.gelu(_norm(jax, x, p["ln2"]) @ p["up"][0] + p["up"][1])
    return x + hidden @ p["down"][0] + p["down"][1]


def _forward(jax: ModuleType, dtype: str) -> Callable[[Any, Any], Any]:
    def forward(params: Any, tokens: Any) -> Any:
        params = jax.tree.map(lambda p: p.astype(dtype), params)
        x = params["words"][tokens] + params["places"][: tokens.shape[1]]
        for p in params["blocks"]:
            x = _block(jax, x, p)
        return (_norm(jax, x, params["norm"]) @ params["words"].T).astype(jax.numpy.float32)

    return forward


def _step(jax: ModuleType, forward: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def loss(params: Any, tokens: Any) -> Any:
        logs = jax.nn.log_softmax(forward(params, tokens[:, :-1]))
        return -jax.numpy.take_along_axis(logs, tokens[:, 1:, None], -1).mean()

    def step(params: Any, means: Any, squares: Any, time: Any, tokens: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, tokens)
        return value, *_adam(jax, params, means, squares, slopes, time)

    return step


def _adam(jax: ModuleType, params: Any, means: Any, squares: Any, slopes: Any, time: Any) -> Any:
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, slopes)
    squares = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, squares, slopes)
    of_mean, of_square = 1 - 0.9**time, 1 - 0.999**time

    def moved(p: Any, m: Any, v: Any) -> Any:
        return p - 1e-3 * (m / of_mean) / (jax.numpy.sqrt(v / of_square) + 1e-8)

    return jax.tree.map(moved, params, means, squares), means, squares
