"""Hamiltonian Monte Carlo samples Neal's funnel, written so that the sampler can move, and a logistic regression.

A chain is one `scan` over proposals, each of them a `fori_loop` of leapfrog steps; `grad` gives the force and `vmap`
runs the chains side by side.

    python examples/gallery/hamiltonian_monte_carlo.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from frame import main
from sklearn.datasets import load_breast_cancer

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn, random

EXPECTED = {
    "funnel: mean of the neck": (-0.4, 0.4),
    "funnel: deviation of the neck": (2.6, 3.4),
    "cancer: accuracy": (0.93, 0.97),
    "cancer: largest R-hat": (0.99, 1.1),
    "cancer: accepted": (0.6, 1.0),
}
EXPECTED_QUICK = EXPECTED | {
    "funnel: mean of the neck": (-1.5, 1.5),
    "funnel: deviation of the neck": (1.8, 4.2),
    "cancer: largest R-hat": (0.99, 2.5),
}
CHAINS = 8


def leapfrog(force, position, momentum, step_size, count):
    """`count` leapfrog steps: they keep volume and almost keep energy (Neal, 2011, section 2.3)."""

    def step(_, state):
        position, momentum = state
        position = position + step_size * momentum
        return position, momentum + step_size * force(position)

    momentum = momentum + step_size / 2 * force(position)
    position, momentum = lax.fori_loop(0, count - 1, step, (position, momentum))
    position = position + step_size * momentum
    return position, momentum + step_size / 2 * force(position)


def sample_chain(log_density, key, start, step_size, leaps, count):
    """`count` states of a chain, and the probability with which each proposal was accepted."""
    force = xlamini.grad(log_density)

    def propose(position, key):
        draw, accept, jitter = random.split(key, 3)
        momentum = random.normal(draw, position.shape)
        size = step_size * random.uniform(jitter, minval=0.8, maxval=1.2)
        there, final = leapfrog(force, position, momentum, size, leaps)
        change = log_density(there) - log_density(position) - (final @ final - momentum @ momentum) / 2
        chance = jnp.minimum(1.0, jnp.exp(jnp.nan_to_num(change, nan=-jnp.inf)))
        position = jnp.where(random.uniform(accept) < chance, there, position)
        return position, (position, chance)

    return lax.scan(propose, start, random.split(key, count))[1]


@partial(xlamini.jit, static_argnums=(0, 2, 3, 4, 5))
def sample(log_density, key, size, step_size, leaps, count):
    """`CHAINS` chains from random starts: states [chains, count, size] and acceptance [chains, count]."""
    starts = random.normal(random.fold_in(key, 0), (CHAINS, size))
    keys = random.split(random.fold_in(key, 1), CHAINS)

    def chain(key, start):
        return sample_chain(log_density, key, start, step_size, leaps, count)
    return xlamini.vmap(chain)(keys, starts)


def funnel(z):
    """Neal's funnel (2003) in coordinates without a funnel: `neck_and_mouth` maps them back."""
    return -0.5 * z @ z


def neck_and_mouth(z):
    """The neck, with deviation 3, and the mouth, whose deviation is exp(neck / 2)."""
    neck = 3 * z[..., 0]
    return neck, jnp.exp(neck / 2) * z[..., 1]


def cancer_data():
    """Ten standardized measurements of 569 tumours, with a column of ones, and whether each is benign."""
    data: Any = load_breast_cancer()
    features = data["data"][:, :10]
    features = (features - features.mean(0)) / features.std(0)
    return np.insert(features, 0, 1, axis=1).astype(np.float32), data["target"].astype(np.float32)


def regression(features, labels):
    """The log density of the weights of a logistic regression, with a standard normal prior."""

    def log_density(weights):
        logits = features @ weights
        return jnp.sum(labels * logits - nn.softplus(logits)) - 0.5 * weights @ weights

    return log_density


def r_hat(states):
    """The potential scale reduction of each coordinate (Gelman and Rubin, 1992); 1 for chains that agree."""
    within = states.var(axis=1, ddof=1).mean(axis=0)
    between = states.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((within * (1 - 1 / states.shape[1]) + between) / within)


def run(quick=False):
    """Sample two densities with Hamiltonian Monte Carlo."""
    count, key = (150 if quick else 1500), random.key(0)
    states, _ = sample(funnel, key, 2, 0.4, 6, count)
    neck, mouth = map(np.asarray, neck_and_mouth(states))
    features, labels = cancer_data()
    states, accepted = sample(regression(features, labels), key, features.shape[1], 0.12, 16, count)
    states = np.asarray(states)[:, count // 3 :]
    chance = np.asarray(xlamini.jit(lambda w: nn.sigmoid(features @ w.T).mean(1))(states.reshape(-1, 11)))
    numbers = {
        "funnel: mean of the neck": float(neck.mean()),
        "funnel: deviation of the neck": float(neck.std()),
        "cancer: accuracy": float(np.mean((chance > 0.5) == labels)),
        "cancer: largest R-hat": float(r_hat(states).max()),
        "cancer: accepted": float(np.mean(accepted)),
    }
    return numbers, lambda figure: draw(figure, neck, mouth, states, chance, labels)


def draw(figure, neck, mouth, states, chance, labels):
    """Draw the funnel, the posterior of each weight, and how sure the regression is."""
    left, middle, right = figure.subplots(1, 3)
    left.plot(mouth.ravel(), neck.ravel(), ".", markersize=1, alpha=0.4, color="tab:blue")
    left.set(xlim=(-20, 20), ylim=(-9, 9), xlabel="mouth", ylabel="neck", title="Neal's funnel")
    middle.violinplot(states.reshape(-1, states.shape[-1]), showextrema=False)
    middle.axhline(0, color="gray", linewidth=0.5)
    middle.set(xlabel="weight", title="Posterior of the weights")
    bins = np.linspace(0, 1, 30)
    right.hist([chance[labels == 0], chance[labels == 1]], bins, stacked=True, color=["tab:red", "tab:green"])
    right.set(xlabel="probability of benign", title="Malignant (red), benign (green)", yscale="log")


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
