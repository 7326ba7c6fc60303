"""Equinox: filtered transformations, rules of one's own, its loops, state, serialization, eight devices."""
from __future__ import annotations

import io
from typing import Any

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def _arrays(name: str, tree: Any) -> dict[str, Any]:
    """The arrays of a module under a name."""
    return {name: jax.tree.leaves(eqx.filter(tree, eqx.is_array))}


class Classifier(eqx.Module):
    """A recurrent network over a sequence, with batch normalization, dropout and attention."""

    embed: eqx.nn.Linear
    cell: eqx.nn.GRUCell
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.BatchNorm
    dropout: eqx.nn.Dropout
    out: eqx.nn.MLP
    width: int = eqx.field(static=True)

    def __init__(self, width: int, key: Any) -> None:
        keys = jax.random.split(key, 4)
        self.width = width
        self.embed = eqx.nn.Linear(2, width, key=keys[0])
        self.cell = eqx.nn.GRUCell(width, width, key=keys[1])
        self.attention = eqx.nn.MultiheadAttention(2, width, key=keys[2])
        self.norm = eqx.nn.BatchNorm(width, "batch", mode="batch")
        self.dropout = eqx.nn.Dropout(0.1)
        self.out = eqx.nn.MLP(width, 1, 16, 1, key=keys[3])

    def __call__(self, x: Any, state: Any, key: Any) -> Any:
        x = jax.vmap(self.embed)(x)
        x = x + self.attention(x, x, x)
        h, _ = jax.lax.scan(lambda h, one: (self.cell(one, h), None), jnp.zeros(self.width), x)
        h, state = self.norm(h, state)
        return self.out(self.dropout(h, key=key))[0], state


def _spirals() -> tuple[Any, Any]:
    """Spirals that turn left or right."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 6, 12) + rng.uniform(0, 6, (32, 1))
    side = np.where(np.arange(32) % 2, 1.0, -1.0)
    x = np.stack([np.cos(t), side[:, None] * np.sin(t)], -1)
    return jnp.asarray(x, jnp.float32), jnp.asarray(side > 0, jnp.float32)


def train_classifier() -> dict[str, Any]:
    """A recurrent classifier with state is trained, serialized, and read back into a blank one."""
    x, y = _spirals()
    make = eqx.nn.make_with_state(Classifier)
    model, state = make(8, jax.random.key(0))
    tx = optax.adam(1e-2)
    moments = tx.init(eqx.filter(model, eqx.is_inexact_array))

    def loss(model: Any, state: Any, key: Any) -> Any:
        keys = jax.random.split(key, len(x))
        run = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))
        logits, state = run(x, state, keys)
        return optax.sigmoid_binary_cross_entropy(logits, y).mean(), state

    @eqx.filter_jit
    def step(model: Any, state: Any, moments: Any, key: Any) -> Any:
        (value, state), grads = eqx.filter_value_and_grad(loss, has_aux=True)(model, state, key)
        updates, moments = tx.update(grads, moments, model)
        return eqx.apply_updates(model, updates), state, moments, value, grads

    losses, first = [], None
    for key in jax.random.split(jax.random.key(1), 60):
        model, state, moments, value, grads = step(model, state, moments, key)
        losses.append(value)
        first = first or grads
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, (model, state))
    file.seek(0)
    again, state_again = eqx.tree_deserialise_leaves(file, eqx.filter_eval_shape(make, 8, jax.random.key(5)))
    calm, calm_again = eqx.nn.inference_mode(model), eqx.nn.inference_mode(again)
    run = eqx.filter_jit(eqx.filter_vmap(lambda m, s, x: m(x, s, None)[0], in_axes=(None, None, 0)))
    return {"losses": jnp.stack(losses[:6]), "learned": losses[-1] < 0.1,
            "same": jnp.abs(run(calm, state, x) - run(calm_again, state_again, x)).max(),
            "equal": np.array(eqx.tree_equal(model, again))} | _arrays("grads", first)


def _custom_derivatives(mlp: Any, x: Any) -> dict[str, Any]:
    """Rules of one's own and converted closures."""
    out: dict[str, Any] = {}

    @eqx.filter_custom_vjp
    def clipped(vjp_arg: Any, scale: Any) -> Any:
        return mlp(vjp_arg) * scale

    @clipped.def_fwd
    def _(perturbed: Any, vjp_arg: Any, scale: Any) -> Any:
        value, pullback = eqx.filter_vjp(lambda x: mlp(x) * scale, vjp_arg)
        return value, pullback

    @clipped.def_bwd
    def _(pullback: Any, ct: Any, perturbed: Any, vjp_arg: Any, scale: Any) -> Any:
        return jnp.clip(pullback(ct)[0], -0.1, 0.1)

    @eqx.filter_custom_jvp
    def doubled(x: Any) -> Any:
        return jnp.sin(x)

    @doubled.def_jvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return jnp.sin(x), 2 * jnp.cos(x) * t

    out["custom_vjp"] = jax.grad(lambda x: clipped(x, 2.0).sum())(x)
    out["custom_jvp"] = jax.vmap(jax.grad(doubled))(x)
    out["custom_jvp/second"] = jax.vmap(jax.grad(jax.grad(doubled)))(x)
    w = jnp.arange(4.0)
    closed = eqx.filter_closure_convert(lambda x: jnp.tanh(x * w).sum(), x)
    out["closure/value"], out["closure/grads"] = closed(x), jax.grad(closed)(x)
    return out


