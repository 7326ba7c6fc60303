"""Formulas that are read at several places are calls that XLA keeps; others are written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp

pytestmark = pytest.mark.usefixtures("optimized")

SIZE = 5000  # smaller arrays are left to XLA's own operations
X = np.linspace(-3, 3, SIZE, dtype=np.float32)
BACKWARDS = np.arange(SIZE)[::-1].copy()
IN_TWO = xlamini.jit(lambda x: xlamini.jit(jnp.sin)(x))


@xlamini.custom_jvp
def with_rule(x: Any) -> Any:
    return jnp.sin(x)


with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), tangents[0] * jnp.cos(primals[0])))


def repeated(step: Callable[[Any], Any], times: int = 6) -> Callable[[Any], Any]:
    def chain(x: Any) -> Any:
        for _ in range(times):
            x = step(x)
        return x

    return chain


MOVING = {
    "reversed": lambda m, x: m.sin(x) * 1.5 + x[::-1],
    "rolled": lambda m, x: m.cos(x) + m.roll(x, 1),
    "shifted": lambda m, x: m.tan(x / 9) + m.concatenate([x[1:], x[:1]]),
    "in a function": lambda m, x: m.sin(x) + (xlamini.jit(lambda y: y[::-1])(x) if m is jnp else x[::-1]),
    "by a gather": lambda m, x: m.sin(x) + x[BACKWARDS],
    "formula in a function": lambda m, x: (xlamini.jit(m.sin)(x) if m is jnp else m.sin(x)) + x[::-1],
    "formula in two functions": lambda m, x: (IN_TWO(x) if m is jnp else m.sin(x)) + x[::-1],
    "into a formula": lambda m, x: m.sin(x[::-1]),
    "into a formula in a function": lambda m, x: (IN_TWO(x[::-1]) if m is jnp else m.sin(x[::-1])),
    "twice": lambda m, x: x[::-1] - m.sin(x),
    "formula with a rule": lambda m, x: (with_rule(x) if m is jnp else m.sin(x)) + x[::-1],
}
STEPS = {
    "jit": xlamini.jit,
    "checkpoint": xlamini.checkpoint,
    "custom_jvp": xlamini.custom_jvp,
    "custom_vjp": xlamini.custom_vjp,
}
STAYING = {
    "in place": lambda x: jnp.sin(x) * 1.5 + x,
    "through a product": lambda x: jnp.sin(x.reshape(50, 100) @ jnp.ones((100, 100))).reshape(-1),
    "through a sum": lambda x: jnp.sin(x - x.sum()),
    "in a function": lambda x: xlamini.jit(jnp.sin)(x) * 1.5 + x,
    "moved before, in a function": xlamini.jit(lambda x: (x - x.sum())[::-1]),
}


def kept_calls(fun: Callable[[Any], Any]) -> int:
    return xlamini.jit(fun).lower(X).as_text().count("inlineable")


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", MOVING)
def test_a_chain_of_places_is_cut(name: str) -> None:
    step = MOVING[name]
    fun = repeated(lambda x: step(jnp, x))
    assert kept_calls(fun) >= 4
    expected = repeated(lambda x: step(np, x))(X.astype(np.float64))
    np.testing.assert_allclose(xlamini.jit(fun)(X), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("name", STEPS)
def test_a_function_with_a_formula_is_kept_as_a_whole(name: str) -> None:
    step = STEPS[name](lambda x: jnp.sin(x) + x[::-1])
    if name == "custom_vjp":
        step.defvjp(lambda x: (step(x), x), lambda x, ct: (ct * jnp.cos(x) + ct[::-1],))
    if name == "custom_jvp":
        step.defjvp(lambda x, t: (step(*x), t[0] * jnp.cos(x[0]) + t[0][::-1]))
    assert kept_calls(repeated(step, 7)) == 6
    expected = repeated(lambda x: np.sin(x) + x[::-1])(X.astype(np.float64))
    np.testing.assert_allclose(xlamini.jit(repeated(step))(X), expected, rtol=1e-3, atol=1e-3)
    found = xlamini.grad(lambda x: repeated(step)(x).sum())(X)
    wanted = xlamini.grad(lambda x: repeated(lambda x: jnp.sin(x) + x[::-1])(x).sum())(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_the_program_for_a_cpu_says_which_calls_are_kept() -> None:
    chain = repeated(lambda x: MOVING["formula with a rule"](jnp, x))
    assert str(xlamini.make_jaxpr(chain, platform="cpu")(X)).count("noinline=True") == kept_calls(chain) > 0
    assert "noinline" not in str(xlamini.make_jaxpr(chain, platform="tpu")(X))
    titles = [stage["title"] for stage in xlamini.inspect(chain)(X).json()["stages"]]
    assert "chain: with calls that cpu computes by themselves" in titles


def test_what_a_function_reads_at_several_places_is_kept_outside() -> None:
    twice = xlamini.jit(lambda x, y: (x + y[::-1], x))
    assert kept_calls(lambda x: twice(jnp.sin(x), x)[0]) == 0
    assert kept_calls(lambda x: twice(x, jnp.sin(x))[0]) == 0
    assert kept_calls(lambda x: twice(*[jnp.sin(x)] * 2)[0]) == 1
    assert kept_calls(lambda x: sum(twice(jnp.sin(x), x))) == 0


def test_what_is_read_at_one_place_is_fused_wherever_that_is() -> None:
    assert kept_calls(lambda x: jnp.sin(x)[::-1] * 2) == 0
    assert kept_calls(lambda x: jnp.sin(x)[::-1] + jnp.cos(x)) == 0
    assert kept_calls(lambda x: jnp.sin(x)[::-1] + jnp.sin(x)) == 0  # two equations


def test_one_formula_for_many_readers_of_one_value() -> None:
    """What the derivative of such a line is: a cosine of a sine, read in its place and elsewhere."""
    found = xlamini.grad(lambda x: jnp.sin(jnp.sin(x) + x[::-1]).sum())
    assert kept_calls(found) > 0
    inner = np.cos(np.sin(X.astype(np.float64)) + X[::-1])
    np.testing.assert_allclose(found(X), inner * np.cos(X) + inner[::-1], rtol=1e-4, atol=1e-5)


def test_equations_are_known_after_the_body_of_another_one() -> None:
    """The numbers of equations inside a loop are not those of the program around it."""
    chain = repeated(lambda x: MOVING["reversed"](jnp, x))

    def after_a_loop(x: Any) -> Any:
        return chain(xlamini.lax.fori_loop(0, 2, lambda _, y: y @ jnp.ones((50, 50)), x.reshape(100, 50)).reshape(-1))

    assert kept_calls(after_a_loop) == kept_calls(chain) > 0


def test_only_the_cpu_keeps_calls_in_a_module_for_several_platforms() -> None:
    chain = repeated(xlamini.jit(lambda x: jnp.sin(x) + x[::-1]))
    exported = xlamini.export.export(xlamini.jit(chain), platforms=("cpu", "tpu"))(X)
    assert exported.mlir_module().count("inlineable") == kept_calls(chain) > 0
    assert "inlineable" not in xlamini.export.export(xlamini.jit(chain), platforms=("tpu",))(X).mlir_module()
    np.testing.assert_allclose(exported.call(X), chain(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", STAYING)
def test_what_stays_in_its_place_is_fused(name: str) -> None:
    assert kept_calls(repeated(STAYING[name])) == 0


def test_the_same_equation_is_kept_in_one_program_and_written_out_in_the_next() -> None:
    for _ in range(2):
        assert kept_calls(repeated(lambda x: MOVING["reversed"](jnp, x))) > 0
        assert kept_calls(lambda x: jnp.sin(x) * 1.5) == 0
