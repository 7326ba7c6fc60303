"""Division by broadcast arrays: XLA multiplies by the reciprocals, however many divisions share the broadcast."""

import re

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.outline.divisors import with_own_divisors

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
S = np.linspace(0.5, 2, 4, dtype=np.float32).reshape(4, 1)


def two_quotients(x, y, s):
    wide = lax.broadcast_in_dim(s, x.shape, (0, 1))
    return x / wide, y / wide


def read_twice(x, y, s):
    wide = lax.broadcast_in_dim(s, x.shape, (0, 1))
    return x / wide, y + wide


def names(fun, *operands):
    jaxpr = xlamini.make_jaxpr(fun)(*operands).jaxpr
    return [eqn.primitive.name for eqn in with_own_divisors(jaxpr).eqns]


def results(fun, *operands):
    return evaluate(with_own_divisors(xlamini.make_jaxpr(fun)(*operands).jaxpr), operands)


@pytest.mark.parametrize("fun, other", [(two_quotients, "div"), (read_twice, "add")])
def test_each_reader_of_a_divisor_has_its_own_broadcast(fun, other):
    assert names(fun, X, X, S) == ["broadcast_in_dim", "div", "broadcast_in_dim", other]


def test_a_broadcast_with_one_reader_is_not_repeated():
    assert names(lambda x, s: x / s, X, S) == ["broadcast_in_dim", "div"]


def test_a_broadcast_by_which_nothing_is_divided_is_not_repeated():
    def fun(x, s):
        wide = lax.broadcast_in_dim(s, x.shape, (0, 1))
        return wide / x, x * wide

    assert names(fun, X, S) == ["broadcast_in_dim", "div", "mul"]


def test_one_equation_with_a_divisor_as_both_operands():
    def fun(x, s):
        wide = lax.broadcast_in_dim(s, x.shape, (0, 1))
        return wide / wide, x / wide

    assert names(fun, X, S) == ["broadcast_in_dim", "div", "broadcast_in_dim", "div"]
    ones, quotient = results(fun, X, S)
    np.testing.assert_array_equal(ones, np.ones_like(X))
    np.testing.assert_allclose(quotient, X / S, rtol=1e-6)


@pytest.mark.parametrize("fun, expected", [(two_quotients, (X / S, X / S)), (read_twice, (X / S, X + S))])
def test_values(fun, expected):
    for found, each in zip(results(fun, X, X, S), expected, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-6)


def layer(x, w):
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    normal = centered / jnp.sqrt(jnp.mean(centered * centered, axis=-1, keepdims=True) + 1e-5)
    return x + jnp.tanh(normal @ w)


def test_divisors_of_an_outlined_layer():
    """Its layer norm divides twice by the deviations, for the numbers and for their cotangents."""

    def loss(ws, x):
        for w in ws:
            x = layer(x, w)
        return (x**2).sum()

    ws = [np.eye(16, dtype=np.float32)] * 40
    text = xlamini.jit(xlamini.grad(loss), outline=True).lower(ws, np.ones((8, 16), np.float32)).as_text()
    backward = text[text.index("func.func private @loss_block_1") :].partition("return")[0]
    divisors = re.findall(r"stablehlo.divide %\w+, (%\w+) : tensor<8x16xf32>", backward)
    assert len(divisors) == len(set(divisors)) == 2, backward
