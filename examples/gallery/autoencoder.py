"""A variational autoencoder learns a plane of handwritten digits, in which one digit turns into another.

The random draw inside the loss is differentiated through (the reparametrization trick); random keys are values, so the
same program gives the same digits everywhere.

    python examples/gallery/autoencoder.py
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from frame import main, steps
from sklearn.datasets import load_digits

import xlamini
import xlamini.numpy as jnp
from xlamini import nn, random
from xlamini.example_libraries import optimizers

EXPECTED = {"bound on held-out digits, nats": (-27.0, -22.0), "neighbours of the same digit": (0.55, 0.95)}
EXPECTED_QUICK = {"bound on held-out digits, nats": (-30.0, -22.0), "neighbours of the same digit": (0.2, 0.95)}
SIZES, PLANE = (64, 256, 128), 2


def init_layers(key, sizes):
    """Weights and biases of a stack of dense layers."""
    keys = random.split(key, len(sizes) - 1)
    shapes = itertools.pairwise(sizes)
    return [(random.normal(k, s) * (2 / s[0]) ** 0.5, jnp.zeros(s[1])) for k, s in zip(keys, shapes, strict=True)]


def layers(params, x):
    """Dense layers with gelu between them."""
    for weight, bias in params[:-1]:
        x = nn.gelu(x @ weight + bias)
    weight, bias = params[-1]
    return x @ weight + bias


def encode(params, image):
    """The mean and the log variance of the point in the plane that an image comes from."""
    return jnp.split(layers(params["encoder"], image - 0.5), 2)


def bound(params, key, image):
    """A lower bound on the log likelihood of one image (Kingma and Welling, 2014, equation 10), in nats."""
    mean, log_variance = encode(params, image)
    point = mean + jnp.exp(log_variance / 2) * random.normal(key, mean.shape)
    logits = layers(params["decoder"], point)
    fit = jnp.sum(image * logits - nn.softplus(logits))
    return fit + 0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance))


def mean_bound(params, key, images):
    """The mean bound of a batch; each image has its own key."""
    return jnp.mean(xlamini.vmap(bound, (None, 0, 0))(params, random.split(key, len(images)), images))


def train(params, images, count, batch=128):
    """Adam; the parameters, and the bound at each step."""
    opt_init, update, get_params = optimizers.adam(optimizers.polynomial_decay(2e-3, count, 1e-4))

    @xlamini.jit
    def step(i, state):
        pick, draw = random.split(random.fold_in(random.key(1), i))
        chosen = images[random.randint(pick, (batch,), 0, len(images))]

        def loss(params):
            return -mean_bound(params, draw, chosen)
        value, grads = xlamini.value_and_grad(loss)(get_params(state))
        return update(i, grads, state), -value

    state, bounds = opt_init(params), []
    for i in steps(count):
        state, value = step(i, state)
        bounds.append(value)
    return get_params(state), np.asarray(bounds)


def run(quick=False):
    """Learn a plane of handwritten digits with a variational autoencoder."""
    digits: Any = load_digits()
    images, labels = (digits["data"] / 16).astype(np.float32), digits["target"]
    encoder, decoder = random.split(random.key(0))
    params = {
        "encoder": init_layers(encoder, (*SIZES, 2 * PLANE)),
        "decoder": init_layers(decoder, (PLANE, *SIZES[::-1])),
    }
    params, bounds = train(params, jnp.asarray(images[300:]), 250 if quick else 5000)
    points = np.asarray(xlamini.jit(xlamini.vmap(lambda image: encode(params, image)[0]))(images))
    grid = np.stack(np.meshgrid(np.linspace(-2.2, 2.2, 15), np.linspace(-2.2, 2.2, 15)), axis=-1).reshape(-1, PLANE)
    drawn = np.asarray(xlamini.jit(lambda z: nn.sigmoid(layers(params["decoder"], z)))(grid.astype(np.float32)))
    numbers = {
        "bound on held-out digits, nats": float(xlamini.jit(mean_bound)(params, random.key(3), images[:300])),
        "neighbours of the same digit": same_neighbours(points, labels),
    }
    return numbers, lambda figure: draw(figure, points, labels, drawn, bounds)


def same_neighbours(points, labels):
    """How often a digit's nearest neighbour in the plane is the same digit."""
    away = np.sum((points[:, None] - points[None]) ** 2, axis=-1)
    np.fill_diagonal(away, np.inf)
    return float(np.mean(labels[away.argmin(axis=1)] == labels))


def draw(figure, points, labels, drawn, bounds):
    """Draw the plane of digits, the digits drawn from it, and the bound."""
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.3, 1.3, 1])
    dots = left.scatter(*points.T, c=labels, s=3, cmap="tab10")
    left.legend(*dots.legend_elements(), loc="upper right", fontsize=6, ncols=2)
    left.set(title="Each scan's place in the plane", xlim=(-4, 4), ylim=(-4, 4))
    middle.imshow(drawn.reshape(15, 15, 8, 8)[::-1].transpose(0, 2, 1, 3).reshape(120, 120), cmap="gray_r")
    middle.set(title="Digits drawn from the plane", xticks=[], yticks=[])
    right.plot(bounds, color="tab:green", linewidth=0.5)
    right.set(xlabel="step", title="Bound, nats per digit", ylim=(-45, None))


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
