"""Programs of dm-haiku: batch normalization and dropout, recurrent cores, and transformations lifted over modules."""
from __future__ import annotations

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def convolutional_classifier() -> dict[str, jax.Array]:
    """Convolutions, batch normalization and dropout, trained with the batch over eight devices; then in test mode."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((16, 8, 8, 1)).astype(np.float32)
    labels = jnp.asarray(images[:, :4].sum((1, 2, 3)) > images[:, 4:].sum((1, 2, 3)), jnp.int32)

    def network(x, is_training):
        for channels in (4, 8):
            x = hk.Conv2D(channels, 3, stride=2, w_init=hk.initializers.VarianceScaling(2.0))(x)
            x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, is_training))
        x = hk.Flatten()(hk.max_pool(x, 2, 1, "SAME"))
        x = hk.LayerNorm(-1, True, True)(x)
        return hk.Linear(2)(hk.dropout(hk.next_rng_key(), 0.1, x) if is_training else x)

    model = hk.transform_with_state(network)
    params, state = model.init(jax.random.PRNGKey(1), images, True)
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    images, labels = jax.device_put((images, labels), NamedSharding(mesh, P("batch")))

    def loss(params, state, rng):
        logits, state = model.apply(params, state, rng, images, True)
        return -(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 2)).sum(1).mean(), state

    @jax.jit
    def step(params, state, rng):
        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, rng)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), state, value

    keys = hk.PRNGSequence(2)
    losses = []
    for _ in range(12):
        params, state, value = step(params, state, next(keys))
        losses.append(float(value))
    logits, _ = model.apply(params, state, None, images, False)
    return {
        "losses": jnp.array(losses),
        "logits": logits,
        "mean": state["batch_norm/~/mean_ema"]["average"],
        "names": sorted(params) == ["batch_norm", "batch_norm_1", "conv2_d", "conv2_d_1", "layer_norm", "linear"],
        "filters": params["conv2_d"]["w"][:, :, 0, 0],
    }


class _Block(hk.Module):
    """Causal attention and a perceptron, with residual connections."""

    def __call__(self, x):
        width = x.shape[-1]
        normalized = hk.RMSNorm(-1)(x)
        causal = jnp.tril(jnp.ones((1, len(x), len(x))))
        attend = hk.MultiHeadAttention(2, width // 2, w_init=hk.initializers.TruncatedNormal(0.3), model_size=width)
        x = x + attend(normalized, normalized, normalized, causal)
        return x + hk.nets.MLP([width * 2, width], activation=jax.nn.gelu)(x)


def recurrent_cores() -> dict[str, jax.Array]:
    """An LSTM and a GRU with resets, unrolled over tied embeddings; gradients; hk.scan over the same core."""
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 11, (5, 3)))
    resets = jnp.zeros((5, 3), bool).at[2, 1].set(True)

    def unrolled(tokens):
        embed = hk.Embed(11, 8)
        core = hk.ResetCore(hk.DeepRNN([hk.LSTM(8), jnp.tanh, hk.GRU(8)]))
        out, _ = hk.dynamic_unroll(core, (embed(tokens), resets), core.initial_state(3))
        return out @ embed.embeddings.T

    def scanned(tokens):
        core = hk.GRU(8)
        embedded = hk.Embed(11, 8)(tokens)
        state = core.initial_state(3)
        if hk.running_init():
            return core(embedded[0], state)[0]
        return hk.scan(lambda state, x: core(x, state)[::-1], state, embedded)[0]

    found = {}
    for name, network in (("unrolled", unrolled), ("scanned", scanned)):
        model = hk.without_apply_rng(hk.transform(network))
        params = model.init(jax.random.PRNGKey(0), tokens)
        loss = lambda p, model=model: (model.apply(p, tokens) ** 2).mean()
        found[name] = [model.apply(params, tokens)[-1], jax.jit(jax.grad(loss))(params)]
    return found


def transformer_by_layers() -> dict[str, jax.Array]:
    """Blocks of attention in hk.layer_stack with hk.remat and hk.vmap over sequences; the gradient of the loss."""
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 9, (4, 6)))

    def network(tokens):
        x = hk.Embed(9, 8)(tokens)
        x = x + hk.get_parameter("positions", (6, 8), init=hk.initializers.RandomNormal(0.1))
        stack = lambda x: hk.layer_stack(3)(lambda x: hk.remat(_Block())(x))(x)
        x = hk.vmap(stack, split_rng=False)(x)
        return hk.Linear(9)(x)

    model = hk.without_apply_rng(hk.transform(network))
    params = jax.jit(model.init)(jax.random.PRNGKey(3), tokens)

    def loss(params):
        logits = jax.nn.log_softmax(model.apply(params, tokens))
        return -jnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], 2).mean()

    def step(params, _):
        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.2 * g, params, grads), value

    grads = jax.grad(loss)(params)
    # the gradient of a bias of keys is zero but for rounding, as softmax does not see it
    named = {f"{module}/{name}": x.ravel()[:3] for module, name, x in hk.data_structures.traverse(grads)}
    leaves = {name: x for name, x in named.items() if not name.endswith("key/b")}
    return {"losses": jax.lax.scan(step, params, None, 25)[1][::6], "leaves": leaves}
