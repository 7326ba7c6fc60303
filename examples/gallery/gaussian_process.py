"""A Gaussian process learns the season and the trend of a noisy series, and says how sure it is.

The logarithm of the marginal likelihood is ten lines; `value_and_grad` differentiates it through the Cholesky
factorization, and the whole descent is one `scan`. `vmap` draws from the posterior.

    python examples/gallery/gaussian_process.py
"""

from __future__ import annotations

import numpy as np
from frame import main

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, random
from xlamini.example_libraries import optimizers
from xlamini.scipy.linalg import cho_solve

EXPECTED = {"period": (0.97, 1.03), "noise": (0.15, 0.25), "forecast within two sigma": (0.85, 1.0)}
EXPECTED_QUICK = {"period": (0.9, 1.1), "noise": (0.1, 0.3), "forecast within two sigma": (0.6, 1.0)}
NOISE = 0.2


def truth(t):
    """The series without noise: a season of period 1 and a slow trend."""
    return np.sin(2 * np.pi * t) + 0.3 * np.cos(4 * np.pi * t) + 0.2 * t


def kernel(params, s, t):
    """The covariance of the process at the times s and t: a trend, and a season that may change slowly."""
    p = {name: jnp.exp(value) for name, value in params.items()}
    trend = p["trend"] * jnp.exp(-0.5 * ((s - t) / p["trend_scale"]) ** 2)
    phase = jnp.sin(jnp.pi * (s - t) / p["period"]) / p["season_scale"]
    season = p["season"] * jnp.exp(-2 * phase**2 - 0.5 * ((s - t) / 10.0) ** 2)
    return trend + season


def covariance(params, s, t):
    """The matrix of covariances of all times s with all times t."""
    return xlamini.vmap(lambda a: xlamini.vmap(lambda b: kernel(params, a, b))(t))(s)


def factor(params, t):
    """The Cholesky factor of the covariance of noisy observations at the times t."""
    noise = jnp.exp(2 * params["noise"]) + 1e-5
    return jnp.linalg.cholesky(covariance(params, t, t) + noise * jnp.eye(len(t)))


def negative_log_likelihood(params, t, y):
    """-log p(y | params) (Rasmussen and Williams, 2006, equation 2.30), per observation."""
    lower = factor(params, t)
    fit = 0.5 * y @ cho_solve((lower, True), y)
    return (fit + jnp.sum(jnp.log(jnp.diag(lower)))) / len(t) + 0.5 * jnp.log(2 * jnp.pi)


@xlamini.jit(static_argnames="steps")
def fit(params, t, y, steps):
    """Adam on the likelihood; returns the parameters and the loss of each step."""
    init, update, get_params = optimizers.adam(0.03)

    def step(state, i):
        loss, grads = xlamini.value_and_grad(negative_log_likelihood)(get_params(state), t, y)
        return update(i, grads, state), loss

    state, losses = lax.scan(step, init(params), jnp.arange(steps))
    return get_params(state), losses


@xlamini.jit
def posterior(params, t, y, times):
    """The mean and the covariance of the process at `times`, given the observations (equations 2.25 and 2.26)."""
    lower = factor(params, t)
    cross = covariance(params, t, times)
    mean = cross.T @ cho_solve((lower, True), y)
    return mean, covariance(params, times, times) - cross.T @ cho_solve((lower, True), cross)


def run(quick=False):
    """Learn the parameters of a Gaussian process, and forecast."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 4, 60 if quick else 160)).astype(np.float32)
    y = (truth(t) + NOISE * rng.normal(size=t.shape)).astype(np.float32)
    start = {"trend": 0.0, "trend_scale": 1.0, "season": 0.0, "season_scale": 0.0, "period": 0.05, "noise": -1.0}
    params = {name: jnp.float32(value) for name, value in start.items()}
    params, losses = fit(params, t, y, 100 if quick else 400)
    times = jnp.linspace(0, 5.5, 120)
    mean, variance = posterior(params, t, y, times)
    sigma = jnp.sqrt(jnp.maximum(jnp.diag(variance), 0.0))
    root = jnp.linalg.cholesky(variance + 1e-4 * jnp.eye(len(times)))
    draws = xlamini.vmap(lambda z: mean + root @ z)(random.normal(random.key(0), (5, len(times))))
    later = times > 4
    inside = jnp.abs(truth(np.asarray(times)) - mean) < 2 * sigma + 1e-3
    numbers = {
        "period": float(jnp.exp(params["period"])),
        "noise": float(jnp.exp(params["noise"])),
        "forecast within two sigma": float(jnp.mean(inside, where=later)),
    }
    return numbers, lambda figure: draw(figure, (t, y), times, mean, sigma, draws, losses)


def draw(figure, observed, times, mean, sigma, draws, losses):
    """Draw the forecast on the left and the likelihood on the right."""
    left, right = figure.subplots(1, 2, width_ratios=[3, 1])
    left.plot(*observed, ".", color="black", markersize=3, label="observed")
    left.plot(times, mean, color="tab:blue", label="mean")
    left.fill_between(times, mean - 2 * sigma, mean + 2 * sigma, color="tab:blue", alpha=0.2, label="two sigma")
    left.plot(times, np.asarray(draws).T, color="tab:orange", linewidth=0.5)
    left.plot(times, truth(np.asarray(times)), "--", color="gray", linewidth=0.8, label="truth")
    left.axvline(4, color="gray", linewidth=0.5)
    left.set(xlabel="time", title="Posterior, and a forecast from time 4")
    left.legend(loc="upper right", fontsize=7)
    right.plot(losses, color="tab:green")
    right.set(xlabel="step", title="-log likelihood")


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
