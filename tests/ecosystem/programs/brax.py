"""Brax: environments stepped in batches, gradients through the physics, PPO."""
from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax
from brax import envs
from brax.io import mjcf
from brax.spring import pipeline as spring
from brax.training import acting, gradients
from brax.training.acme import running_statistics, specs
from brax.training.agents.ppo import losses, networks as ppo_networks

PENDULUM = """<mujoco><option timestep="0.01"/><worldbody>
  <body name="upper" pos="0 0 2"><joint type="hinge" axis="0 1 0" damping="0.1"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.6"/>
    <body name="lower" pos="0 0 -0.6"><joint type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.6"/></body></body>
</worldbody></mujoco>"""


def environments() -> dict[str, Any]:
    """Steps of two environments in batches."""
    out: dict[str, Any] = {}
    for backend in ("generalized",):
        env = envs.create("inverted_pendulum", backend=backend, batch_size=3, episode_length=50)
        state = jax.jit(env.reset)(jax.random.PRNGKey(0))
        step = jax.jit(env.step)
        rewards = []
        for i in range(5):
            state = step(state, jnp.full((3, env.action_size), 0.1 * i))
            rewards.append(state.reward)
        out |= {f"{backend}/obs": state.obs, f"{backend}/rewards": jnp.stack(rewards), f"{backend}/done": state.done}
    fast = envs.create("fast", episode_length=10, batch_size=2)
    state = fast.reset(jax.random.PRNGKey(0))
    for _ in range(12):
        state = fast.step(state, jnp.zeros((2, fast.action_size)))
    return out | {"fast/steps": state.info["steps"], "fast/obs": state.obs}


def through_physics() -> dict[str, Any]:
    """Gradients through ten steps of the spring pipeline."""
    system = mjcf.loads(PENDULUM)
    out: dict[str, Any] = {}
    for name, pipeline in {"spring": spring}.items():
        def end(q: Any, pipeline: Any = pipeline) -> Any:
            state = pipeline.init(system, q, jnp.zeros(2))
            state, _ = jax.lax.scan(lambda s, _: (pipeline.step(system, s, jnp.zeros(0)), None), state, None, length=10)
            return state.x.pos[-1]

        start = jnp.array([0.4, -0.3])
        out[f"{name}/end"], pullback = jax.vjp(jax.jit(end), start)
        out[f"{name}/grads"] = pullback(jnp.ones(3))[0]
    return out


def policy_optimization() -> dict[str, Any]:
    """PPO by the parts of Brax: experience from rollouts, its loss, and a few updates of policy and value function."""
    env = envs.create("inverted_pendulum", backend="spring", batch_size=8, episode_length=50)
    network = ppo_networks.make_ppo_networks(env.observation_size, env.action_size, running_statistics.normalize,
                                             policy_hidden_layer_sizes=(8,), value_hidden_layer_sizes=(8,))
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    params = losses.PPONetworkParams(network.policy_network.init(keys[0]), network.value_network.init(keys[1]))
    normalizer = running_statistics.init_state(specs.Array((env.observation_size,), jnp.dtype("float32")))
    policy = ppo_networks.make_inference_fn(network)((normalizer, params.policy))
    _, data = jax.jit(lambda state, key: acting.generate_unroll(env, state, policy, key, 8, ("truncation",)))(
        jax.jit(env.reset)(keys[2]), keys[3])
    normalizer = running_statistics.update(normalizer, data.observation)
    data = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), data)
    tx = optax.adam(1e-2)
    loss = functools.partial(losses.compute_ppo_loss, ppo_network=network)
    update = jax.jit(gradients.gradient_update_fn(loss, tx, pmap_axis_name=None, has_aux=True))
    first = jax.jit(jax.grad(loss, has_aux=True))(params, normalizer, data, keys[0])[0]
    moments, values = tx.init(params), []
    for key in jax.random.split(keys[3], 10):
        (value, _), params, moments = update(params, normalizer, data, key, optimizer_state=moments)
        values.append(value)
    return {"rewards": data.reward, "actions": data.action, "losses": jnp.stack(values),
            "grads": [first.policy, first.value]}
