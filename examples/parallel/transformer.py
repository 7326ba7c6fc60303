"""A decoder-only transformer and its training step, written for one device, and three ways to shard it.

The weights of the layers are stacked, so that `scan` iterates over the layers; the backward pass recomputes each layer
(`checkpoint`). The model does not refer to devices: the shardings of its arguments determine the placement of arrays,
and the compiler inserts the communication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xlamini
import xlamini.numpy as jnp
from xlamini.sharding import NamedSharding, PartitionSpec as P

Params = dict[str, Any]
Keep = Callable[[Any], Any]


class Config(NamedTuple):
    """The sizes of a model."""

    layers: int = 2
    width: int = 32
    heads: int = 4
    hidden: int = 64
    vocabulary: int = 64
    length: int = 16


SEVEN_BILLION = Config(layers=32, width=4096, heads=32, hidden=11008, vocabulary=32000, length=2048)


def param_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter; parameters of layers are stacked along dimension 0."""
    n, w, h = config.layers, config.width, config.hidden
    return {
        "embed": (config.vocabulary, w),
        "norm_attention": (n, w),
        "qkv": (n, w, 3 * w),
        "out": (n, w, w),
        "norm_mlp": (n, w),
        "gate": (n, w, h),
        "up": (n, w, h),
        "down": (n, h, w),
        "norm_final": (w,),
        "unembed": (w, config.vocabulary),
    }


def init_params(config: Config, seed: int = 0, dtype: Any = np.float32) -> Params:
    """Random parameters, as NumPy arrays."""
    rng = np.random.default_rng(seed)

    def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape, dtype) if name.startswith("norm") else _normal(rng, shape).astype(dtype)

    return {name: weight(name, shape) for name, shape in param_shapes(config).items()}


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape) / np.sqrt(shape[-2])


def loss(config: Config, params: Params, tokens: Any, keep: Keep = lambda x: x) -> Any:
    """The mean cross-entropy of each next token; `tokens` is int32[batch, length + 1].

    `keep` is applied to the activations of each layer, so that it can constrain their sharding.
    """
    return cross_entropy(params, through_layers(config, params, keep(params["embed"][tokens[:, :-1]]), keep), tokens)


def through_layers(config: Config, params: Params, x: Any, keep: Keep = lambda x: x) -> Any:
    """Apply all layers to `x`, of shape (batch, length, width)."""
    stacked = {name: w for name, w in params.items() if w.ndim > 2 or name in ("norm_attention", "norm_mlp")}
    body = xlamini.checkpoint(lambda x, layer: (_layer(config, layer, x, keep), None))
    return xlamini.lax.scan(body, x, stacked)[0]


def cross_entropy(params: Params, x: Any, tokens: Any) -> Any:
    """The mean cross-entropy of the next token, given the output `x` of the last layer."""
    logits = (_norm(x, params["norm_final"]) @ params["unembed"]).astype(jnp.float32)
    picked = jnp.take_along_axis(xlamini.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -jnp.mean(picked)


def _layer(config: Config, layer: Params, x: Any, keep: Keep) -> Any:
    x = x + _attention(config, layer, _norm(x, layer["norm_attention"]), keep)
    h = _norm(x, layer["norm_mlp"])
    hidden = keep(xlamini.nn.silu(h @ layer["gate"]) * (h @ layer["up"]))
    return x + keep(hidden @ layer["down"])


def _norm(x: Any, scale: Any) -> Any:
    square = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True)
    return (x * xlamini.lax.rsqrt(square + 1e-6).astype(x.dtype)) * scale


def _attention(config: Config, layer: Params, x: Any, keep: Keep) -> Any:
    batch, length, width = x.shape
    parts = keep(x @ layer["qkv"]).reshape(batch, length, 3, config.heads, width // config.heads)
    mixed = xlamini.nn.dot_product_attention(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], is_causal=True)
    return keep(keep(mixed.reshape(batch, length, width)) @ layer["out"])


def make_step(config: Config, keep: Keep = lambda x: x, rate: float = 0.05) -> Any:
    """A function (params, tokens) -> (new params, loss)."""

    def step(params: Params, tokens: Any) -> tuple[Params, Any]:
        value, grads = xlamini.value_and_grad(lambda p: loss(config, p, tokens, keep))(params)
        return xlamini.tree.map(lambda p, g: p - rate * g.astype(p.dtype), params, grads), value

    return step


def _by_width(name: str, ndim: int) -> P:
    """Tensor parallelism: one all-reduce after the attention, and one after the MLP."""
    last = {"qkv", "gate", "up", "unembed"}
    before_last = {"out", "down"}
    if name in last:
        return P(*[None] * (ndim - 1), "model")
    return P(*[None] * (ndim - 2), "model", None) if name in before_last else P()


def _by_rows(name: str, ndim: int) -> P:
    """Fully sharded: each matrix is sharded along its second-to-last dimension, and gathered when its layer runs."""
    return P(*[None] * (ndim - 2), "data", None) if ndim > 1 and not name.startswith("norm") else P()


def shardings(how: str, mesh: Any, config: Config) -> tuple[dict[str, NamedSharding], NamedSharding]:
    """The shardings of the parameters and of the tokens.

    Args:
      how: "data" (parameters are replicated, the batch is sharded), "tensor" (matrices are sharded, the batch is
        replicated), or "fully sharded" (matrices and the batch are sharded).
      mesh: the mesh, with an axis "data", or "model" for "tensor".
      config: the sizes of the model.
    """
    specs = {
        "data": lambda name, ndim: P(),
        "tensor": _by_width,
        "fully sharded": _by_rows,
    }[how]
    of_params = {name: NamedSharding(mesh, specs(name, len(s))) for name, s in param_shapes(config).items()}
    return of_params, NamedSharding(mesh, P() if how == "tensor" else P("data"))


def sharded_step(how: str, mesh: Any, config: Config) -> Any:
    """The jitted training step, with arguments and results sharded over the mesh.

    In the fully sharded case the activations are constrained too. Otherwise the compiler moves activations instead of
    gathering the weights of a layer.
    """
    of_params, of_tokens = shardings(how, mesh, config)

    def keep(x: Any) -> Any:
        return xlamini.lax.with_sharding_constraint(x, of_tokens) if how == "fully sharded" else x

    return xlamini.jit(make_step(config, keep), in_shardings=(of_params, of_tokens), out_shardings=(of_params, None))
