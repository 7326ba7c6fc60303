"""checkpoint around and inside loops and functions with rules of their own: numbers, and how much is kept."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from tests.transforms.test_checkpoint import POLICIES, W
from xlamini import checkpoint, grad, jit, lax, numpy as jnp
from xlamini.ad_checkpoint import saved_residuals

STEPS, WIDTH, FLOAT = 10, 4, 4
SQUARE = np.linspace(-0.5, 0.5, WIDTH**2, dtype="float32").reshape(WIDTH, WIDTH)
X = np.linspace(0.1, 0.7, WIDTH, dtype="float32")
Wrapper = Callable[[Any], Any]


def rnn(wrap: Wrapper) -> Callable[[Any, Any], Any]:
    """A loss that runs a cell STEPS times, the cell wrapped."""

    def loss(w: Any, x: Any) -> Any:
        body = wrap(lambda carry, _: (jnp.tanh(jnp.sin(w @ carry)), None))
        return lax.scan(body, x, None, length=STEPS)[0].sum()

    return loss


def plainly(fun: Any) -> Any:
    return fun


def computed_bytes(loss: Any) -> int:
    return sum(r.nbytes for r in saved_residuals(loss, SQUARE, X) if r.computed)


@pytest.mark.parametrize("policy", ["none", "dots", "everything"])
def test_a_scan_of_a_checkpointed_body(policy: str) -> None:
    plain = rnn(plainly)
    kept = rnn(lambda fun: checkpoint(fun, policy=POLICIES[policy], prevent_cse=False))
    for found, expected in zip(grad(kept, (0, 1))(SQUARE, X), grad(plain, (0, 1))(SQUARE, X), strict=True):
        assert_close(found, expected, 1e-5)
    second, expected = (grad(lambda x, loss=loss: grad(loss, 1)(SQUARE, x).sum()) for loss in (kept, plain))
    assert_close(jit(second)(X), expected(X), 1e-4)


def test_a_checkpointed_body_keeps_its_carries_alone() -> None:
    carries = STEPS * WIDTH * FLOAT
    assert computed_bytes(rnn(checkpoint)) == carries
    assert computed_bytes(rnn(plainly)) > carries
    assert computed_bytes(rnn(lambda fun: checkpoint(fun, policy=POLICIES["dots"]))) == 2 * carries


@pytest.mark.full
def test_a_checkpointed_scan_keeps_nothing_that_it_computes() -> None:
    plain, kept, both = rnn(plainly), checkpoint(rnn(plainly)), checkpoint(rnn(checkpoint))
    assert computed_bytes(kept) == computed_bytes(both) == 0
    assert_close(grad(kept)(SQUARE, X), grad(plain)(SQUARE, X), 1e-5)
    assert_close(jit(grad(both))(SQUARE, X), grad(plain)(SQUARE, X), 1e-5)


@xlamini.custom_jvp
def smooth(x: Any) -> Any:
    return jnp.sin(x)


@smooth.defjvp
def _smooth_jvp(primals: Any, tangents: Any) -> Any:
    return smooth(*primals), 3 * jnp.cos(primals[0]) * tangents[0]


@xlamini.custom_vjp
def steep(x: Any) -> Any:
    return jnp.sin(x)


steep.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda slope, ct: (3 * slope * ct,))


@pytest.mark.parametrize("fun", [smooth, steep], ids=["custom_jvp", "custom_vjp"])
def test_rules_are_followed_inside(fun: Any) -> None:
    inside = checkpoint(lambda x: jnp.exp(fun(x * 2)))
    expected = np.exp(np.sin(2 * X)) * 3 * np.cos(2 * X) * 2
    for gradient in (grad(lambda x: inside(x).sum()), jit(grad(lambda x: inside(x).sum()))):
        assert_close(gradient(X), expected, 1e-5)
    assert_close(xlamini.vmap(grad(inside))(X), expected, 1e-5)


def test_a_rule_may_call_a_checkpointed_function() -> None:
    inner = checkpoint(lambda w, x: jnp.tanh(w @ x).sum())

    @xlamini.custom_vjp
    def outer(w: Any, x: Any) -> Any:
        return inner(w, x)

    outer.defvjp(lambda w, x: xlamini.vjp(inner, w, x), lambda pullback, ct: pullback(ct))
    assert_close(grad(outer)(W, X), grad(inner)(W, X), 1e-6)
    assert_close(jit(grad(outer, 1))(W, X), grad(inner, 1)(W, X), 1e-6)
