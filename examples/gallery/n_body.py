"""A spacecraft finds its way past a moon: the launch is improved by differentiating through the whole flight.

The flight is 600 leapfrog steps in one `scan`. `value_and_grad` gives the derivative of the miss distance and the fuel
with respect to the launch, and Gauss-Newton steps with `jacfwd` bring the craft to its goal.

    python examples/gallery/n_body.py
"""

from __future__ import annotations

from functools import partial

import numpy as np
from frame import main, steps

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

EXPECTED = {"miss distance": (0.0, 0.01), "energy drift": (0.0, 0.01), "jacobian error": (0.0, 0.02)}
EXPECTED_QUICK = EXPECTED | {"miss distance": (0.0, 0.1), "energy drift": (0.0, 0.05)}
MASSES = jnp.array([1.0, 0.05])  # a planet and its moon; the craft has no mass
MOON = (jnp.array([1.0, 0.0]), jnp.array([0.0, (1.05 / 1.0) ** 0.5]))
START, GOAL, TIME = jnp.array([-0.5, 0.0]), jnp.array([1.6, 0.9]), 3.0


def acceleration(positions):
    """Newton's law for all bodies, softened a little: positions [3, 2], accelerations [3, 2]."""
    away = positions[None, :2] - positions[:, None]
    distance = jnp.sqrt(jnp.sum(away**2, axis=-1) + 1e-4)
    return jnp.sum(MASSES[:, None] * away / distance[..., None] ** 3, axis=1)


def fly(launch, count):
    """The positions of planet, moon and craft [count, 3, 2] after a launch with the velocity `launch`."""
    share = MASSES[1] / MASSES.sum()
    positions = jnp.stack([-share * MOON[0], (1 - share) * MOON[0], START])
    velocities = jnp.stack([-share * MOON[1], (1 - share) * MOON[1], launch])
    dt = TIME / count

    @xlamini.checkpoint
    def step(state, _):
        positions, velocities = state
        velocities = velocities + dt / 2 * acceleration(positions)
        positions = positions + dt * velocities
        velocities = velocities + dt / 2 * acceleration(positions)
        return (positions, velocities), (positions, energy(positions, velocities))

    _, (path, energies) = lax.scan(step, (positions, velocities), length=count)
    return path, energies


def energy(positions, velocities):
    """The energy of planet and moon."""
    distance = jnp.sqrt(jnp.sum((positions[0] - positions[1]) ** 2) + 1e-4)
    return 0.5 * jnp.sum(MASSES * jnp.sum(velocities[:2] ** 2, axis=-1)) - MASSES[0] * MASSES[1] / distance


def miss(launch, count):
    """The vector from the goal to where the craft is at the end."""
    return fly(launch, count)[0][-1, 2] - GOAL


@partial(xlamini.jit, static_argnums=1)
def improve(launch, count):
    """One damped Gauss-Newton step towards the goal, and the distance before it."""
    off, slope = miss(launch, count), xlamini.jacfwd(miss)(launch, count)
    change = jnp.linalg.solve(slope.T @ slope + 1e-3 * jnp.eye(2), slope.T @ off)
    return launch - change * jnp.minimum(1.0, 0.1 / jnp.linalg.norm(change)), jnp.linalg.norm(off)


def run(quick=False):
    """Find the launch of a spacecraft that reaches its goal past a moon."""
    count = 200 if quick else 600
    launch = jnp.array([0.0, -1.75])
    first, energies = xlamini.jit(fly, static_argnums=1)(launch, count)
    distances = []
    for _ in steps(20 if quick else 40):
        launch, distance = improve(launch, count)
        distances.append(float(distance))
    path = fly(launch, count)[0]
    forward, backward = xlamini.jacfwd(miss)(launch, count), xlamini.jacrev(miss)(launch, count)
    numbers = {
        "miss distance": float(jnp.linalg.norm(miss(launch, count))),
        "energy drift": float(jnp.ptp(energies) / jnp.abs(energies[0])),
        "jacobian error": float(jnp.max(jnp.abs(forward - backward)) / jnp.max(jnp.abs(forward))),
    }
    return numbers, lambda figure: draw(figure, np.asarray(first), np.asarray(path), distances)


def draw(figure, first, path, distances):
    """Draw the first and the last flight, and the distance over the steps."""
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    left.plot(*path[:, 0].T, color="tab:blue", label="planet", linewidth=4)
    left.plot(*path[:, 1].T, color="gray", label="moon")
    left.plot(*first[:, 2].T, "--", color="tab:orange", linewidth=1, label="first flight")
    left.plot(*path[:, 2].T, color="tab:red", label="last flight")
    left.plot(*START, "o", color="black")
    left.plot(*GOAL, "*", color="black", markersize=10)
    left.set(aspect="equal", title="From the dot to the star in three units of time")
    left.legend(loc="upper right", fontsize=7)
    right.semilogy(distances, color="tab:green")
    right.set(xlabel="step", title="Distance to the goal")


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
