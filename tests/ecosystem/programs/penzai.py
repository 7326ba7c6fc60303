"""Penzai and treescope: a transformer trained and edited, arrays with named axes, and values shown as text."""
from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import treescope
from penzai import pz
from penzai.models import simple_mlp
from penzai.models.transformer.variants import llamalike_common
from penzai.toolshed import basic_training

_RNG = np.random.default_rng(0)
_TOKENS = pz.nx.wrap(jnp.asarray(_RNG.integers(0, 11, (4, 7))), "batch", "seq")


def _transformer(seed: int) -> Any:
    """Two blocks in a layer stack, with grouped heads, rotary positions and gated feed-forward layers."""
    config = llamalike_common.LlamalikeTransformerConfig(
        num_kv_heads=2, query_head_multiplier=2, embedding_dim=8, projection_dim=4, mlp_hidden_dim=12,
        num_decoder_blocks=2, vocab_size=11, mlp_variant="swiglu", rope_wavelength=100.0,
        tie_embedder_and_logits=False, use_layer_stack=True)
    return llamalike_common.build_llamalike_transformer(config, init_base_rng=jax.random.key(seed))


def _loss(model: Any, rng: Any = None, state: Any = None, *, tokens: Any) -> Any:
    """Cross-entropy of the next token."""
    logits = model(tokens, token_positions=pz.nx.arange("seq", 7))
    logs = pz.nx.nmap(jax.nn.log_softmax)(logits.untag("vocabulary")).tag("vocabulary")
    following = pz.nx.nmap(lambda logs, t: jnp.take_along_axis(logs[:-1], t[1:, None], axis=1).mean())(
        logs.untag("seq", "vocabulary"), tokens.untag("seq"))
    loss = -following.unwrap("batch").mean()
    return loss, state, {"loss": loss}


def transformer() -> dict[str, Any]:
    """A transformer trained by `StatefulTrainer`, its activations replaced by hand, pickled, and its gradients."""
    model = _transformer(0)
    bound, params = pz.unbind_params(model, freeze=True)
    grads = jax.jit(jax.grad(lambda p: _loss(pz.bind_variables(bound, p), tokens=_TOKENS)[0]))(params)
    trainer = basic_training.StatefulTrainer.build(
        root_rng=jax.random.key(1), model=model, optimizer_def=optax.adam(3e-2), loss_fn=_loss)
    losses = [trainer.step(tokens=_TOKENS)["loss"] for _ in range(12)]
    frozen, values = pz.unbind_params(model, freeze=True)
    again = pz.bind_variables(frozen, pickle.loads(pickle.dumps(values)))
    logits = again(_TOKENS, token_positions=pz.nx.arange("seq", 7)).unwrap("batch", "seq", "vocabulary")
    edited = pz.select(again).at_instances_of(pz.nn.RMSLayerNorm).apply(lambda layer: pz.nn.Identity())
    plain = edited(_TOKENS, token_positions=pz.nx.arange("seq", 7)).unwrap("batch", "seq", "vocabulary")
    return {"grads": jax.tree.leaves(grads), "losses": losses, "logits": logits, "edited": plain,
            "layers": len(pz.select(again).at_instances_of(pz.nn.Linear).get_sequence())}


def named_axes() -> dict[str, Any]:
    """Arrays with named axes: lifted functions, products, slices, updates, under jit and grad; a small network."""
    x = pz.nx.wrap(jnp.asarray(_RNG.standard_normal((3, 4, 5)), jnp.float32), "a", "b", "c")
    w = pz.nx.wrap(jnp.asarray(_RNG.standard_normal((5, 2)), jnp.float32), "c", "d")
    product = pz.nx.nmap(jnp.dot)(x.untag("c"), w.untag("c"))
    sums = pz.nx.nmap(jnp.cumsum)(x.untag("b")).tag("b")
    sliced = x[{"a": 1, "c": pz.slice[1:4]}]
    updated = x.at[{"b": 2}].set(0.0)
    network = simple_mlp.MLP.from_config(jax.random.key(0), [5, 8, 2], activation_fn=jnp.tanh)
    network = pz.freeze_params(network)
    out = network(x.untag("c").tag("features"))
    slope = jax.grad(lambda x: pz.nx.nmap(jnp.sum)(
        (network(x) ** 2).untag("a", "b", "features")).unwrap())(x.untag("c").tag("features"))
    return {
        "product": product.unwrap("a", "b", "d"), "sums": sums.unwrap("a", "c", "b"),
        "sliced": sliced.unwrap("b", "c"), "updated": updated.unwrap("a", "b", "c"),
        "network": jax.jit(lambda v: v)(out).unwrap("a", "b", "features"), "slope": slope.unwrap("a", "b", "features"),
        "sorted": pz.nx.nmap(jnp.sort)((x + 2 * w).untag("c")).tag("c").unwrap("a", "b", "c", "d"),
    }


def shown() -> dict[str, Any]:
    """What treescope prints of arrays, and that its page of a model names its parameters."""
    values = {"named": pz.nx.wrap(jnp.arange(6.0).reshape(2, 3), "a", "b"), "plain": jnp.arange(4),
              "flag": jnp.array(True), "half": jnp.ones((2, 2), jnp.bfloat16), "number": 3}
    page = treescope.render_to_html(_transformer(2))
    return {"text": np.frombuffer(treescope.render_to_text(values).encode(), np.uint8),
            "page": all(name in page for name in ("query.weights", "value_linear.weights", "pre_ffw_norm"))}
