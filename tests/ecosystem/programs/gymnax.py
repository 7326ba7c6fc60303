"""Gymnax: environments stepped in batches, a policy trained on one, gradients through the dynamics of another."""
from __future__ import annotations

from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper
from jax.sharding import NamedSharding, PartitionSpec

_NAMES = ("CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0", "Catch-bsuite", "DeepSea-bsuite",
          "DiscountingChain-bsuite", "Breakout-MinAtar", "Freeway-MinAtar", "FourRooms-misc")


def _rollout(env: Any, params: Any, key: Any, steps: int) -> Any:
    """Steps with random actions; episodes that end begin again."""
    first, rest = jax.random.split(key)
    _, state = env.reset(first, params)

    def step(state: Any, key: Any) -> Any:
        choice, here = jax.random.split(key)
        action = env.action_space(params).sample(choice)
        obs, state, reward, terminated, truncated, info = env.step(here, state, action, params)
        return state, (obs, reward, terminated, truncated, info["discount"])

    return jax.lax.scan(step, state, jax.random.split(rest, steps))[1]


def environments() -> dict[str, Any]:
    """Rollouts of nine environments, four of each side by side."""
    out: dict[str, Any] = {}
    for name in _NAMES:
        env, params = gymnax.make(name)
        run = jax.jit(jax.vmap(lambda key, env=env, params=params: _rollout(env, params, key, 25)))
        obs, *rest = run(jax.random.split(jax.random.key(0), 4))
        flat = obs.astype(jnp.float32).reshape(*obs.shape[:2], -1)
        out[name] = [flat.mean(-1), flat[:, -1, :40], *rest]
    return out


def _over_eight_devices() -> Any:
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec("batch"))


def policy_gradient() -> dict[str, Any]:
    """REINFORCE with a baseline on Catch, 64 episodes at a time over eight devices; the policy learns to catch."""
    spread = _over_eight_devices()
    base, env_params = gymnax.make("Catch-bsuite")
    env = LogWrapper(FlattenObservationWrapper(base))
    rng = np.random.default_rng(0)
    params = {name: jnp.asarray(0.2 * rng.standard_normal(shape), jnp.float32)
              for name, shape in {"in": (50, 32), "out": (32, 3)}.items()}
    tx = optax.adam(2e-2)

    def episode(params: Any, key: Any) -> Any:
        def step(carry: Any, key: Any) -> Any:
            obs, state = carry
            choice, here = jax.random.split(key)
            logits = jnp.tanh(obs @ params["in"]) @ params["out"]
            action = jax.random.categorical(choice, logits)
            obs, state, reward, _, _, info = env.step(here, state, action, env_params)
            return (obs, state), (jax.nn.log_softmax(logits)[action], reward, info["returned_episode_returns"])

        first, rest = jax.random.split(key)
        _, (logs, rewards, returns) = jax.lax.scan(step, env.reset(first, env_params), jax.random.split(rest, 9))
        return logs.sum(), rewards.sum(), returns[-1]

    def loss(params: Any, keys: Any) -> Any:
        logs, rewards, returns = jax.vmap(episode, (None, 0))(params, keys)
        return -(logs * (rewards - rewards.mean())).mean(), (rewards.mean(), returns)

    @jax.jit
    def update(params: Any, moments: Any, keys: Any) -> Any:
        grads, (reward, returns) = jax.grad(loss, has_aux=True)(params, keys)
        updates, moments = tx.update(grads, moments)
        return optax.apply_updates(params, updates), moments, reward, returns, grads

    moments, rewards, slopes = tx.init(params), [], []
    for key in jax.random.split(jax.random.key(1), 40):
        keys = jax.device_put(jax.random.split(key, 64), spread)
        params, moments, reward, returns, grads = update(params, moments, keys)
        rewards, slopes = [*rewards, reward], [*slopes, grads]
    return {"rewards": jnp.stack(rewards), "returns": returns, "grads": slopes[0], "learned": rewards[-1] > 0.5}


def through_the_dynamics() -> dict[str, Any]:
    """The torques of a pendulum, found by gradient descent through its dynamics."""
    env, params = gymnax.make("Pendulum-v1")
    env = env.with_transition_gradients()
    _, start = env.reset(jax.random.key(2), params)

    def cost(torques: Any) -> Any:
        def step(state: Any, torque: Any) -> Any:
            _, state, reward, _, _, _ = env.step(jax.random.key(0), state, torque, params)
            return state, reward

        state, rewards = jax.lax.scan(step, start, torques)
        return -rewards.mean(), state.theta

    @jax.jit
    def descend(torques: Any) -> Any:
        (value, angle), grads = jax.value_and_grad(cost, has_aux=True)(torques)
        return torques - 2.0 * grads, value, angle, grads

    torques, values = jnp.full(20, 0.1), []
    first = descend(torques)[3]
    for _ in range(12):
        torques, value, angle, _ = descend(torques)
        values.append(value)
    return {"grads": first, "costs": jnp.stack(values), "angle": angle}
