"""Random programs: nested transformations over one another, with closures over outer values, agree with plain
evaluation.

A program is Python text, so that a failure can be read and run: `L.grad(lambda a: L.total(L.sin(v) * a))(s)`. The names
`s` and `v` are its inputs, a number and a vector; `L` is one of the two languages of tests/support/plain.py.
"""
from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import xlamini
from tests.support.checks import assert_close
from tests.support.plain import SIZE, Plain, Xlamini

DEPTH = 4
NUMBER, VECTOR = "s", "v"
Scope = tuple[tuple[str, str], ...]
"""The names in scope, each with its kind."""

S, V = np.float64(0.7), np.array([0.3, -1.1, 0.8])
SETTINGS = settings(
    derandomize=True, deadline=None, max_examples=100, suppress_health_check=list(HealthCheck), database=None
)

# {s} and {v} are expressions; {f:ab} a function of a value of kind a that returns kind b.
FORMS = {
    NUMBER: [
        "L.sin({s})",
        "L.tanh({s})",
        "({s} * {s})",
        "({s} + {s})",
        "({s} - 0.5)",
        "L.total({v})",
        "{v}[1]",
        "L.total({v} * {v})",
        "L.where({s} > 0.1, {s}, {s})",
    ],
    VECTOR: ["L.cos({v})", "({v} * {v})", "({v} * {s})", "({s} - {v})", "({v} + 2.0)", "L.spread({s})"],
}
TRANSFORMED = {
    NUMBER: [
        "L.jit({f:ss})({s})",
        "L.jit({f:vs})({v})",
        "L.grad({f:ss})({s})",
        "L.value_and_grad({f:ss})({s})",
        "L.jvp({f:ss})({s}, {s})",
        "L.jvp({f:vs})({v}, {v})",
        "L.linearize({f:vs})({v}, {v})",
        "L.vjp({f:sv})({s}, {v})",
    ],
    VECTOR: [
        "L.jit({f:vv})({v})",
        "L.grad({f:vs})({v})",
        "L.value_and_grad({f:vs})({v})",
        "L.vmap({f:ss})({v})",
        "L.jvp({f:sv})({s}, {s})",
        "L.linearize({f:vv})({v}, {v})",
        "L.vjp({f:vv})({v}, {v})",
        "L.vjp({f:vs})({v}, {s})",
    ],
}


@st.composite
def expressions(draw: Any, kind: str, scope: Scope, depth: int) -> str:
    """The text of an expression of this kind over these names, with transformations nested up to `depth`."""
    names = [name for name, its in reversed(scope) if its == kind]
    if depth == 0 or (names and draw(st.integers(0, 7)) == 7):
        return draw(st.sampled_from(names)) if names else "L.spread(0.25)" if kind == VECTOR else "L.total(v)"
    forms = TRANSFORMED if draw(st.booleans()) else FORMS
    return filled(draw, draw(st.sampled_from(forms[kind])), scope, depth - 1)


def filled(draw: Any, form: str, scope: Scope, depth: int) -> str:
    """A form with expressions in its places."""
    start = form.find("{")
    if start < 0:
        return form
    end = form.index("}", start)
    place = form[start + 1 : end]
    text = draw(functions(place[2:], scope, depth)) if place[1:2] == ":" else draw(expressions(place, scope, depth))
    return form[:start] + text + filled(draw, form[end + 1 :], scope, depth)


@st.composite
def functions(draw: Any, kinds: str, scope: Scope, depth: int) -> str:
    """The text of a function of one new name, which sees the names around it."""
    name = "abcdefghij"[len(scope)]
    body = draw(expressions(kinds[1], (*scope, (name, kinds[0])), depth))
    return f"(lambda {name}: {body})"


PROGRAMS = expressions(VECTOR, (("s", NUMBER), ("v", VECTOR)), DEPTH)


def meaning(program: str, language: Any) -> Any:
    return eval(f"lambda s, v: {program}", {"L": language})


@pytest.mark.slow
@SETTINGS
@given(PROGRAMS)
def test_random_programs_agree_with_plain_evaluation(program: str) -> None:
    fun = meaning(program, Xlamini)
    expected = np.broadcast_to(meaning(program, Plain)(S, V), V.shape)
    tolerance = 1e-9 * max(1, np.max(np.abs(expected)))
    with xlamini.enable_x64(True):
        s, v = xlamini.device_put(S), xlamini.device_put(V)
        assert_close(fun(s, v), expected, tolerance, program)
        assert_close(xlamini.jit(fun)(s, v), expected, tolerance, f"jit of {program}")


@pytest.mark.slow
@SETTINGS
@given(PROGRAMS)
def test_random_programs_are_mapped_and_differentiated(program: str) -> None:
    fun, plain = meaning(program, Xlamini), meaning(program, Plain)
    numbers = np.array([0.7, -0.4])
    expected = np.stack([np.broadcast_to(plain(n, V), V.shape) for n in numbers], 1)
    slope = np.broadcast_to(Plain.jvp(lambda s: plain(s, V))(S, 1.0), V.shape)
    with xlamini.enable_x64(True):
        mapped = xlamini.jit(xlamini.vmap(fun, in_axes=(0, None), out_axes=1))(numbers, V)
        pushed = Xlamini.jvp(xlamini.jit(lambda s: fun(s, xlamini.device_put(V))))(S, np.float64(1))
    assert_close(mapped, expected, 1e-9 * max(1, np.max(np.abs(expected))), f"vmap of {program}")
    assert_close(pushed, slope, 1e-9 * max(1, np.max(np.abs(slope))), f"jvp of {program}")


def test_the_plain_language_agrees_with_finite_differences() -> None:
    def fun(L: Any, x: Any) -> Any:
        return L.total(L.tanh(L.sin(x) * x) * L.vmap(lambda a: L.where(a > 0.0, a * a, L.cos(a)))(x)) + x[1]

    step, gradient = 1e-6, Plain.grad(lambda x: fun(Plain, x))(V)
    for i in range(SIZE):
        e = step * np.eye(SIZE)[i]
        assert_close(gradient[i], (fun(Plain, V + e) - fun(Plain, V - e)) / (2 * step), 1e-8)