def _convolutions() -> dict[str, Any]:
    """Gradients of a small convolutional network."""
    layers = [eqx.nn.Conv2d(1, 3, 3, use_bias=False, key=jax.random.key(2)), eqx.nn.Lambda(eqx.nn.PReLU()),
              eqx.nn.GroupNorm(3, 3), eqx.nn.AvgPool2d(2, 2), eqx.nn.AdaptiveMaxPool2d(1), eqx.nn.Lambda(jnp.ravel),
              eqx.nn.Linear(3, 3, key=jax.random.key(3))]
    image = jax.random.normal(jax.random.key(5), (1, 8, 8))
    return _arrays("convs", eqx.filter_grad(lambda m: (m(image) ** 2).sum())(eqx.nn.Sequential(layers)))


def own_rules() -> dict[str, Any]:
    """filter_custom_vjp and filter_custom_jvp, closure_convert, checkpoint, nondifferentiable, error_if, ensembles."""
    x = jnp.linspace(0.1, 1.0, 4)
    mlp = eqx.nn.MLP(4, 2, 8, 2, key=jax.random.key(0))
    out = _custom_derivatives(mlp, x)
    value, grads = eqx.filter_value_and_grad(lambda m: (eqx.filter_checkpoint(m)(x) ** 2).sum())(mlp)
    out |= {"checkpoint/value": value} | _arrays("checkpoint/grads", grads)
    checked = eqx.filter_jit(lambda x: eqx.error_if(x, x.sum() > 100, "too large") * 2)
    out |= {"error_if": checked(x), "error_if/grads": jax.grad(lambda x: checked(x).sum())(x)}
    try:
        checked(x * 1000).block_until_ready()
    except Exception as error:
        out["error_if/raised"] = np.array("too large" in str(error))
    out["branched"] = eqx.filter_jit(eqx.branched_error_if)(x, x.sum() > 100, jnp.array(0), ["one", "two"])
    out["stopped"] = jax.grad(lambda x: (x * jnp.sin(eqxi.nondifferentiable(jax.lax.stop_gradient(x)))).sum())(x)
    ensemble = eqx.filter_vmap(lambda key: eqx.nn.MLP(4, 2, 8, 1, key=key))(jax.random.split(jax.random.key(1), 3))
    each = eqx.filter_vmap(eqx.filter_grad(lambda m, x: (m(x) ** 2).sum()), in_axes=(eqx.if_array(0), None))
    out |= _arrays("ensemble", each(ensemble, x))
    jac = eqx.filter_jacrev(lambda m: m(x))(mlp)
    out |= _arrays("jacobian", jac)
    out["hessian"] = eqx.filter_hessian(lambda x: mlp(x).sum())(x)
    value, tangent = eqx.filter_jvp(lambda m: m(x), (mlp,), (eqx.filter(mlp, eqx.is_inexact_array),))
    out |= {"jvp/value": value, "jvp/tangent": tangent}
    doubled_head = eqx.tree_at(lambda m: m.layers[-1].weight, mlp, replace_fn=lambda w: 2 * w)
    out["tree_at"] = doubled_head(x)
    return out | _convolutions()


