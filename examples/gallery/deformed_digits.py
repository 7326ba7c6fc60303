"""A network learns digits from scans that are shifted, turned, slanted and stretched at random.

Every step deforms its batch anew: `map_coordinates` samples an image in a plane that an affine map has moved, and
`vmap` does so for a whole batch, each image with a map of its own.

    python examples/gallery/deformed_digits.py
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from frame import main, steps

import xlamini
import xlamini.numpy as jnp
from xlamini import nn, random
from xlamini.example_libraries import optimizers
from xlamini.scipy.ndimage import map_coordinates

EXPECTED = {"accuracy": (0.97, 1.0), "accuracy, deformed": (0.93, 1.0), "loss": (0.0, 0.35)}
EXPECTED_QUICK = {"accuracy": (0.9, 1.0), "accuracy, deformed": (0.8, 1.0), "loss": (0.0, 0.8)}
SIZES, HELD_OUT, BATCH = (64, 128, 64, 10), 360, 128
SHIFT, TURN, SLANT, STRETCH, INK = 0.7, 0.2, 0.25, 0.2, 0.3


def load():
    """Training and held-out digits: images of 8x8 numbers from 0 to 1, and labels."""
    from sklearn.datasets import load_digits  # only where it is trained

    digits: Any = load_digits()
    order = np.random.default_rng(0).permutation(len(digits["target"]))
    images = (digits["images"][order] / 16).astype(np.float32)
    labels = digits["target"][order].astype(np.int32)
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def init(key):
    """Weights and biases of the layers."""
    shapes = list(itertools.pairwise(SIZES))
    keys = random.split(key, len(shapes))
    return [(random.normal(k, s) * (2 / s[0]) ** 0.5, jnp.zeros(s[1])) for k, s in zip(keys, shapes, strict=True)]


def scores(params, images):
    """The log probabilities of the ten digits for each of the images, an array of shape (batch, 8, 8)."""
    x = images.reshape(-1, 64)
    for weight, bias in params[:-1]:
        x = nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    return nn.log_softmax(x @ weight + bias)


def deformed(key, image):
    """The image shifted, turned, slanted and stretched at random, with strokes that are paler or bolder."""
    shift, turn, slant, stretch, ink = (random.uniform(k, (2,), minval=-1.0) for k in random.split(key, 5))
    angle = TURN * turn[0]
    sheared = jnp.array([[1.0, 0.0], [SLANT * slant[0], 1.0]])
    turned = jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])
    matrix = turned @ sheared @ jnp.diag(1 + STRETCH * stretch)
    grid = jnp.stack(jnp.meshgrid(jnp.arange(8.0), jnp.arange(8.0), indexing="ij")).reshape(2, 64) - 3.5
    at = matrix @ grid + 3.5 + SHIFT * shift[:, None]
    moved = map_coordinates(image, list(at), order=1, mode="constant").reshape(8, 8)
    return jnp.clip(moved * (1 + INK * ink[0]), 0, 1)


@xlamini.jit
def deformed_batch(key, images):
    """Each image deformed in its own way."""
    return xlamini.vmap(deformed)(random.split(key, len(images)), images)


def loss(params, images, labels):
    """The mean cross entropy of a batch."""
    return -jnp.mean(jnp.take_along_axis(scores(params, images), labels[:, None], axis=1))


@xlamini.jit
def accuracy(params, images, labels):
    """The share of digits that are read correctly."""
    return jnp.mean(jnp.argmax(scores(params, images), axis=1) == labels)


def train(images, labels, count):
    """Adam on deformed batches; the parameters, and the loss at each step."""
    opt_init, update, get_params = optimizers.adam(optimizers.polynomial_decay(4e-3, count, 1e-4))

    @xlamini.jit
    def step(i, state):
        pick, deform = random.split(random.fold_in(random.key(1), i))
        batch = random.randint(pick, (BATCH,), 0, len(images))
        seen = deformed_batch(deform, images[batch])
        value, grads = xlamini.value_and_grad(loss)(get_params(state), seen, labels[batch])
        return update(i, grads, state), value

    state, losses = opt_init(init(random.key(0))), []
    for i in steps(count):
        state, value = step(i, state)
        losses.append(value)
    return get_params(state), np.asarray(losses)


def trained(quick=False):
    """The network, the loss at each step, and the held-out digits."""
    (images, labels), held_out = load()
    params, losses = train(jnp.asarray(images), jnp.asarray(labels), 500 if quick else 6000)
    return params, losses, held_out


def run(quick=False):
    """Train a network that reads deformed digits, and say how well it does."""
    params, losses, (images, labels) = trained(quick)
    moved = deformed_batch(random.key(2), jnp.asarray(images))
    numbers = {
        "accuracy": float(accuracy(params, images, labels)),
        "accuracy, deformed": float(accuracy(params, moved, labels)),
        "loss": float(losses[-100:].mean()),
    }
    return numbers, lambda figure: draw(figure, losses, images, np.asarray(moved))


def draw(figure, losses, images, moved, count=6):
    """Draw held-out digits, the same digits deformed, and the loss."""
    left, right = figure.subplots(1, 2)
    pairs = np.stack([images[: 3 * count], moved[: 3 * count]]).reshape(2, 3, count, 8, 8)
    tiles = np.pad(pairs, [(0, 0)] * 3 + [(1, 1)] * 2).transpose(1, 0, 3, 2, 4)
    left.imshow(tiles.reshape(60, 10 * count), cmap="gray_r")
    left.set(title="Digits, and each deformed below", xticks=[], yticks=[])
    right.semilogy(losses, color="tab:green", linewidth=0.5)
    right.set(xlabel="step", title="Loss on deformed digits")
    right.grid(alpha=0.3)


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
