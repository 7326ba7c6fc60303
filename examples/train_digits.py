"""Train a small network to classify handwritten digits, and plot the results.

The model is written for one image. `vmap` vectorizes it over a batch, `value_and_grad`
differentiates it, and `jit` compiles a whole training step into one program:

    python examples/train_digits.py             # train, then write digits.png
    python examples/train_digits.py --show-ir   # print the programs instead

The data set is the 1,797 scans of 8x8 pixels that scikit-learn ships in its package.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import xlamini
import xlamini.numpy as jnp
from xlamini import nn, random, tree

matplotlib.use("Agg")
import matplotlib.pyplot as plt

LAYER_SIZES = (64, 256, 128, 10)
TEST_SIZE = 360
BATCH_SIZE = 128
PIXEL_NOISE = 0.2
REPORT_EVERY = 20


# --- data ------------------------------------------------------------------------------------


def load_data(key):
    """Return (train images, train labels), (test images, test labels), shuffled by `key`."""
    digits: Any = load_digits()
    order = np.asarray(random.permutation(key, len(digits.target)))
    images = jnp.asarray(digits.data[order] / 16.0, dtype=jnp.float32)
    labels = jnp.asarray(digits.target[order], dtype=jnp.int32)
    train = images[TEST_SIZE:], labels[TEST_SIZE:]
    test = images[:TEST_SIZE], labels[:TEST_SIZE]
    return train, test


# --- the model, for one image ----------------------------------------------------------------


def init_params(key, sizes=LAYER_SIZES):
    """One weight matrix and one bias per layer; the scale of the weights preserves variance."""
    keys = random.split(key, len(sizes) - 1)
    shapes = pairwise(sizes)
    return [
        {"w": random.normal(k, shape) * (2.0 / shape[0]) ** 0.5, "b": jnp.zeros(shape[1])}
        for k, shape in zip(keys, shapes, strict=True)
    ]


def predict(params, image):
    """Log-probabilities of the ten digits for one image of 64 pixels."""
    *hidden, last = params
    x = image
    for layer in hidden:
        x = nn.gelu(x @ layer["w"] + layer["b"])
    return nn.log_softmax(x @ last["w"] + last["b"])


def loss_of_one(params, image, label):
    """Cross entropy of one image with its label."""
    return -jnp.sum(nn.one_hot(label, 10) * predict(params, image))


# --- from one image to many ------------------------------------------------------------------


def loss(params, images, labels):
    """Mean cross entropy of a batch: `loss_of_one`, vectorized over the leading axis."""
    losses = xlamini.vmap(loss_of_one, in_axes=(None, 0, 0))(params, images, labels)
    return jnp.mean(losses)


@xlamini.jit
def classify(params, images):
    """The most likely digit for each image."""
    log_probabilities = xlamini.vmap(predict, in_axes=(None, 0))(params, images)
    return jnp.argmax(log_probabilities, axis=-1)


@xlamini.jit
def gradient_norms(params, images, labels):
    """Norm of the gradient with respect to the parameters, for each image separately."""

    def norm_of_one(image, label):
        gradient = xlamini.grad(loss_of_one)(params, image, label)
        return jnp.sqrt(sum(jnp.sum(g * g) for g in tree.leaves(gradient)))

    return xlamini.vmap(norm_of_one)(images, labels)


@xlamini.jit
def accuracy(params, images, labels):
    """Fraction of the images that are classified correctly."""
    return jnp.mean(classify(params, images) == labels)


# --- Adam, by hand ---------------------------------------------------------------------------


def adam_init(params):
    """Running mean of the gradient and of its square, and the number of steps so far."""
    zeros = tree.map(jnp.zeros_like, params)
    return {"mean": zeros, "square": zeros, "count": jnp.zeros((), jnp.int32)}


def adam_update(params, grads, state, learning_rate, decay=0.9, square_decay=0.999):
    """One step of Adam; returns the new parameters and the new state."""
    count = state["count"] + 1
    mean = tree.map(lambda m, g: decay * m + (1 - decay) * g, state["mean"], grads)
    square = tree.map(
        lambda s, g: square_decay * s + (1 - square_decay) * g * g, state["square"], grads
    )
    # Both averages start at zero; dividing by 1 - decay**count corrects that bias.
    mean_scale = 1 / (1 - decay**count)
    square_scale = 1 / (1 - square_decay**count)

    def move(p, m, s):
        return p - learning_rate * m * mean_scale / (jnp.sqrt(s * square_scale) + 1e-8)

    return tree.map(move, params, mean, square), {"mean": mean, "square": square, "count": count}


# --- training --------------------------------------------------------------------------------


@xlamini.jit
def train_step(params, state, key, images, labels, learning_rate):
    """Sample a batch, add a little noise to its pixels, and take one step of Adam."""
    batch_key, noise_key = random.split(key)
    batch = random.randint(batch_key, (BATCH_SIZE,), 0, len(labels))
    noise = PIXEL_NOISE * random.normal(noise_key, (BATCH_SIZE, images.shape[1]))
    value, grads = xlamini.value_and_grad(loss)(params, images[batch] + noise, labels[batch])
    params, state = adam_update(params, grads, state, learning_rate)
    return params, state, value


def train(params, key, train_data, test_data, *, steps, learning_rate):
    """Train with a learning rate that decays to 0; return params and (step, loss, accuracy)s."""
    state = adam_init(params)
    history = []
    progress = tqdm(range(1, steps + 1), unit="step")
    images, labels = train_data
    for i in progress:
        rate = learning_rate * (1 - (i - 1) / steps)
        step_key = random.fold_in(key, i)
        params, state, value = train_step(params, state, step_key, images, labels, rate)
        if i % REPORT_EVERY == 0 or i == steps:
            history.append((i, float(value), float(accuracy(params, *test_data))))
            progress.set_postfix(loss=f"{history[-1][1]:.4f}", accuracy=f"{history[-1][2]:.4f}")
    return params, history


# --- results ---------------------------------------------------------------------------------


def plot_history(figure, history):
    """Plot the loss (top) and the test accuracy (bottom) over the steps."""
    steps, losses, accuracies = zip(*history, strict=True)
    above, below = figure.subplots(2, 1, sharex=True)
    above.semilogy(steps, losses, color="tab:blue")
    above.set(ylabel="training loss", title="Learning curve")
    below.plot(steps, accuracies, color="tab:green")
    below.axhline(0.97, color="gray", linewidth=0.8, linestyle="--", label="goal: 0.97")
    below.legend(loc="lower right")
    below.set(ylabel="test accuracy", xlabel="step", ylim=(0.9, 1.0))
    for axes in (above, below):
        axes.grid(alpha=0.3)


def plot_mistakes(figure, params, images, labels, columns=4, rows=3):
    """Plot the misclassified images, those with the largest gradient first."""
    guesses = np.asarray(classify(params, images))
    norms = np.asarray(gradient_norms(params, images, labels))
    images, labels = np.asarray(images), np.asarray(labels)
    wrong = np.flatnonzero(guesses != labels)
    wrong = wrong[np.argsort(-norms[wrong])]
    figure.suptitle(f"{len(wrong)} of {len(labels)} test digits misread")
    panels = figure.subplots(rows, columns).ravel()
    for axes in panels:
        axes.set_axis_off()
    for axes, i in zip(panels, wrong, strict=False):
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{labels[i]} read as {guesses[i]}\n|grad| {norms[i]:.1f}", fontsize=8)


def save_picture(path, params, history, test_data):
    """Write the learning curve and the misclassified digits to the PNG file `path`."""
    figure = plt.figure(figsize=(11, 5.5), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False)[0]
    plot_history(left, history)
    plot_mistakes(right, params, *test_data)
    figure.savefig(path, dpi=120)


def show_ir(params, images, labels):
    """Print the loss as a jaxpr, its gradient as a jaxpr, and the gradient as StableHLO."""
    arguments = params, images[:4], labels[:4]
    gradient = xlamini.grad(loss)
    print("The loss:", xlamini.make_jaxpr(loss)(*arguments), sep="\n\n", end="\n\n")
    print("Its gradient:", xlamini.make_jaxpr(gradient)(*arguments), sep="\n\n", end="\n\n")
    print("As StableHLO:", xlamini.jit(gradient).lower(*arguments).as_text(), sep="\n\n")


def parse_args(argv=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000, help="training steps (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (%(default)s)")
    parser.add_argument(
        "--learning-rate", type=float, default=2e-3, help="at the start (%(default)s)"
    )
    parser.add_argument("--out", default="digits.png", help="picture to write (%(default)s)")
    parser.add_argument("--show-ir", action="store_true", help="print the programs and stop")
    args = parser.parse_args(argv)
    if args.steps < 1:
        parser.error("--steps must be at least 1")
    return args


def main(argv=None):
    """Train, report and draw, or show the programs."""
    args = parse_args(argv)
    start = time.perf_counter()
    data_key, params_key, training_key = random.split(random.key(args.seed), 3)
    train_data, test_data = load_data(data_key)
    params = init_params(params_key)
    if args.show_ir:
        show_ir(params, *train_data)
        return
    options = {"steps": args.steps, "learning_rate": args.learning_rate}
    params, history = train(params, training_key, train_data, test_data, **options)
    save_picture(args.out, params, history, test_data)
    seconds = time.perf_counter() - start
    print(f"test accuracy {history[-1][2]:.4f} after {seconds:.1f} s; picture in {args.out}")


if __name__ == "__main__":
    main()
