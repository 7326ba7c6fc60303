"""Rules of custom_vjp that read values: outside of jit they get the numbers of arguments, residuals and cotangents."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import custom_vjp, grad, jit, numpy as jnp, vjp, vmap
from xlamini.errors import TracerBoolConversionError

Calls = list[Any]


def reading(calls: Calls) -> Any:
    """sin with a backward rule that NumPy computes, and that triples positive cotangents."""

    @custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    def fwd(x: Any) -> Any:
        calls.append(("fwd", float(np.asarray(x))))
        return f(x), jnp.cos(x)

    def bwd(cosine: Any, ct: Any) -> Any:
        calls.append(("bwd", float(ct)))
        if ct > 0:
            return (np.float32(3) * np.asarray(ct) * np.asarray(cosine),)
        return (ct * cosine,)

    f.defvjp(fwd, bwd)
    return f


COS = float(np.cos(np.float32(1)))


@pytest.mark.parametrize(
    ("run", "expected", "cotangents"),
    [
        (lambda f: grad(f)(1.0), 3 * COS, [1]),
        (lambda f: grad(lambda x: -2 * f(x))(1.0), -2 * COS, [-2]),
        (lambda f: vjp(f, 1.0)[1](2.0)[0], 6 * COS, [2]),
        (lambda f: xlamini.value_and_grad(lambda x, y: f(x) * y)(1.0, 2.0)[1], 6 * COS, [2]),
    ],
)
def test_a_backward_rule_reads_its_cotangent(
    run: Callable[[Any], Any], expected: float, cotangents: list[float]
) -> None:
    calls: Calls = []
    assert_close(run(reading(calls)), expected, 1e-5)
    assert ("fwd", 1.0) in calls
    assert [value for kind, value in calls if kind == "bwd"] == cotangents


def test_rules_in_a_chain_run_from_the_last_one_back() -> None:
    calls: Calls = []
    f = reading(calls)
    slope = grad(lambda x: f(f(x * 2)))(1.0)
    second = 3 * np.cos(np.sin(2.0))
    assert_close([value for kind, value in calls if kind == "bwd"], [1, second], 1e-5)
    assert_close(slope, 2 * second * np.cos(2.0) * 3, 1e-5)


def test_a_choice_is_made_anew_for_each_cotangent() -> None:
    _, pullback = vjp(reading([]), 1.0)
    assert_close([pullback(ct)[0] for ct in (1.0, -1.0, 2.0)], [3 * COS, -COS, 6 * COS], 1e-5)


def test_other_arguments_and_parts_of_the_program_are_differentiated_as_ever() -> None:
    f = reading([])
    w = np.array([1.0, -2.0], np.float32)
    slopes = grad(lambda w: f(w[0]) * jnp.exp(w[1]) + (w**2).sum())(w)
    assert_close(slopes, [3 * np.exp(-2.0) * COS + 2, np.sin(1) * np.exp(-2.0) - 4], 1e-5)


@pytest.mark.parametrize(
    ("around", "x"),
    [(lambda f: jit(grad(f)), 1.0), (lambda f: vmap(grad(f)), jnp.ones(3)), (lambda f: grad(jit(f)), 1.0)],
)
def test_a_value_that_is_not_there_is_an_error(around: Callable[[Any], Any], x: Any) -> None:
    @custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 2 if ct > 0 else ct,))
    with pytest.raises(TracerBoolConversionError, match="is not known while"):
        around(f)(x)


def test_a_rule_runs_where_the_next_one_returns_none() -> None:
    """A rule may give numbers that are no gradients, such as the statistics of scaled 8-bit floats."""

    @xlamini.custom_vjp
    def kept(x: Any, largest: Any) -> Any:
        return x * 1.0

    @xlamini.custom_vjp
    def product(x: Any, y: Any) -> Any:
        return x * y

    kept.defvjp(lambda x, largest: (x * 1.0, x.max()), lambda largest, ct: (None, largest))
    product.defvjp(lambda x, y: (x * y, x), lambda x, ct: (None, x * ct))
    x = np.arange(3, dtype=np.float32)
    slope = xlamini.grad(lambda largest: product(kept(x, largest), x).sum())
    assert slope(0.0) == xlamini.jit(slope)(0.0) == 2  # as JAX gives
