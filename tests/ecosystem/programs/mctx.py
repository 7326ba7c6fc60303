"""Mctx: tree searches with a known model, and a network trained on the policies that its own searches find."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

_LENGTH = 9
_TARGETS = jnp.asarray(np.random.default_rng(0).uniform(0.1, 1.0, _LENGTH), jnp.float32)


def _walk(params: Any, key: Any, action: Any, position: Any) -> Any:
    """A step to the left, to the right, or of two places; places pay what `_TARGETS` says, the ends end the walk."""
    following = jnp.clip(position + jnp.array([-1, 1, 2])[action], 0, _LENGTH - 1)
    done = (following == 0) | (following == _LENGTH - 1)
    logits, value = _network(params, following)
    discount = jnp.where(done, 0.0, 0.9)
    step = mctx.RecurrentFnOutput(reward=_TARGETS[following], discount=discount, prior_logits=logits, value=value)
    return step, following


def _network(params: Any, position: Any) -> Any:
    hidden = jnp.tanh(params["in"][position])
    return hidden @ params["policy"], (hidden @ params["value"])[..., 0]


def _params(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {"in": (_LENGTH, 8), "policy": (8, 3), "value": (8, 1)}
    return {name: jnp.asarray(0.5 * rng.standard_normal(shape), jnp.float32) for name, shape in shapes.items()}


def _root(params: Any, position: Any) -> Any:
    logits, value = _network(params, position)
    return mctx.RootFnOutput(prior_logits=logits, value=value, embedding=position)


def _found(policy: Any) -> dict[str, Any]:
    tree = policy.search_tree
    summary = tree.summary()
    return {"action": policy.action, "weights": policy.action_weights, "visits": summary.visit_counts,
            "values": summary.value, "q": summary.qvalues, "parents": tree.parents, "depths": tree.node_visits}


def searches() -> dict[str, Any]:
    """MuZero's search, Gumbel's with two ways to complete values, one with chance nodes, one with forbidden moves."""
    params, start = _params(1), jnp.array([2, 4, 5, 7])
    transforms = {"gumbel": mctx.qtransform_completed_by_mix_value, "gumbel_min_max": mctx.qtransform_by_min_max}
    forbidden = jnp.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    limits = {"min_value": 0.0, "max_value": 5.0}
    out: dict[str, Any] = {}
    run = lambda policy, **options: jax.jit(lambda params, key: _found(policy(
        params, key, _root(params, start), _walk, 24, **options)))(params, jax.random.key(0))
    out["muzero"] = run(mctx.muzero_policy, dirichlet_fraction=0.25, temperature=0.7)
    out["forbidden"] = run(mctx.muzero_policy, invalid_actions=forbidden, max_depth=4)
    for name, transform in transforms.items():
        chosen = (lambda q: lambda *x: q(*x, **limits))(transform) if name == "gumbel_min_max" else transform
        out[name] = run(mctx.gumbel_muzero_policy, max_num_considered_actions=3, qtransform=chosen)
    stochastic = jax.jit(lambda params, key: mctx.stochastic_muzero_policy(
        params, key, _root(params, start), _decide, _chance, num_simulations=16))(params, jax.random.key(1))
    return out | {"stochastic": [stochastic.action, stochastic.action_weights]}


def _decide(params: Any, key: Any, action: Any, place: Any) -> Any:
    """A move is chosen; the state after it is the place and the move."""
    value = _TARGETS[place]
    logits = jnp.stack([value, jnp.zeros_like(value)], -1)
    return mctx.DecisionRecurrentFnOutput(chance_logits=logits, afterstate_value=value), place * 3 + action


def _chance(params: Any, key: Any, outcome: Any, after: Any) -> Any:
    """Where a move ends: with the second outcome it is not made."""
    moved, place = _walk(params, key, after % 3, after // 3)
    following = jnp.where(outcome == 0, place, after // 3)
    logits, value = _network(params, following)
    reward = moved.reward * (outcome == 0)
    step = mctx.ChanceRecurrentFnOutput(action_logits=logits, value=value, reward=reward, discount=moved.discount)
    return step, following


def expert_iteration() -> dict[str, Any]:
    """A network learns the policies and values of its own searches, from positions spread over eight devices."""
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    start = jax.device_put(jnp.arange(16) % (_LENGTH - 2) + 1, NamedSharding(mesh, PartitionSpec("batch")))

    def search(params: Any, key: Any) -> Any:
        policy = mctx.gumbel_muzero_policy(params, key, _root(params, start), _walk, 16, gumbel_scale=0.0)
        return policy.action_weights, policy.search_tree.summary().value

    def loss(params: Any, weights: Any, values: Any) -> Any:
        logits, value = _network(params, start)
        return -(weights * jax.nn.log_softmax(logits)).sum(-1).mean() + ((value - values) ** 2).mean()

    @jax.jit
    def update(params: Any, key: Any) -> Any:
        targets = search(params, key)
        value, grads = jax.value_and_grad(loss)(params, *targets)
        return jax.tree.map(lambda p, g: p - 0.3 * g, params, grads), value, grads

    params, losses = _params(2), []
    first = update(params, jax.random.key(0))[2]
    for key in jax.random.split(jax.random.key(1), 25):
        params, value, _ = update(params, key)
        losses.append(value)
    return {"losses": jnp.stack(losses), "grads": first, "policy": jax.nn.softmax(_network(params, start)[0])}
