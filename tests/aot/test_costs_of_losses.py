"""Formulas that are right at the ends of their range, and what they may cost in the gradient of a loss."""
from __future__ import annotations

import math
from typing import Any

import xlamini
import xlamini.numpy as jnp
from tests.aot.counts import compiled, cycles, kernels, shaped
from xlamini import nn
from xlamini.runtime.targets.topology import Target


def loss_of_words(logits: Any, words: Any) -> Any:
    return -jnp.take_along_axis(nn.log_softmax(logits), words[:, None], -1).mean()


def test_a_loss_over_words_has_no_mask_of_large_logits(gpu: Target) -> None:
    logits, words = shaped(512, 4096), shaped(512, dtype="int32")
    text = compiled(xlamini.grad(loss_of_words), gpu, logits, words).as_text()
    assert "pred[512,4096]" not in text


def test_the_gradient_of_gelu_costs_what_its_formula_does(tpu: Target) -> None:
    """Bounds, where it is flat beyond them, need no comparison."""

    def by_hand(x: Any) -> Any:
        return x * nn.sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))

    def layer(activation: Any) -> int:
        gradient = xlamini.grad(lambda w, x: (activation(x @ w) ** 2).sum())
        return cycles(gradient, tpu, shaped(256, 1024), shaped(512, 256))

    assert layer(nn.gelu) <= 1.02 * layer(by_hand)


def test_angles_of_positions_are_computed_once(tpu: Target) -> None:
    """Numbers that count by steps are an operation of the program: equal ones are one."""

    def turned(x: Any, places: Any) -> Any:
        angles = places[:, None] * 1e4 ** (-jnp.arange(0, 64, 2) / 64)
        return x[..., :32] * jnp.cos(angles)[:, None] - x[..., 32:] * jnp.sin(angles)[:, None]

    def scores(q: Any, k: Any, places: Any) -> Any:
        return jnp.einsum("thd,shd->hts", turned(q, places), turned(k, places))

    x, places = shaped(256, 8, 64), shaped(256)
    assert compiled(scores, tpu, x, x, places).as_text().count(" cosine(") == 1


def test_a_product_of_three_turns_one_array(tpu: Target) -> None:
    """The later operand comes first in the product between, as in JAX's: else a second one was turned."""
    x, w = shaped(128, 64), shaped(32, 64, 64)
    gradient = xlamini.grad(lambda *a: (jnp.einsum("bi,oij,bj->bo", *a) ** 2).sum(), (0, 1, 2))
    assert kernels(gradient, tpu, x, w, x).count("copy") <= 1
