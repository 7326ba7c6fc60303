"""Programs of rlax: returns and losses with gradients, and agents trained on a small chain of states."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import rlax


def losses_and_returns() -> dict[str, jax.Array]:
    """Returns and temporal-difference errors, batched by vmap, with the gradients that their stops let through."""
    rng = np.random.default_rng(0)
    real = lambda *shape: jnp.asarray(rng.standard_normal(shape), jnp.float32)
    q, q_next, v, v_next, reward = real(4, 6, 3), real(4, 6, 3), real(4, 6), real(4, 6), real(4, 6)
    discount = jnp.full((4, 6), 0.9).at[1, 3].set(0.0)
    actions = jnp.asarray(rng.integers(0, 3, (4, 6)))
    rho, lambda_, ones = jnp.exp(0.5 * real(4, 6)), jnp.full((4, 6), 0.8), jnp.ones((4, 6))
    each = jax.vmap  # the losses of one transition, over time

    def retrace(q, q_next, a, r, g, pi):
        return rlax.retrace(q[:-1], q_next[1:], a[:-1], a[1:], r[1:], g[1:], pi[1:], rho[0, 1:], 0.9)

    losses = {
        "q_learning": (each(rlax.q_learning), q, actions, reward, discount, q_next),
        "double_q": (each(rlax.double_q_learning), q, actions, reward, discount, q_next, -q_next),
        "expected_sarsa": (each(rlax.expected_sarsa), q, actions, reward, discount, q_next, jax.nn.softmax(q_next)),
        "q_lambda": (rlax.q_lambda, q, actions, reward, discount, q_next, lambda_),
        "retrace": (retrace, q, q_next, actions, reward, discount, jax.nn.softmax(q_next)),
        "td_lambda": (rlax.td_lambda, v, reward, discount, v_next, lambda_),
        "vtrace": (rlax.vtrace, v, v_next, reward, discount, rho),
        "lambda_returns": (lambda v, r, d: rlax.lambda_returns(r, d, v, 0.9), v, reward, discount),
        "n_step": (lambda v, r, d: rlax.n_step_bootstrapped_returns(r, d, v, 3), v, reward, discount),
        "policy_gradient": (rlax.policy_gradient_loss, q, actions, v, ones),
        "entropy": (rlax.entropy_loss, q, ones),
        "clipped": (lambda r, a: rlax.clipped_surrogate_pg_loss(r, a, 0.2), rho, v),
        "huber": (rlax.huber_loss, q),
        "expectile": (lambda x, y: rlax.expectile_loss(x, y, 0.3), q, q_next),
        "hyperbolic": (lambda x: rlax.signed_parabolic(rlax.signed_hyperbolic(x) + 1.0), v),
        "clip_gradient": (lambda x: rlax.clip_gradient(x, -0.5, 0.5), q),
    }
    found = {}
    for name, (f, first, *rest) in losses.items():
        batched = jax.vmap(f)
        loss = lambda x, f=batched, rest=rest: (f(x, *rest) ** 2).sum()
        found[name] = [batched(first, *rest), jax.jit(jax.grad(loss))(first)]
    return found


def distributional_losses() -> dict[str, jax.Array]:
    """Categorical and quantile temporal differences, two-hot targets, MPO's losses, policies, and their gradients."""
    rng = np.random.default_rng(1)
    real = lambda *shape: jnp.asarray(rng.standard_normal(shape), jnp.float32)
    atoms, logits, following = jnp.linspace(-2.0, 2.0, 9), real(5, 9), real(5, 9)
    reward, discount = real(5), jnp.full(5, 0.7)
    pair = rlax.twohot_pair(-3.0, 3.0, 7)

    def categorical(logits):
        td = lambda x, r, d, y: rlax.categorical_td_learning(atoms, x, r, d, atoms, y)
        return jax.vmap(td)(logits, reward, discount, following)

    def quantile(dist):
        taus = jnp.linspace(0.1, 0.9, 4)
        q = lambda d, r, g, n: rlax.quantile_q_learning(d, taus, 1, r, g, n, n, huber_param=1.0)
        return jax.vmap(q)(dist, reward, discount, distribution_next)

    dist, distribution_next = real(5, 4, 3), real(5, 4, 3)
    samples = real(3, 4)

    def temperature(eta):
        penalty = rlax.LagrangePenalty(alpha=eta, epsilon=jnp.array(0.1))
        return rlax.mpo_compute_weights_and_temperature_loss(samples, penalty, rlax.identity)[0].sum()

    policy = rlax.softmax(0.5)
    gaussian = rlax.gaussian_diagonal(0.3)
    return {
        "categorical": [categorical(logits), jax.grad(lambda x: categorical(x).sum())(logits)],
        "quantile": [quantile(dist), jax.grad(lambda x: quantile(x).sum())(dist)],
        "projected": rlax.categorical_l2_project(atoms * 0.7 + 0.3, jax.nn.softmax(logits[0]), atoms),
        "two_hot": [pair.apply(reward), pair.apply_inv(pair.apply(reward))],
        "temperature": jax.value_and_grad(temperature)(jnp.array(1.5)),
        "actions": [policy.sample(jax.random.PRNGKey(0), logits), rlax.greedy().probs(logits)],
        "policy": [policy.logprob(jnp.arange(5), logits), jax.grad(lambda x: policy.entropy(x).sum())(logits)],
        "gaussian": [gaussian.sample(jax.random.PRNGKey(1), logits), gaussian.logprob(logits, following)],
        "noise": rlax.add_ornstein_uhlenbeck_noise(jax.random.PRNGKey(2), reward, discount, 0.1, 0.2),
    }


def agents_on_a_chain() -> dict[str, jax.Array]:
    """Q-learning on a chain of states in one jitted scan, eight agents at once; the target is copied periodically."""
    states = 6

    def environment(state, action):
        following = jnp.clip(state + 2 * action - 1, 0, states - 1)
        done = following == states - 1
        return jnp.where(done, 0, following), done.astype(jnp.float32), jnp.where(done, 0.0, 0.95)

    def step(carry, inputs):
        q, target, state, key = carry
        count, rate = inputs
        key, sub = jax.random.split(key)
        action = rlax.epsilon_greedy(0.3).sample(sub, q[state])
        following, reward, discount = environment(state, action)
        loss = lambda q: rlax.l2_loss(rlax.q_learning(q[state], action, reward, discount, target[following]))
        q = q - rate * jax.grad(loss)(q)
        target = rlax.periodic_update(q, target, count, 5)
        return (q, target, following, key), reward

    @jax.jit
    @jax.vmap
    def train(key):
        start = (jnp.zeros((states, 2)), jnp.zeros((states, 2)), 0, key)
        steps = (jnp.arange(400), jnp.linspace(0.5, 0.05, 400))
        (q, *_), rewards = jax.lax.scan(step, start, steps)
        return q, rewards.sum()

    q, rewards = train(jax.random.split(jax.random.PRNGKey(0), 8))
    return {"q": q.mean(0), "rewards": rewards, "greedy": q.argmax(-1)[:, :-1]}
