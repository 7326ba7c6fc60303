"""A Kalman filter and smoother track a moving object, and learn from its path how noisy the sensor is.

The filter is one `scan`, so the likelihood of the observations is differentiable: `grad` learns the noise. The
smoother is not written at all: the smoothed path is the derivative of the log likelihood with respect to the
observations, up to a factor.

    python examples/gallery/kalman_filter.py
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from frame import main

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, random

EXPECTED = {
    "sensor noise": (0.42, 0.58),
    "filter error / raw error": (0.3, 0.6),
    "smoother error / raw error": (0.1, 0.4),
}
EXPECTED_QUICK = EXPECTED | {"sensor noise": (0.3, 0.7)}
DT, NOISE, PUSH = 0.1, 0.5, 1.0


class Model(NamedTuple):
    """x' = move x + noise of covariance `push`; y = see x + noise of covariance `blur`."""

    move: xlamini.Array
    push: xlamini.Array
    see: xlamini.Array
    blur: xlamini.Array


def model(log_noise):
    """Positions and velocities in two dimensions; a random acceleration; a sensor that sees the positions."""
    one, zero = jnp.eye(2), jnp.zeros((2, 2))
    move = jnp.block([[one, DT * one], [zero, one]])
    lever = jnp.concatenate([DT**2 / 2 * one, DT * one])
    see = jnp.concatenate([one, zero], axis=1)
    return Model(move, PUSH**2 * lever @ lever.T + 1e-6 * jnp.eye(4), see, jnp.exp(2 * log_noise) * one)


def simulate(key, count):
    """A path [count, 4] and what the sensor sees of it [count, 2]."""
    true = model(jnp.log(NOISE))
    root = jnp.linalg.cholesky(true.push)

    def step(state, key):
        push, blur = random.split(key)
        state = true.move @ state + root @ random.normal(push, (4,))
        return state, (state, true.see @ state + NOISE * random.normal(blur, (2,)))

    return lax.scan(step, jnp.zeros(4), random.split(key, count))[1]


def kalman(model, observations):
    """The filtered means [count, 4], and the log likelihood (Särkkä, 2013, theorem 4.2)."""

    def step(carry, y):
        mean, covariance = carry
        mean = model.move @ mean
        covariance = model.move @ covariance @ model.move.T + model.push
        spread = model.see @ covariance @ model.see.T + model.blur
        surprise = y - model.see @ mean
        gain = jnp.linalg.solve(spread, model.see @ covariance).T
        mean = mean + gain @ surprise
        covariance = covariance - gain @ spread @ gain.T
        fit = surprise @ jnp.linalg.solve(spread, surprise) + jnp.linalg.slogdet(2 * jnp.pi * spread)[1]
        return (mean, covariance), (mean, -fit / 2)

    _, (means, likelihoods) = lax.scan(step, (jnp.zeros(4), jnp.eye(4)), observations)
    return means, jnp.sum(likelihoods)


def smooth(model, observations):
    """The mean of each position given all observations, before and after it.

    The derivative of log p(y) with respect to y_t is E[x_t | y] - y_t, seen through the sensor and divided by its
    covariance (Tweedie's formula), because y_t is a position plus Gaussian noise.
    """
    slope = xlamini.grad(lambda y: kalman(model, y)[1])(observations)
    return observations + slope @ model.blur


@xlamini.jit(static_argnames="count")
def learn(observations, count):
    """The logarithm of the sensor's noise, by gradient ascent; its value after each step."""
    slope = xlamini.grad(lambda log_noise: kalman(model(log_noise), observations)[1] / len(observations))

    def step(log_noise, _):
        log_noise = log_noise + 0.2 * slope(log_noise)
        return log_noise, log_noise

    return lax.scan(step, jnp.float32(0.5), length=count)


def run(quick=False):
    """Track a moving object and learn the noise of its sensor."""
    path, observed = simulate(random.key(1), 100 if quick else 400)
    log_noise, history = learn(observed, 60)
    filtered = kalman(model(log_noise), observed)[0][:, :2]
    smoothed = xlamini.jit(smooth)(model(log_noise), observed)

    def error(estimate):
        return float(jnp.sqrt(jnp.mean((estimate - path[:, :2]) ** 2)))
    numbers = {
        "sensor noise": float(jnp.exp(log_noise)),
        "filter error / raw error": error(filtered) / error(observed),
        "smoother error / raw error": error(smoothed) / error(observed),
    }
    return numbers, lambda figure: draw(figure, path, observed, filtered, smoothed, history)


def draw(figure, path, observed, filtered, smoothed, history):
    """Draw the track, and what is learned about the sensor."""
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    left.plot(*np.asarray(observed).T, ".", color="gray", markersize=3, label="observed")
    left.plot(*np.asarray(path)[:, :2].T, color="black", linewidth=2, label="truth")
    left.plot(*np.asarray(filtered).T, color="tab:orange", linewidth=1, label="filter")
    left.plot(*np.asarray(smoothed).T, color="tab:blue", linewidth=1.5, label="smoother")
    left.set(title="The track", aspect="equal", adjustable="datalim")
    left.legend(loc="upper right", fontsize=7)
    right.plot(np.exp(history), color="tab:green")
    right.axhline(NOISE, color="gray", linestyle="--", linewidth=0.8)
    right.set(xlabel="step", title="Learned noise of the sensor", ylim=(0, None))


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
