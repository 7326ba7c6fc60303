"""Programs whose memory plan is compared with what compilers report, each as (function, arguments, donated).

`python -m tests.support.memory_programs [cpu] [TARGET ...]` prints the comparison.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn, tree


class Program(NamedTuple):
    """A function and the types of its arguments; `donated` are positions."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    donated: tuple[int, ...] = ()


def array(*shape: int, dtype: str = "float32") -> xlamini.ShapeDtypeStruct:
    return xlamini.ShapeDtypeStruct(shape, dtype)


# --- models


def mlp(weights: Any, x: Any) -> Any:
    for w, b in weights[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ weights[-1][0] + weights[-1][1]


def mlp_weights(*sizes: int) -> list[Any]:
    return [(array(n, m), array(m)) for n, m in pairwise(sizes)]


def mlp_loss(weights: Any, x: Any, y: Any) -> Any:
    return ((mlp(weights, x) - y) ** 2).mean()


def conv_loss(kernels: Any, head: Any, x: Any, y: Any) -> Any:
    for kernel in kernels:
        x = nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return -(nn.log_softmax(x.reshape(x.shape[0], -1) @ head) * y).sum(-1).mean()


def block(w: Any, x: Any) -> Any:
    q, k, v = (x @ w[name] for name in ("q", "k", "v"))
    scores = nn.softmax(jnp.where(jnp.tri(x.shape[1], dtype=bool), q @ k.swapaxes(-1, -2) / 8.0, -1e9))
    x = x + scores @ v @ w["o"]
    return x + jnp.tanh(x @ w["up"]) @ w["down"]


def transformer_loss(layers: Any, x: Any, y: Any, wrap: Any = lambda f: f) -> Any:
    for w in layers:
        x = wrap(block)(w, x)
    return ((x - y) ** 2).mean()


def layers(n: int, d: int) -> list[Any]:
    shapes = {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    return [{name: array(*shape) for name, shape in shapes.items()} for _ in range(n)]


def rnn_loss(w: Any, u: Any, xs: Any, y: Any) -> Any:
    last, _ = lax.scan(lambda h, x: (jnp.tanh(x @ w + h @ u), None), jnp.zeros((xs.shape[1], u.shape[0])), xs)
    return ((last - y) ** 2).mean()


def adam(weights: Any, first: Any, second: Any, grads: Any) -> Any:
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
    step = lambda w, m, v: w - 1e-3 * m / (jnp.sqrt(v) + 1e-8)
    return tree.map(step, weights, first, second), first, second


def momentum_step(weights: Any, velocity: Any, x: Any, y: Any) -> Any:
    loss, grads = xlamini.value_and_grad(mlp_loss)(weights, x, y)
    velocity = tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return tree.map(lambda w, v: w - 0.1 * v, weights, velocity), velocity, loss


def heat(x: Any) -> Any:
    step = lambda _, x: x + 0.1 * (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) - 2 * x)
    return lax.fori_loop(0, 100, step, x)


def choose(x: Any, w: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda x: jnp.tanh(x @ w) @ w.T, lambda x: x * 2.0, x)


def curvature(weights: Any, x: Any, y: Any, directions: Any) -> Any:
    """The product of the hessian and a vector."""
    return xlamini.jvp(lambda w: xlamini.grad(mlp_loss)(w, x, y), (weights,), (directions,))[1]


def jacobian(w: Any, x: Any) -> Any:
    return xlamini.vmap(xlamini.jacrev(lambda x: jnp.tanh(x @ w)))(x)


# --- the programs

X, Y, WEIGHTS = array(4096, 1024), array(4096, 256), mlp_weights(1024, 4096, 4096, 256)
TOKENS, LAYERS = array(8, 512, 512), layers(4, 512)
KERNELS, IMAGES = [array(3, 3, 3, 32), array(3, 3, 32, 64)], array(256, 64, 64, 3)

PROGRAMS = {
    "mlp": Program(mlp, (WEIGHTS, X)),
    "mlp gradient": Program(xlamini.grad(mlp_loss), (WEIGHTS, X, Y)),
    "convolutions": Program(
        xlamini.grad(conv_loss, (0, 1)), (KERNELS, array(16 * 16 * 64, 10), IMAGES, array(256, 10))
    ),
    "transformer": Program(xlamini.grad(transformer_loss), (LAYERS, TOKENS, TOKENS)),
    "transformer with remat": Program(
        xlamini.grad(lambda w, x, y: transformer_loss(w, x, y, xlamini.checkpoint)), (LAYERS, TOKENS, TOKENS)
    ),
    "scan": Program(
        xlamini.grad(rnn_loss, (0, 1)), (array(256, 1024), array(1024, 1024), array(50, 512, 256), array(512, 1024))
    ),
    "optimizer": Program(adam, (WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS)),
    "training step, donated": Program(momentum_step, (WEIGHTS, WEIGHTS, X, Y), (0, 1)),
    "loop": Program(heat, (array(4096, 4096),)),
    "branches": Program(choose, (array(2048, 2048), array(2048, 8192))),
    "hessian times vector": Program(curvature, (WEIGHTS, X, Y, WEIGHTS)),
    "jacobian": Program(jacobian, (array(256, 128), array(1024, 256))),
}


# --- what the compilers say


def compiled_bytes(compiled: Any) -> int:
    """The bytes of device memory of arguments, results and temporaries, as the compiler allocates them.

    On a TPU that is not `peak_memory_in_bytes`, which counts memory on the chip where that holds more.
    """
    stats = compiled.memory_analysis()
    made = stats.output_size_in_bytes - stats.alias_size_in_bytes
    return stats.argument_size_in_bytes + made + stats.temp_size_in_bytes


def compared(program: Program, target: Any = None) -> tuple[int, int]:
    """The peak of the plan and that of the compiler, for a target or the default device."""
    traced = xlamini.jit(program.fun, donate_argnums=program.donated).trace(*program.args)
    return traced.memory_plan(target=target).peak, compiled_bytes(traced.lower(target=target).compile())


def main() -> None:
    """Print a table for the targets that the command line names, `cpu` for the default device."""
    for spec in sys.argv[1:] or ["cpu", "tpu:v5e:1x1", "gpu:h200"]:
        for name, program in PROGRAMS.items():
            plan, compiled = compared(program, None if spec == "cpu" else xlamini.target(spec))
            sizes = f"{plan / 2**20:8.1f} MiB, compiled {compiled / 2**20:8.1f} MiB: {plan / compiled:.2f}"
            print(f"{spec:12} {name:24} {sizes}", flush=True)


if __name__ == "__main__":
    main()
