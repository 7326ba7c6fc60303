"""Flax nnx: a transformer trained and saved, graph transformations, metrics, sharded parameters on eight devices."""
from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

VOCABULARY, LENGTH, WIDTH = 11, 8, 16


class Block(nnx.Module):
    """Causal attention and a feed-forward network, both residual."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norms = nnx.List([nnx.LayerNorm(WIDTH, rngs=rngs) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(2, WIDTH, decode=False, use_bias=False, rngs=rngs)
        self.wide = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)
        self.narrow = nnx.Linear(2 * WIDTH, WIDTH, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x: Any, mask: Any) -> Any:
        x = x + self.attention(self.norms[0](x), mask=mask)
        return x + self.dropout(self.narrow(nnx.gelu(self.wide(self.norms[1](x)))))


class Transformer(nnx.Module):
    """Two blocks between an embedding and its transpose."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.places = nnx.Param(jax.random.normal(rngs.params(), (LENGTH, WIDTH)) * 0.1)
        self.blocks = nnx.List([Block(rngs) for _ in range(2)])
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, tokens: Any) -> Any:
        self.calls[...] += 1
        x = self.embed(tokens) + self.places[...]
        mask = nnx.make_causal_mask(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.embed.attend(x)


def _sentences() -> Any:
    """Sequences that count up or down by a fixed step."""
    rng = np.random.default_rng(0)
    start, step = rng.integers(0, VOCABULARY, (2, 32, 1))
    return jnp.asarray((start + step * np.arange(LENGTH + 1)) % VOCABULARY)


def _loss_of(model: Any, tokens: Any) -> Any:
    logits = model(tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])[:, 2:].mean()


@nnx.jit
def _train_step(model: Any, optimizer: Any, metrics: Any, tokens: Any) -> Any:
    loss, grads = nnx.value_and_grad(_loss_of)(model, tokens)
    metrics.update(loss=loss)
    optimizer.update(model, grads)
    return grads


def train_transformer() -> dict[str, Any]:
    """A small transformer learns to count; its state is saved by Orbax and restored into an abstract model."""
    model = Transformer(nnx.Rngs(0, dropout=1))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)
    metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))
    tokens, losses = _sentences(), []
    for i in range(60):
        grads = _train_step(model, optimizer, metrics, tokens)
        first = grads if i == 0 else first  # noqa: F821
        losses.append(metrics.compute()["loss"])
        metrics.reset()
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder).absolute() / "model"
        graph, state = nnx.split(model)
        arrays = nnx.filter_state(state, nnx.Not(nnx.RngKey))
        with ocp.StandardCheckpointer() as saver:
            saver.save(path, nnx.to_pure_dict(arrays))
            saver.wait_until_finished()
            target = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), nnx.to_pure_dict(arrays))
            restored = saver.restore(path, target)
    blank = Transformer(nnx.Rngs(7))
    blank.eval()
    kept = nnx.state(blank, nnx.Not(nnx.RngKey))
    nnx.replace_by_pure_dict(kept, restored)
    nnx.update(blank, kept)
    abstract = nnx.eval_shape(lambda: Transformer(nnx.Rngs(0)))
    again = nnx.merge(graph, state)
    again.eval()
    return {
        "losses": jnp.stack(losses[:5]), "learned": losses[-1] < 0.3, "calls": model.calls[...],
        "restored": jnp.abs(blank(tokens[:, :-1]) - model(tokens[:, :-1])).max(),
        "merged": jnp.abs(again(tokens[:, :-1]) - model(tokens[:, :-1])).max(),
        "abstract": np.array(abstract.embed.embedding.shape),
    } | {"grads": nnx.to_pure_dict(first)}


