"""Functions of numbers that a program knows: under jit they give what they give outside."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import nn
from xlamini.scipy import special, stats

HALF, TWO = np.float32(0.5), np.float32(2.0)
OF_TWO = ["xlogy", "xlog1py", "comb", "kl_div", "rel_entr", "betaln", "gammainc", "zeta", "beta", "logsumexp"]
OF_ONE = [(special, name) for name in ("erfcx", "entr", "logit", "ndtri", "factorial", "spence", "expi", "i0e")]
ACTIVATIONS = [(nn, name) for name in ("celu", "elu", "leaky_relu", "squareplus", "gelu", "mish", "hard_silu")]


@pytest.mark.parametrize("name", OF_TWO)
def test_of_two_numbers(name: str) -> None:
    f: Callable[..., Any] = getattr(special, name)
    args = (HALF, None, TWO) if name == "logsumexp" else (TWO, HALF)
    np.testing.assert_allclose(xlamini.jit(lambda: f(*args))(), f(*args), rtol=1e-6)


@pytest.mark.parametrize("module, name", OF_ONE + ACTIVATIONS)
def test_of_one_number(module: Any, name: str) -> None:
    f = getattr(module, name)
    np.testing.assert_allclose(xlamini.jit(lambda: f(HALF))(), f(HALF), rtol=1e-6)


def test_derivatives_for_the_other_operand() -> None:
    gradient = xlamini.jit(xlamini.grad(lambda y: special.xlogy(TWO, y) + special.xlog1py(TWO, -y)))
    np.testing.assert_allclose(gradient(0.5), 2 / 0.5 - 2 / (1 - 0.5), atol=1e-5)


@pytest.mark.parametrize("function", [stats.norm.logpdf, stats.expon.logpdf, stats.uniform.pdf, jnp.trapezoid])
def test_numbers_that_are_not_given_are_constants_of_the_program(function: Callable[..., Any]) -> None:
    assert not xlamini.make_jaxpr(function)(jnp.ones(3)).consts