def loops() -> dict[str, Any]:
    """Equinox's loops of every kind, with gradients through them, batched and under jit."""
    w = jnp.linspace(0.2, 0.9, 3)
    out: dict[str, Any] = {}

    def run(kind: str, w: Any, steps: Any) -> Any:
        def body(carry: Any) -> Any:
            i, x, buffer = carry
            x = jnp.sin(x * w) + 0.1 * x
            return i + 1, x, buffer.at[i].set(x.sum())

        options = {} if kind == "lax" else {"max_steps": 16}
        options |= {"checkpoints": 4} if kind == "checkpointed" else {}
        return eqxi.while_loop(lambda c: c[0] < steps, body, (0, jnp.ones(3), jnp.zeros(16)), kind=kind,
                               buffers=lambda c: c[2], **options)[1:]

    for kind in ("lax", "bounded", "checkpointed"):
        out[f"{kind}/value"] = run(kind, w, 9)[0]
        out[f"{kind}/buffer"] = jax.jit(run, static_argnums=0)(kind, w, 9)[1]
        out[f"{kind}/vmap"] = jax.vmap(lambda n, kind=kind: run(kind, w, n)[0])(jnp.array([2, 5, 11]))
        if kind == "lax":
            out["lax/jvp"] = jax.jvp(lambda w: run("lax", w, 9)[0], (w,), (jnp.ones(3),))[1]
            continue
        grad = jax.grad(lambda w, n, kind=kind: (run(kind, w, n)[0] ** 2).sum() + run(kind, w, n)[1].sum())
        out[f"{kind}/grads"] = grad(w, 9)
        out[f"{kind}/grads/jit"] = jax.jit(grad)(w, 9)
        out[f"{kind}/grads/vmap"] = jax.vmap(grad, (None, 0))(w, jnp.array([2, 5, 11]))

    def scanned(kind: str, w: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            return jnp.tanh(c * w + x), c.sum()

        carry, ys = eqxi.scan(body, jnp.ones(3), jnp.arange(8.0), kind=kind, checkpoints=3)
        return (carry ** 2).sum() + ys.sum()

    for kind in ("lax", "checkpointed"):
        out[f"scan/{kind}"], out[f"scan/{kind}/grads"] = jax.value_and_grad(lambda w, k=kind: scanned(k, w))(w)
    return out


def sharded_training() -> dict[str, Any]:
    """Data-parallel steps on eight devices, with the model replicated by filter_shard, beside the same on one."""
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    rows, copies = NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())
    x = jax.random.normal(jax.random.key(0), (32, 3))
    y = jnp.prod(x, axis=1)
    tx = optax.sgd(0.1)

    def train(place: Any) -> Any:
        model = eqx.nn.MLP(3, "scalar", 16, 2, key=jax.random.key(1))
        moments = tx.init(eqx.filter(model, eqx.is_array))

        @eqx.filter_jit(donate="all")
        def step(model: Any, moments: Any, x: Any, y: Any) -> Any:
            model, moments = place((model, moments), copies)
            x, y = place((x, y), rows)
            value, grads = eqx.filter_value_and_grad(lambda m: ((jax.vmap(m)(x) - y) ** 2).mean())(model)
            updates, moments = tx.update(grads, moments)
            return *place((eqx.apply_updates(model, updates), moments), copies), value

        losses = []
        for _ in range(10):
            model, moments, value = step(*place((model, moments), copies), *place((x + 0, y + 0), rows))
            losses.append(value)
        return model, jnp.stack(losses)

    model, losses = train(eqx.filter_shard)
    _, single = train(lambda tree, sharding: tree)
    devices = model.layers[0].weight.sharding.device_set
    return {"losses": losses, "single": single, "devices": np.array(len(devices))} | _arrays("params", model)