class Layer(nnx.Module):
    """A normalized dense layer that counts its calls."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(4, 4, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.count = nnx.Variable(jnp.array(0))

    def __call__(self, x: Any) -> Any:
        self.count[...] += 1
        return jnp.tanh(self.norm(self.linear(x))) + x


def _own_rule(layer: Any, x: Any) -> Any:
    """The gradients of a layer, by a rule that doubles and triples them."""

    @nnx.custom_vjp(graph_updates=True)
    def loud(m: Any, x: Any) -> Any:
        return m(x)

    def forward(m: Any, x: Any) -> Any:
        return loud(m, x), (m, x)

    def backward(saved: Any, ct: Any) -> Any:
        (updates, _), ct = ct
        m, x = saved
        grads = jax.tree.map(lambda p: p, updates)
        grads["kernel"][...] = 2 * x.T @ ct
        return grads, 3 * ct @ m.kernel.T

    loud.defvjp(forward, backward)
    return nnx.grad(lambda m, x: (loud(m, x) ** 2).sum(), argnums=(0, 1))(layer, x)


def graph_transformations() -> dict[str, Any]:
    """scan, vmap, remat, cond, while_loop, fori_loop, custom_vjp, jvp and vjp over modules: values and gradients."""
    x = jax.random.normal(jax.random.key(0), (6, 4))
    out: dict[str, Any] = {}

    @nnx.split_rngs(splits=3)
    @nnx.vmap(in_axes=(0,), out_axes=0)
    def stacked(rngs: Any) -> Any:
        return Layer(rngs)

    @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
    @nnx.remat
    def through(layer: Any, x: Any) -> Any:
        return layer(x)

    layers = stacked(nnx.Rngs(0))
    value, grads = nnx.value_and_grad(lambda m, x: (through(m, x) ** 2).mean())(layers, x)
    out |= {"scan/value": value, "scan/count": layers.count[...]}
    out |= {"scan/grads": nnx.to_pure_dict(grads)} | {"scan/norm": nnx.to_pure_dict(nnx.state(layers.norm))}

    each = nnx.vmap(lambda m, x: m.linear(x), in_axes=(0, None))(layers, x)
    out["vmap/value"] = each
    layer = Layer(nnx.Rngs(1))
    out["cond"] = nnx.cond(x.sum() > 100, lambda m, x: m(x), lambda m, x: m.linear(x), layer, x)
    out["while"] = nnx.while_loop(lambda c: jnp.abs(c[1]).max() > 0.05,
                                  lambda c: (c[0], c[0].linear(c[1]) * 0.4), (layer, x))[1]
    out["fori"] = nnx.fori_loop(0, 3, lambda i, c: (c[0], c[0](c[1])), (layer, x))[1]
    out["count"] = layer.count[...]
    grads = _own_rule(layer.linear, x)
    out["custom_vjp"] = [nnx.to_pure_dict(nnx.state(grads[0])), grads[1]]
    graph, params, rest = nnx.split(layer, nnx.Param, ...)
    out["jvp"] = jax.jvp(lambda p: nnx.merge(graph, p, rest, copy=True)(x).sum(), (params,), (params,))[1]
    out["hessian"] = jax.hessian(lambda x: (layer.linear(x) ** 3).sum())(x[0])
    lstm = nnx.RNN(nnx.LSTMCell(4, 5, rngs=nnx.Rngs(2)))
    value, grads = nnx.value_and_grad(lambda m: (m(x[None]) ** 2).sum())(lstm)
    out |= {"rnn/value": value} | {"rnn/grads": nnx.to_pure_dict(grads)}
    lora = nnx.LoRALinear(4, 4, lora_rank=2, rngs=nnx.Rngs(3))
    grads = nnx.grad(lambda m: (m(x) ** 2).sum(), argnums=nnx.DiffState(0, nnx.LoRAParam))(lora)
    return out | {"lora": nnx.to_pure_dict(grads)}


def sharded_training() -> dict[str, Any]:
    """A network whose parameters carry their shardings is created and trained on 4 x 2 devices."""
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    init = nnx.initializers.lecun_normal()

    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.up = nnx.Linear(8, 16, kernel_init=nnx.with_partitioning(init, (None, "model")), rngs=rngs)
            self.down = nnx.Linear(16, 8, kernel_init=nnx.with_partitioning(init, ("model", None)), rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.down(nnx.relu(self.up(x)))

    @nnx.jit
    def create() -> Any:
        model = Net(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
        for one in (model, optimizer):
            state = nnx.state(one)
            nnx.update(one, jax.lax.with_sharding_constraint(state, nnx.get_partition_spec(state)))
        return model, optimizer

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
        optimizer.update(model, grads)
        return loss

    x = jax.device_put(jax.random.normal(jax.random.key(0), (16, 8)), NamedSharding(mesh, PartitionSpec("data")))
    losses = []
    with jax.set_mesh(mesh):
        model, optimizer = create()
        for _ in range(10):
            losses.append(step(model, optimizer, x, jnp.sin(x)))
    kernel = model.up.kernel[...]
    return {"losses": jnp.stack(losses), "shard": np.array(kernel.addressable_shards[0].data.shape),
            "params": nnx.to_pure_dict(nnx.state(model))}
