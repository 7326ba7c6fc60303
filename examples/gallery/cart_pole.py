"""A policy learns to balance a pole on a cart; the environment runs inside `scan`, so training is one program.

Sixty-four carts run side by side under `vmap`; the policy gradient uses the returns minus a learned value (REINFORCE
with a baseline, Sutton and Barto, 2018, section 13.4).

    python examples/gallery/cart_pole.py
"""

from __future__ import annotations

from functools import partial

import numpy as np
from frame import main, steps

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn, random
from xlamini.example_libraries import optimizers

EXPECTED = {"steps balanced at first": (8, 60), "steps balanced at last": (150, 200)}
EXPECTED_QUICK = {"steps balanced at first": (8, 60), "steps balanced at last": (20, 200)}
CARTS, TIME, WIDTH, DISCOUNT = 64, 200, 32, 0.98
GRAVITY, POLE_MASS, MASS, LENGTH, FORCE, DT = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02


def move(state, action):
    """One step of cart and pole (Barto, Sutton and Anderson, 1983); state: place, speed, angle, angular speed."""
    place, speed, angle, turn = state
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    push = (FORCE * (2 * action - 1) + POLE_MASS * LENGTH * turn**2 * sine) / MASS
    bend = (GRAVITY * sine - cosine * push) / (LENGTH * (4 / 3 - POLE_MASS * cosine**2 / MASS))
    drive = push - POLE_MASS * LENGTH * bend * cosine / MASS
    return jnp.stack([place + DT * speed, speed + DT * drive, angle + DT * turn, turn + DT * bend])


def has_fallen(state):
    """Whether the cart has left the track, or the pole leans more than twelve degrees."""
    return (jnp.abs(state[0]) > 2.4) | (jnp.abs(state[2]) > 12 * jnp.pi / 180)


def init(key):
    """The parameters of a network with two outputs: the logit of a push to the right, and the value."""
    inner, outer = random.split(key)
    scale = jnp.array([1.0, 0.5, 8.0, 1.0])[:, None]
    return {"inner": random.normal(inner, (4, WIDTH)) * scale, "outer": random.normal(outer, (WIDTH, 2)) * 0.1}


def network(params, state):
    """The logit of a push to the right, and the value of a state."""
    logit, value = jnp.tanh(state @ params["inner"]) @ params["outer"]
    return logit, value


def episode(params, key):
    """One run of `TIME` steps: states, actions, and whether the pole stood at each step."""

    def step(carry, key):
        state, up = carry
        action = random.bernoulli(key, nn.sigmoid(network(params, state)[0])).astype(jnp.float32)
        after = jnp.where(up, move(state, action), state)
        return (after, up & ~has_fallen(after)), (state, action, up)

    begin, keys = random.uniform(random.fold_in(key, 0), (4,), minval=-0.05, maxval=0.05), random.split(key, TIME)
    return lax.scan(step, (begin, jnp.bool_(True)), keys)[1]


def returns(up):
    """The discounted sum of the steps that the pole still stands, at each step."""
    def add(later, reward):
        return (reward + DISCOUNT * later,) * 2
    return lax.scan(add, 0.0, up.astype(jnp.float32), reverse=True)[1]


def loss(params, episodes):
    """The policy gradient's surrogate, and the square error of the values, over many episodes."""
    states, actions, up = episodes
    logits, values = xlamini.vmap(xlamini.vmap(network, (None, 0)), (None, 0))(params, states)
    goals = xlamini.vmap(returns)(up) / 25
    chosen = -nn.softplus(jnp.where(actions == 1, -logits, logits))
    gain = lax.stop_gradient(goals - values)
    gain = gain / (jnp.std(gain, where=up) + 1e-6)
    return jnp.mean((values - goals) ** 2 - chosen * gain, where=up)


def train(params, count):
    """Adam; the parameters, and how long the poles stood at each update."""
    opt_init, update, get_params = optimizers.adam(0.01)

    @partial(xlamini.jit, donate_argnums=1)
    def step(i, state):
        keys = random.split(random.fold_in(random.key(1), i), CARTS)
        episodes = xlamini.vmap(episode, (None, 0))(get_params(state), keys)
        state = update(i, xlamini.grad(loss)(get_params(state), episodes), state)
        return state, jnp.sum(episodes[2], axis=1)

    state, stood = opt_init(params), []
    for i in steps(count):
        state, length = step(i, state)
        stood.append(np.asarray(length))
    return get_params(state), np.stack(stood)


def run(quick=False):
    """Learn to balance a pole on a cart."""
    params, stood = train(init(random.key(0)), 15 if quick else 60)
    states, _, up = xlamini.jit(episode)(params, random.key(7))
    numbers = {
        "steps balanced at first": float(stood[:3].mean()),
        "steps balanced at last": float(stood[-5:].mean()),
    }
    return numbers, lambda figure: draw(figure, stood, np.asarray(states), np.asarray(up))


def draw(figure, stood, states, up):
    """Draw how long the poles stood, and one run of the last policy, from light to dark."""
    left, right = figure.subplots(1, 2)
    left.plot(stood, color="tab:green", linewidth=0.2, alpha=0.4)
    left.plot(stood.mean(axis=1), color="tab:green", linewidth=2)
    left.set(xlabel="update", title=f"Steps that the pole stands, of {TIME}")
    for i in range(0, int(up.sum()), 10):
        place, angle = states[i, 0], states[i, 2]
        tip = place + np.sin(angle), np.cos(angle)
        right.plot([place, tip[0]], [0, tip[1]], color=shade(i / TIME), linewidth=2)
    right.set(title="The pole at every tenth step", aspect="equal", adjustable="datalim")


def shade(share):
    """A blue that darkens from 0 to 1."""
    return (0.8 - 0.8 * share, 0.85 - 0.6 * share, 1 - 0.4 * share)


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
