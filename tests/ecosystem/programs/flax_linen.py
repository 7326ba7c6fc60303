"""Flax linen: training with batch statistics and dropout, lifted transformations, serialization, sharded parameters."""
from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization, traverse_util
from flax.training import checkpoints, train_state
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class State(train_state.TrainState):
    batch_stats: Any


class ConvNet(nn.Module):
    """Two convolutions with batch normalization, dropout, and two dense layers."""

    classes: int

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        for features in (8, 16):
            x = nn.Conv(features, (3, 3), use_bias=False)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(x))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        x = nn.relu(nn.Dense(32)(x))
        x = nn.Dropout(0.2, deterministic=not train)(x)
        return nn.Dense(self.classes)(x)


def _images(count: int = 64) -> tuple[Any, Any]:
    """Images of four kinds: a bright quarter each, with noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, count)
    x = rng.normal(size=(count, 8, 8, 1)).astype(np.float32) * 0.3
    for i, label in enumerate(labels):
        x[i, 4 * (label // 2):4 * (label // 2) + 4, 4 * (label % 2):4 * (label % 2) + 4] += 1
    return jnp.asarray(x), jnp.asarray(labels)


def _new_state(model: ConvNet, x: Any) -> State:
    variables = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x, train=False)
    return State.create(apply_fn=model.apply, params=variables["params"], batch_stats=variables["batch_stats"],
                        tx=optax.sgd(0.05, momentum=0.9))


@jax.jit
def _train_step(state: State, x: Any, y: Any, key: Any) -> tuple[State, Any, Any]:
    def loss(params: Any) -> tuple[Any, Any]:
        logits, changes = state.apply_fn({"params": params, "batch_stats": state.batch_stats}, x, train=True,
                                         mutable=["batch_stats"], rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), changes

    (value, changes), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=changes["batch_stats"]), value, grads


def train_convolutions() -> dict[str, Any]:
    """A small convolutional network learns four classes; its state is saved and restored in two ways."""
    x, y = _images()
    model = ConvNet(classes=4)
    state = _new_state(model, x)
    losses = []
    for key in jax.random.split(jax.random.key(2), 20):
        state, loss, grads = _train_step(state, x, y, key)
        losses.append(loss)
        if len(losses) == 1:
            first_grads = grads
    again = serialization.from_bytes(jax.tree.map(jnp.zeros_like, state), serialization.to_bytes(state))
    with tempfile.TemporaryDirectory() as folder:
        checkpoints.save_checkpoint(pathlib.Path(folder).absolute(), state, step=20)
        restored = checkpoints.restore_checkpoint(folder, jax.tree.map(jnp.zeros_like, state))
    out = {"losses": jnp.stack(losses[:8]), "step": state.step, "learned": losses[-1] < 0.05}
    for name, one in (("bytes", again), ("checkpoint", restored)):
        logits = model.apply({"params": one.params, "batch_stats": one.batch_stats}, x, train=False)
        out[f"{name}/right"] = (logits.argmax(1) == y).mean()
        same = jax.tree.map(lambda a, b: (np.asarray(a) == np.asarray(b)).all(), one, state)
        out[f"{name}/same"] = np.all(jax.tree.leaves(same))
    return out | {"grads": first_grads} | {"stats": state.batch_stats}


class Block(nn.Module):
    """A residual block, as the body of a scan over layers."""

    @nn.compact
    def __call__(self, x: Any, _: Any) -> tuple[Any, Any]:
        h = nn.Dense(x.shape[-1])(nn.LayerNorm()(x))
        self.sow("intermediates", "norm", jnp.linalg.norm(h))
        return x + jnp.tanh(h), h.mean()


class Deep(nn.Module):
    """A scan over four rematerialized blocks."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        layers = nn.scan(nn.remat(Block), variable_axes={"params": 0, "intermediates": 0},
                         split_rngs={"params": True}, length=4)
        x, means = layers(name="layers")(x, None)
        return nn.Dense(1)(x), means


class Ensemble(nn.Module):
    """Three members with weights of their own."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        member = nn.vmap(nn.Dense, in_axes=None, out_axes=0, axis_size=3,  # type: ignore[arg-type]
                         variable_axes={"params": 0}, split_rngs={"params": True})
        return member(2, name="members")(x)


class Clipped(nn.Module):
    """A dense layer whose gradient is clipped by a rule of its own."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        def forward(module: Any, x: Any) -> Any:
            return nn.vjp(lambda module, x: module(x), module, x)

        def backward(pullback: Any, ct: Any) -> Any:
            params, x = pullback(ct)
            return jax.tree.map(jnp.sign, params), x

        return nn.custom_vjp(lambda module, x: module(x), forward, backward)(nn.Dense(2), x)


