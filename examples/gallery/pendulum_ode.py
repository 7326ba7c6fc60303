"""A neural ODE learns the law of motion of a damped pendulum from noisy paths, and continues them.

The solver is a classical Runge-Kutta step inside `scan`; reverse mode runs it backwards, and `checkpoint` keeps only
the states between the steps. `vmap` solves all paths at once.

    python examples/gallery/pendulum_ode.py
"""

from __future__ import annotations

import numpy as np
from frame import main, steps

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, random
from xlamini.example_libraries import optimizers

EXPECTED = {"error on seen times": (0.0, 0.08), "error on the forecast": (0.0, 0.25)}
EXPECTED_QUICK = {"error on seen times": (0.0, 0.5), "error on the forecast": (0.0, 1.5)}
DT, SEEN, TOTAL, PATHS, WIDTH = 0.1, 40, 120, 16, 32


def pendulum(state):
    """The true law: the derivative of the angle and of the velocity."""
    angle, velocity = state
    return jnp.stack([velocity, -2.0 * jnp.sin(angle) - 0.15 * velocity])


def network(params, state):
    """The learned law: a network of one hidden layer. It knows that the angle's derivative is the velocity."""
    features = jnp.stack([jnp.sin(state[0]), jnp.cos(state[0]), state[1]])
    hidden = jnp.tanh(features @ params["inner"] + params["bias"])
    return jnp.stack([state[1], hidden @ params["outer"]])


def solve(law, start, count):
    """The path from `start`: `count` steps of the classical Runge-Kutta method, as an array [count + 1, 2]."""

    @xlamini.checkpoint
    def step(state, _):
        a = law(state)
        b = law(state + DT / 2 * a)
        c = law(state + DT / 2 * b)
        d = law(state + DT * c)
        return state + DT / 6 * (a + 2 * b + 2 * c + d), state

    last, path = lax.scan(step, start, length=count)
    return jnp.concatenate([path, last[None]])


def predict(params, starts, count):
    """The paths of the learned law from several starts."""
    return xlamini.vmap(lambda start: solve(lambda state: network(params, state), start, count))(starts)


def loss(params, paths):
    """The mean square error of the learned paths, from their first states on."""
    return jnp.mean((predict(params, paths[:, 0], paths.shape[1] - 1) - paths) ** 2)


def init(key):
    """The parameters of the network."""
    inner, outer = random.split(key)
    return {
        "inner": random.normal(inner, (3, WIDTH)) * 0.5,
        "bias": jnp.zeros(WIDTH),
        "outer": random.normal(outer, (WIDTH,)) * 0.1,
    }


def train(params, paths, count):
    """Adam on growing pieces of the paths: short ones first, since long ones have no useful gradient at the start."""
    opt_init, update, get_params = optimizers.adam(optimizers.exponential_decay(0.02, count, 0.1))

    @xlamini.jit
    def step(i, state, paths):
        value, grads = xlamini.value_and_grad(loss)(get_params(state), paths)
        return update(i, grads, state), value

    state, losses = opt_init(params), []
    for i in steps(count):
        length = SEEN // 4 if i < count // 3 else SEEN
        state, value = step(i, state, paths[:, : length + 1])
        losses.append(float(value))
    return get_params(state), losses


def run(quick=False):
    """Learn the law of a pendulum from paths, and forecast."""
    key = random.key(0)
    starts = random.uniform(random.fold_in(key, 0), (PATHS, 2), minval=-1.8, maxval=1.8)
    paths = xlamini.jit(xlamini.vmap(lambda start: solve(pendulum, start, TOTAL)))(starts)
    noise = 0.02 * random.normal(random.fold_in(key, 1), paths.shape)
    params, losses = train(init(random.fold_in(key, 2)), (paths + noise)[:, : SEEN + 1], 90 if quick else 900)
    learned = xlamini.jit(predict, static_argnums=2)(params, starts, TOTAL)
    error = np.sqrt(np.mean(np.square(learned - paths), axis=(0, 2)))
    numbers = {
        "error on seen times": float(error[: SEEN + 1].mean()),
        "error on the forecast": float(error[SEEN + 1 :].mean()),
    }
    return numbers, lambda figure: draw(figure, np.asarray(paths), np.asarray(learned), losses)


def draw(figure, paths, learned, losses):
    """Draw three paths over time, all of them in phase space, and the loss."""
    time = np.arange(TOTAL + 1) * DT
    over_time, phase, curve = figure.subplots(1, 3, width_ratios=[2, 1.4, 1])
    for i, color in zip(range(3), ("tab:blue", "tab:orange", "tab:green"), strict=True):
        over_time.plot(time, paths[i, :, 0], "--", color=color, linewidth=1)
        over_time.plot(time, learned[i, :, 0], color=color)
    over_time.axvspan(0, SEEN * DT, color="gray", alpha=0.15)
    over_time.set(xlabel="time (gray: seen in training)", title="Angle: truth dashed, learned solid")
    phase.plot(*learned.transpose(2, 1, 0), color="tab:purple", linewidth=0.5)
    phase.set(xlabel="angle", ylabel="velocity", title="Learned paths")
    curve.semilogy(losses, color="tab:green")
    curve.set(xlabel="step", title="Loss")


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
