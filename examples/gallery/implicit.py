"""Meta-learning by implicit differentiation: how strongly to weight each training digit, given a clean validation set.

The inner problem, a ridge regression on weighted examples, is solved exactly; `custom_vjp` is not needed, because
`lax.custom_linear_solve` knows that the derivative of a solution is another solution. The outer problem descends on the
error of the validation set. A third of the training labels is wrong; the weights find out which.

    python examples/gallery/implicit.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from frame import main, steps
from sklearn.datasets import load_digits

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn
from xlamini.example_libraries import optimizers
from xlamini.scipy.linalg import cho_factor, cho_solve

EXPECTED = {
    "test accuracy, equal weights": (0.7, 0.93),
    "test accuracy, learned weights": (0.88, 0.99),
    "wrong labels found": (0.8, 1.0),
    "derivative error": (0.0, 0.02),
}
EXPECTED_QUICK = EXPECTED | {"test accuracy, learned weights": (0.75, 0.99), "wrong labels found": (0.6, 1.0)}
RIDGE = 3.0


def load(rng):
    """Training digits, a third of them with a wrong label; clean validation and test digits; which labels are wrong."""
    digits: Any = load_digits()
    order = rng.permutation(len(digits["target"]))
    images, labels = (digits["data"][order] / 16 - 0.3).astype(np.float32), digits["target"][order]
    features = np.insert(images, 0, 1, axis=1)
    train, valid, test = slice(0, 600), slice(600, 900), slice(900, None)
    wrong = rng.random(600) < 1 / 3
    spoiled = np.where(wrong, (labels[train] + rng.integers(1, 10, 600)) % 10, labels[train])
    return (features[train], spoiled), (features[valid], labels[valid]), (features[test], labels[test]), wrong


def fit(logits, features, labels):
    """The weighted ridge regression: W solves (X' D X + ridge) W = X' D Y, where D holds an example's weight."""
    weights = nn.sigmoid(logits)
    targets = weights[:, None] * features, nn.one_hot(labels, 10) - 0.1
    matrix = features.T @ targets[0] + RIDGE * jnp.eye(features.shape[1])
    factor = cho_factor(lax.stop_gradient(matrix))

    def solve(_, b):
        return cho_solve(factor, b)
    return lax.custom_linear_solve(lambda x: matrix @ x, targets[0].T @ targets[1], solve, symmetric=True)


def outer_loss(logits, train, valid):
    """The cross entropy on the validation set of the model that the weights give."""
    scores = 6 * valid[0] @ fit(logits, *train)
    picked = jnp.take_along_axis(nn.log_softmax(scores), valid[1][:, None], axis=1)
    return -jnp.mean(picked)


def accuracy(logits, train, test):
    """The share of test digits that are classified correctly."""
    return float(jnp.mean(jnp.argmax(test[0] @ fit(logits, *train), axis=1) == test[1]))


def derivative_error(logits, train, valid):
    """How far the implicit derivative along a random direction is from a finite difference, relative to it."""
    direction = np.random.default_rng(1).choice([-1.0, 1.0], len(logits)).astype(np.float32)
    loss = xlamini.jit(lambda step: outer_loss(logits + step * direction, train, valid))
    slope, difference = xlamini.grad(loss)(0.0), (loss(0.05) - loss(-0.05)) / 0.1
    return float(jnp.abs(slope - difference) / jnp.abs(difference))


def run(quick=False):
    """Learn which training labels to trust, by implicit differentiation."""
    train, valid, test, wrong = load(np.random.default_rng(0))
    opt_init, update, get_params = optimizers.adam(0.2)

    @xlamini.jit
    def step(i, state):
        value, grads = xlamini.value_and_grad(outer_loss)(get_params(state), train, valid)
        return update(i, grads, state), value

    start = jnp.zeros(len(wrong))
    state, losses = opt_init(start), []
    for i in steps(12 if quick else 30):
        state, value = step(i, state)
        losses.append(float(value))
    logits = get_params(state)
    numbers = {
        "test accuracy, equal weights": accuracy(start, train, test),
        "test accuracy, learned weights": accuracy(logits, train, test),
        "wrong labels found": float(np.mean((np.asarray(logits) < 0) == wrong)),
        "derivative error": derivative_error(start, train, valid),
    }
    return numbers, lambda figure: draw(figure, np.asarray(nn.sigmoid(logits)), wrong, train, losses)


def draw(figure, weights, wrong, train, losses):
    """Draw the weights of right and wrong labels, the digits that are trusted least, and the validation loss."""
    left, middle, right = figure.subfigures(1, 3, squeeze=False, width_ratios=[1.2, 1, 1])[0]
    axes = left.subplots()
    axes.hist([weights[~wrong], weights[wrong]], 20, color=["tab:green", "tab:red"], label=["right", "wrong"])
    axes.set(xlabel="weight", title="Learned weights by label")
    axes.legend(loc="upper center")
    for panel, i in zip(middle.subplots(3, 3).ravel(), np.argsort(weights), strict=False):
        panel.imshow(train[0][i, 1:].reshape(8, 8), cmap="gray_r")
        panel.set_title(f"label {train[1][i]}", fontsize=8)
        panel.set_axis_off()
    axes = right.subplots()
    axes.plot(losses, color="tab:green")
    axes.set(xlabel="step", title="Validation loss")


if __name__ == "__main__":
    main(run, EXPECTED, EXPECTED_QUICK)