class Switched(nn.Module):
    """`while_loop`, `cond` and `switch` over submodules."""

    @nn.compact
    def __call__(self, x: Any, which: Any) -> Any:
        first, second = nn.Dense(3, name="first"), nn.Dense(3, name="second")
        if self.is_initializing():
            first(x), second(x)
        y = nn.switch(which, [lambda m, x: m.variables and first(x), lambda m, x: second(x) ** 2], self, x)
        z = nn.cond(which > 0, lambda m, x: first(x), lambda m, x: -first(x), self, x)
        turns = self.variable("counter", "turns", jnp.zeros, (), jnp.int32)

        def body(m: Any, c: Any) -> Any:
            m.put_variable("counter", "turns", m.get_variable("counter", "turns") + 1)
            return c * 0.5

        if self.is_initializing():
            return y
        end = nn.while_loop(lambda m, c: jnp.abs(c).max() > 0.1, body, self, y + z, carry_variables="counter")
        return end, turns.value


class Recurrent(nn.Module):
    """A bidirectional LSTM over sequences of different lengths."""

    @nn.compact
    def __call__(self, x: Any, lengths: Any) -> Any:
        both = nn.Bidirectional(nn.RNN(nn.LSTMCell(4)), nn.RNN(nn.GRUCell(4)))
        return both(x, seq_lengths=lengths)


def lifted_transformations() -> dict[str, Any]:
    """scan, remat, vmap, custom_vjp, while_loop, cond and switch lifted over modules: values and gradients."""
    key = jax.random.key(0)
    x = jax.random.normal(jax.random.key(1), (5, 6))
    out: dict[str, Any] = {}

    def both(name: str, module: nn.Module, *args: Any) -> None:
        params = module.init(key, *args)["params"]
        value, grads = jax.value_and_grad(lambda p: sum(
            (leaf ** 2).sum() for leaf in jax.tree.leaves(module.apply({"params": p}, *args))))(params)
        out.update({f"{name}/value": value} | {f"{name}/grads": grads})

    both("scan", Deep(), x)
    both("vmap", Ensemble(), x)
    both("custom_vjp", Clipped(), x)
    both("rnn", Recurrent(), x[None] + jnp.zeros((3, 1, 1)), jnp.array([5, 2, 3]))
    both("attention", nn.MultiHeadDotProductAttention(num_heads=2, use_bias=False), x, x)
    both("lazy", nn.Sequential([nn.Dense(4), nn.gelu, nn.GroupNorm(2), nn.ConvTranspose(3, (2,))]), x[None])
    both("norms", nn.WeightNorm(nn.Dense(3)), x)
    deep = Deep()
    params = deep.init(key, x)["params"]
    _, changes = deep.apply({"params": params}, x, mutable=["intermediates"])
    out |= {"sown": changes}
    for which in (0, 1):
        module = Switched()
        variables = module.init(key, x, jnp.int32(0))
        variables["params"] = jax.tree.map(lambda p: p + 0.1, variables["params"])
        (value, turns), _ = module.apply(variables, x, jnp.int32(which), mutable=["counter"])
        out |= {f"switch{which}/value": value, f"switch{which}/turns": turns}
    lazy = deep.lazy_init(key, jax.ShapeDtypeStruct(x.shape, x.dtype))
    out["lazy_init/same"] = np.all(jax.tree.leaves(jax.tree.map(
        lambda a, b: np.allclose(a, b), lazy["params"], params)))
    out["rows of the table"] = np.int32(deep.tabulate(key, x).count("\n") > 10)
    return out


class Wide(nn.Module):
    """A dense network whose parameters carry the names of their axes."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        init = nn.initializers.lecun_normal()
        x = nn.Dense(16, kernel_init=nn.with_partitioning(init, (None, "model")))(x)
        x = nn.with_logical_constraint(jnp.tanh(x), ("batch", "hidden"))
        return nn.Dense(4, kernel_init=nn.with_partitioning(init, ("model", None)))(x)


def sharded_training() -> dict[str, Any]:
    """Data and tensor parallel training on 4 x 2 devices, with partitioned parameters, beside the same on one."""
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    model, tx = Wide(), optax.adam(1e-2)
    x = jax.random.normal(jax.random.key(0), (16, 8))
    y = jnp.sin(x[:, :4])

    def init(key: Any) -> train_state.TrainState:
        return train_state.TrainState.create(apply_fn=model.apply, params=model.init(key, x)["params"], tx=tx)

    def step(state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return ((state.apply_fn({"params": params}, x) - y) ** 2).mean()

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    specs = nn.get_partition_spec(jax.eval_shape(init, jax.random.key(1)))
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    rows = NamedSharding(mesh, PartitionSpec("data"))
    out = {}
    with mesh, nn.logical_axis_rules([("batch", "data"), ("hidden", "model")]):
        state = jax.jit(init, out_shardings=shardings)(jax.random.key(1))
        fast = jax.jit(step, in_shardings=(shardings, rows, rows), out_shardings=(shardings, None))
        losses = []
        for _ in range(10):
            state, loss = fast(state, jax.device_put(x, rows), jax.device_put(y, rows))
            losses.append(loss)
    kernel = state.params["Dense_0"]["kernel"].value
    out["shard"] = np.array(kernel.addressable_shards[0].data.shape)
    single = init(jax.random.key(1))
    for _ in range(10):
        single, loss = jax.jit(step)(single, x, y)
    plain = nn.unbox(state.params)
    flat = traverse_util.flatten_dict(plain, sep="/")
    return out | {"losses": jnp.stack(losses), "single": loss} | {"params": flat}
