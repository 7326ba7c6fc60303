"""Training with differential privacy: each example's gradient is clipped, and noise hides what it adds to the sum.

`vmap(grad(loss))` gives the gradient of each example; a library built for batches must take the batch apart for this.
The budget epsilon is computed from the Rényi divergences of the sampled Gaussian mechanism (Mironov et al., 2019).

    python examples/gallery/private.py
"""

from __future__ import annotations

from functools import partial
from math import comb, exp, log
from typing import Any

import numpy as np
from frame import main, steps
from sklearn.datasets import load_digits

import xlamini
import xlamini.numpy as jnp
from xlamini import nn, random, tree

EXPECTED = {"accuracy": (0.9, 1.0), "accuracy, private": (0.75, 0.97), "epsilon": (2.0, 12.0)}
EXPECTED_QUICK = {"accuracy": (0.6, 1.0), "accuracy, private": (0.3, 0.97), "epsilon": (0.5, 12.0)}
BATCH, CLIP, NOISE, RATE, DELTA, HELD_OUT = 128, 1.0, 1.5, 0.5, 1e-3, 360


def load():
    """Training and test digits, images of 64 pixels with their labels."""
    digits: Any = load_digits()
    order = np.random.default_rng(0).permutation(len(digits["target"]))
    images = (digits["data"][order] / 16).astype(np.float32)
    labels = digits["target"][order].astype(np.int32)
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def init(key):
    """A network with one hidden layer."""
    inner, outer = random.split(key)
    return {
        "inner": random.normal(inner, (64, 64)) / 8,
        "bias": jnp.zeros(64),
        "outer": random.normal(outer, (64, 10)) / 8,
    }


def scores(params, image):
    """The log probabilities of the ten digits for one image."""
    return nn.log_softmax(jnp.tanh(image @ params["inner"] + params["bias"]) @ params["outer"])


def loss(params, image, label):
    """The cross entropy of one image."""
    return -scores(params, image)[label]


def norm(gradient):
    """The Euclidean length of a gradient, over all its arrays."""
    return jnp.sqrt(sum(jnp.sum(g**2) for g in tree.leaves(gradient)))


def private_gradient(params, key, images, labels):
    """The mean of clipped gradients, with noise, and the length of each gradient before it was clipped."""

    def clipped(image, label):
        gradient = xlamini.grad(loss)(params, image, label)
        length = norm(gradient)
        return tree.map(lambda g: g * jnp.minimum(1.0, CLIP / length), gradient), length

    gradients, lengths = xlamini.vmap(clipped)(images, labels)
    leaves, structure = tree.flatten(tree.map(lambda g: g.sum(axis=0), gradients))
    keys = random.split(key, len(leaves))
    noisy = [g + NOISE * CLIP * random.normal(k, g.shape) for g, k in zip(leaves, keys, strict=True)]
    return tree.map(lambda g: g / len(images), tree.unflatten(structure, noisy)), lengths


def plain_gradient(params, key, images, labels):
    """The mean gradient of a batch, with the same lengths beside it."""
    each = xlamini.vmap(xlamini.grad(loss), (None, 0, 0))(params, images, labels)
    return tree.map(lambda g: g.mean(axis=0), each), xlamini.vmap(norm)(each)


@partial(xlamini.jit, static_argnums=0)
def step(gradient_of, params, key, images, labels):
    """One step of gradient descent on a random batch."""
    pick, noise = random.split(key)
    batch = random.randint(pick, (BATCH,), 0, len(images))
    gradient, lengths = gradient_of(params, noise, images[batch], labels[batch])
    return tree.map(lambda p, g: p - RATE * g, params, gradient), lengths


@xlamini.jit
def accuracy(params, images, labels):
    """The share of digits that are classified correctly."""
    return jnp.mean(jnp.argmax(xlamini.vmap(scores, (None, 0))(params, images), axis=1) == labels)


def epsilon(count, rate):
    """The budget that `count` steps have spent at `DELTA`, as if each example were in a batch with probability `rate`.

    The Rényi divergence of integer order a is log E[(1 - q + q exp((2z - 1) / 2s²))^a] / (a - 1) (Mironov et al.,
    2019, equation 9). Batches of a fixed size stand for random sizes here, as is usual.
    """
    best = float("inf")
    for a in range(2, 48):
        terms = [comb(a, k) * (1 - rate) ** (a - k) * rate**k * exp((k * k - k) / (2 * NOISE**2)) for k in range(a + 1)]
        best = min(best, count * log(sum(terms)) / (a - 1) + log(1 / DELTA) / (a - 1))
    return best


def train(gradient_of, train_data, test_data, count):
    """The accuracy on held-out digits every ten steps, and the lengths of the last batch's gradients."""
    params, history, lengths = init(random.key(0)), [], None
    for i in steps(count):
        params, lengths = step(gradient_of, params, random.fold_in(random.key(1), i), *train_data)
        if i % 10 == 9:
            history.append(float(accuracy(params, *test_data)))
    return history, np.asarray(lengths)


def run(quick=False):
    """Train with differential privacy and without, and say what the privacy costs."""
    train_data, test_data = load()
    count = 60 if quick else 400
    plain, lengths = train(plain_gradient, train_data, test_data, count)
    private, _ = train(private_gradient, train_data, test_data, count)
    spent = [epsilon(i, BATCH / len(train_data[0])) for i in range(10, count + 1, 10)]
    numbers = {"accuracy": plain[-1], "accuracy, private": private[-1], "epsilon": spent[-1]}
    return numbers, lambda figure: draw(figure, plain, private, spent, lengths)


def draw(figure, plain, private, spent, lengths):
    """Draw both accuracies, the budget, and the lengths of single gradients."""
    left, middle, right = figure.subplots(1, 3)
    at = 10 * np.arange(1, len(plain) + 1)
    left.plot(at, plain, color="tab:blue", label="plain")
    left.plot(at, private, color="tab:orange", label="private")
    left.set(xlabel="step", title="Accuracy on held-out digits")
    left.legend(loc="lower right")
    middle.plot(at, spent, color="tab:red")
    middle.set(xlabel="step", title=f"Privacy budget (delta {DELTA:g})")
    right.hist(lengths, 30, color="tab:green")
    right.axvline(CLIP, color="black", linestyle="--")
    right.set(xlabel="length", title="Gradients of single digits", yscale="log")


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
