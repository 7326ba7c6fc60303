"""Loops: an LSTM's training step, a checkpointed recurrence, Newton's method, and an associative scan."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, f32

WIDTH = 512


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    lstm = {"wx": f32(WIDTH, 4 * WIDTH), "wh": f32(WIDTH, 4 * WIDTH), "b": f32(4 * WIDTH)}
    x = f32(1024, 1024)

    def affine(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    return [
        Program("lstm_train", _lstm_step(jax), (lstm, f32(128, 64, WIDTH))),
        Program("newton_while", _newton(jax), (f32(100),)),
        Program("remat_scan", _checkpointed(jax), (f32(256, 256), f32(64, 256))),
        Program("assoc_scan", lambda x: jax.lax.associative_scan(affine, (x, x)), (x,)),
    ]


def _lstm_step(jax: ModuleType) -> Callable[[Any, Any], Any]:
    jnp, sigmoid = jax.numpy, jax.nn.sigmoid

    def loss(p: Any, xs: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(x @ p["wx"] + h @ p["wh"] + p["b"], 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            h = sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((xs.shape[1], WIDTH))
        return (jax.lax.scan(cell, (zeros, zeros), xs)[1] ** 2).mean()

    return lambda p, xs: jax.tree.map(lambda a, g: a - g, p, jax.grad(loss)(p, xs))


def _newton(jax: ModuleType) -> Callable[[Any], Any]:
    jnp = jax.numpy

    def unfinished(state: Any) -> Any:
        return (state[0] < 50) & (abs(state[1]).max() > 1e-3)

    def step(state: Any) -> Any:
        count, x = state
        return count + 1, x - jnp.tanh(x) / (1 - jnp.tanh(x) ** 2 + 1e-3)

    return lambda x: jax.lax.while_loop(unfinished, step, (0, x))[1]


def _checkpointed(jax: ModuleType) -> Callable[[Any, Any], Any]:
    def loss(w: Any, x: Any) -> Any:
        step = jax.checkpoint(lambda carry, _: (jax.numpy.tanh(carry @ w), None))
        return jax.lax.scan(step, x, None, length=32)[0].sum()

    return jax.grad(loss)
