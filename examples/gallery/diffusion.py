"""A diffusion model learns to draw two moons, a spiral or any other points in the plane, from noise.

A small network learns the direction from noise to data (the score, by denoising). Sampling integrates the probability
flow from noise to data in one `scan`; the divergence of the same flow, by `jvp`, gives the density of each sample.

    python examples/gallery/diffusion.py
"""

from __future__ import annotations

import itertools

import numpy as np
from frame import main, steps
from sklearn.datasets import make_moons

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn, random
from xlamini.example_libraries import optimizers

EXPECTED = {"distance of samples to the data": (0.0, 0.1), "upper moon": (0.42, 0.58), "nats per sample": (0.5, 1.9)}
EXPECTED_QUICK = {name: (0.5 * low, 2 * high) for name, (low, high) in EXPECTED.items()}
WIDTH, SMALLEST, LARGEST = 96, 0.02, 3.0
"""The deviation of the noise goes from `LARGEST` to `SMALLEST`; the data have deviation 1."""


def moons(count):
    """Points on two half circles [count, 2], standardized, and the half circle of each."""
    points, labels = map(np.asarray, make_moons(count, noise=0.05, random_state=0))
    return ((points - points.mean(0)) / points.std(0)).astype(np.float32), labels


def init(key):
    """The parameters of a network of three hidden layers."""
    sizes = (2 + 9, WIDTH, WIDTH, WIDTH, 2)
    keys = random.split(key, len(sizes) - 1)
    shapes = itertools.pairwise(sizes)
    return [(random.normal(k, s) / s[0] ** 0.5, jnp.zeros(s[1])) for k, s in zip(keys, shapes, strict=True)]


def denoise(params, x, sigma):
    """An estimate of the data behind x = data + sigma * noise, with the scales of Karras et al. (2022, table 1)."""
    scale = 1 / jnp.sqrt(1 + sigma**2)
    waves = jnp.log(sigma) * 2.0 ** jnp.arange(4)
    h = jnp.concatenate([x * scale, jnp.log(sigma)[None] / 4, jnp.sin(waves), jnp.cos(waves)])
    for weight, bias in params[:-1]:
        h = nn.silu(h @ weight + bias)
    weight, bias = params[-1]
    return scale**2 * x + sigma * scale * (h @ weight + bias)


def loss(params, key, data):
    """The denoising error of a batch, weighted so that each level of noise counts alike."""
    level, noise = random.split(key)
    low, high = jnp.log(SMALLEST), jnp.log(LARGEST)
    sigma = jnp.exp(random.uniform(level, (len(data),), minval=low, maxval=high))
    noisy = data + sigma[:, None] * random.normal(noise, data.shape)
    error = xlamini.vmap(denoise, (None, 0, 0))(params, noisy, sigma) - data
    return jnp.mean((1 + 1 / sigma[:, None] ** 2) * error**2)


def train(params, data, count, batch=512):
    """Adam with a falling step size; the parameters and the losses."""
    opt_init, update, get_params = optimizers.adam(optimizers.polynomial_decay(3e-3, count, 1e-4))

    @xlamini.jit
    def step(i, state):
        pick, noise = random.split(random.fold_in(random.key(1), i))
        chosen = data[random.randint(pick, (batch,), 0, len(data))]
        value, grads = xlamini.value_and_grad(loss)(get_params(state), noise, chosen)
        return update(i, grads, state), value

    state, losses = opt_init(params), []
    for i in steps(count):
        state, value = step(i, state)
        losses.append(value)
    return get_params(state), np.asarray(losses)


def flow(params, x, sigma):
    """dx / dsigma of the probability flow, and its divergence, from the derivatives along both axes."""
    def velocity(x):
        return (x - denoise(params, x, sigma)) / sigma
    slopes = xlamini.vmap(lambda axis: xlamini.jvp(velocity, (x,), (axis,))[1])(jnp.eye(2))
    return velocity(x), jnp.trace(slopes)


@xlamini.jit(static_argnames="count")
def sample(params, key, count, moves=60):
    """The paths of `count` samples [moves + 1, count, 2] from noise to data, and the log density of each sample."""
    sigmas = jnp.geomspace(LARGEST, SMALLEST, moves + 1)

    def move(state, pair):
        x, log_density = state
        now, then = pair
        speed, spread = xlamini.vmap(lambda x: flow(params, x, now))(x)
        ahead, spread_ahead = xlamini.vmap(lambda x: flow(params, x, then))(x + (then - now) * speed)
        x = x + (then - now) * (speed + ahead) / 2  # Heun's method
        return (x, log_density - (then - now) * (spread + spread_ahead) / 2), x

    deviation = (1 + LARGEST**2) ** 0.5
    start = deviation * random.normal(key, (count, 2))
    density = -jnp.sum(start**2, axis=-1) / (2 * deviation**2) - jnp.log(2 * jnp.pi * deviation**2)
    (_, density), path = lax.scan(move, (start, density), (sigmas[:-1], sigmas[1:]))
    return jnp.concatenate([start[None], path]), density


def run(quick=False):
    """Learn to draw two moons by denoising, and sample."""
    data, labels = moons(4000)
    params, losses = train(init(random.key(0)), jnp.asarray(data), 300 if quick else 4000)
    path, density = map(np.asarray, sample(params, random.key(2), 500 if quick else 2000))
    away = np.linalg.norm(path[-1][:, None] - data[None, ::4], axis=-1)
    nearest = labels[::4][away.argmin(axis=1)]
    numbers = {
        "distance of samples to the data": float(away.min(axis=1).mean()),
        "upper moon": float(np.mean(nearest == 0)),
        "nats per sample": float(-density.mean()),
    }
    return numbers, lambda figure: draw(figure, path, density, losses)


def draw(figure, path, density, losses):
    """Draw the way from noise to data, and the loss."""
    shown = 0, len(path) // 2, 3 * len(path) // 4, len(path) - 1
    *panels, curve = figure.subplots(1, len(shown) + 1)
    for axes, i in zip(panels, shown, strict=True):
        axes.scatter(*path[i].T, c=density, s=1, cmap="viridis")
        axes.set(title=f"step {i}", xticks=[], yticks=[])
    averaged = np.convolve(losses, np.ones(50) / 50, mode="valid")
    curve.semilogy(averaged, color="tab:green")
    curve.set(xlabel="step", title="Loss")


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
