"""The five programs of the inspector's tests: steps of an MLP, a transformer, a conv net, an RNN, and a sharded one."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import xlamini
import xlamini.numpy as jnp
from benchmarks import transformer as model
from xlamini import lax
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def descent(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A step of gradient descent."""

    def step(params: Any, *data: Any) -> Any:
        value, grads = xlamini.value_and_grad(loss)(params, *data)
        return xlamini.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


def _mlp(params: Any, x: Any, y: Any) -> Any:
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b - y) ** 2)


def _conv(params: Any, x: Any, y: Any) -> Any:
    for w in params[:-1]:
        x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = lax.reduce_window(xlamini.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.mean((x.reshape(x.shape[0], -1) @ params[-1] - y) ** 2)


def _rnn(params: Any, xs: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ params[0] + x @ params[1])
        return h, h

    return jnp.mean(lax.scan(cell, jnp.zeros((8, 32)), xs)[1] ** 2)


class Step(NamedTuple):
    """A jitted step of training, and its arguments."""

    fun: Any
    args: tuple[Any, ...]

    def lower(self) -> Any:
        return self.fun.lower(*self.args)


def mlp_step() -> Step:
    params = [(ones(a, b), ones(b)) for a, b in ((64, 128), (128, 128), (128, 10))]
    return Step(xlamini.jit(descent(_mlp)), (params, ones(32, 64), ones(32, 10)))


def conv_step() -> Step:
    params = [ones(3, 3, 3, 16), ones(3, 3, 16, 32), ones(7 * 7 * 32, 10)]
    return Step(xlamini.jit(descent(_conv)), (params, ones(8, 28, 28, 3), ones(8, 10)))


def rnn_step() -> Step:
    return Step(xlamini.jit(descent(_rnn)), ((ones(32, 32), ones(16, 32)), ones(20, 8, 16)))


def transformer_step(depth: int = 12) -> Step:
    return Step(xlamini.jit(model.make_step(xlamini)), (model.init_params(depth), model.make_batch()))


def sharded_step(devices: Sequence[Any]) -> Step:
    """An MLP's step, over a mesh of eight devices."""
    mesh = Mesh(np.array(devices[:8]).reshape(4, 2), ("data", "model"))

    def loss(params: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ params[0]) @ params[1] - y) ** 2)

    def split(*spec: str | None) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*spec))

    weights = (split(None, "model"), split("model", None))
    step = xlamini.jit(descent(loss), in_shardings=(weights, split("data"), split("data")))
    shapes = [xlamini.ShapeDtypeStruct(s, np.float32) for s in ((64, 128), (128, 32), (64, 64), (64, 32))]
    return Step(step, (tuple(shapes[:2]), *shapes[2:]))


def mlp() -> Any:
    return mlp_step().lower()


def conv() -> Any:
    return conv_step().lower()


def rnn() -> Any:
    return rnn_step().lower()


def transformer(depth: int = 12) -> Any:
    return transformer_step(depth).lower()


def sharded(devices: Sequence[Any]) -> Any:
    return sharded_step(devices).lower()
