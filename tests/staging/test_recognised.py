"""Transformations called again outside jit: what is traced to the same program is rewritten and compiled once."""
from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import grad, lax, vmap
from xlamini.core.program.jaxpr import Jaxpr
from xlamini.core.pytree import structure
from xlamini.core.tracing.tracer import aval_of
from xlamini.runtime.execution.program_limit import crowd
from xlamini.staging.run.programs import shared
from xlamini.staging.trace import trace_cache
from xlamini.staging.trace.tracing import trace

pytestmark = pytest.mark.full  # each compiles without the cache

X = np.linspace(0.5, 1.5, 4, dtype=np.float32)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    xlamini.clear_caches()
    yield
    xlamini.clear_caches()


def traced(fun: Callable[..., Any], x: Any = X) -> Jaxpr:
    return trace(fun, structure(((x,), {})), [aval_of(x)], reuse_equal=True).jaxpr


def wave(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * x)


# --- the same program, another program


@pytest.mark.full
def test_the_third_trace_is_the_second_one() -> None:
    first, second, third = (traced(wave) for _ in range(3))
    assert first is not second and second is third


def test_a_lambda_made_anew_in_each_turn_is_the_same_program() -> None:
    made = [traced(lambda x: x * 2) for _ in range(3)]
    assert made[1] is made[2]


def test_a_program_written_elsewhere_is_another_one() -> None:
    here, there = (lambda x: x * 2), (lambda x: x * 2)
    for _ in range(3):
        mine, other = traced(here), traced(there)
        assert mine.eqns[0].provenance.source.code is here.__code__
        assert other.eqns[0].provenance.source.code is there.__code__


@pytest.mark.full
@pytest.mark.parametrize("other", [lambda x: x * 3.0, lambda x: x * 2, lambda x: 2.0 * x, lambda x: jnp.sin(x * 2.0)])
def test_programs_that_differ(other: Callable[[Any], Any]) -> None:
    for _ in range(3):
        one, two = traced(lambda x: x * 2.0), traced(other)
        assert one is not two and len(one.eqns) != 0


def test_zeros_of_both_signs_differ() -> None:
    for _ in range(3):
        plus, minus = (traced(lambda x, n=n: x * n) for n in (0.0, -0.0))
        assert plus is not minus
    for zero in (0.0, -0.0, 0.0):
        np.testing.assert_array_equal(np.signbit(vmap(lambda x, n=zero: x * n)(X)), np.signbit(X * zero))


def test_nan_is_recognised() -> None:
    made = [traced(lambda x: x + float("nan")) for _ in range(3)]
    assert made[1] is made[2]


def test_types_and_named_axes_belong_to_a_program() -> None:
    for _ in range(3):
        assert traced(wave) is not traced(wave, X.astype(np.float16))
        for size in (2, 4):
            mean = vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")
            np.testing.assert_allclose(mean(X[:size]), X[:size] - X[:size].mean(), rtol=1e-5)


def test_inside_jit_nothing_is_looked_up() -> None:
    for _ in range(3):
        xlamini.jit(lambda x: grad(wave)(x))(X)
    assert not trace_cache.traced.table and not trace_cache.traced_once.table


def test_programs_are_forgotten_beyond_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_cache.traced, "limit", 10)
    for count in range(1, 12):
        for _ in range(2):
            traced(lambda x, count=count: [x := x * 2 for _ in range(count)][-1])
    assert sum(len(jaxpr.eqns) for jaxpr in trace_cache.traced.table.values()) <= 10


def test_programs_met_once_are_forgotten_beyond_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_cache.traced_once, "limit", 3)
    for count in range(5):
        traced(lambda x, count=count: x + count)
    assert len(trace_cache.traced_once) == 3 and not trace_cache.traced.table


# --- values


def test_what_a_function_captures_may_change() -> None:
    for turn in range(4):
        w = jnp.asarray(X) * turn
        np.testing.assert_allclose(grad(lambda x: jnp.sum(x * x * w))(X), 2 * X * X * turn, rtol=1e-6)  # noqa: B023


def test_a_rule_reads_what_has_changed() -> None:
    scale = 1.0
    fun = xlamini.custom_jvp(lambda x: x * 2)
    fun.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * scale))
    back = xlamini.custom_vjp(lambda x: x * 2)
    back.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * scale,))
    for scale in (1.0, 2.0, 3.0, 3.0, 4.0):
        assert grad(lambda x: fun(x))(1.0) == scale
        assert grad(lambda x: back(x))(1.0) == scale


def test_python_control_flow_goes_by_the_numbers_of_each_call() -> None:
    kink = grad(lambda x: x * 3 if x > 0 else x * 5)
    assert [float(kink(x)) for x in (1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 2.0)] == [3, 3, 3, 5, 5, 5, 3]


def test_a_number_that_changes_makes_two_programs() -> None:
    for turn in range(6):
        np.testing.assert_allclose(grad(lambda x: jnp.sum(x * x) * float(turn))(X), 2 * X * turn, rtol=1e-6)  # noqa: B023
    assert len(shared.programs) <= 2


def test_all_transformations_called_again() -> None:
    point = np.float32(0.7)
    for _ in range(4):
        np.testing.assert_allclose(grad(wave)(X), np.sin(X) + X * np.cos(X), rtol=1e-5)
        np.testing.assert_allclose(vmap(grad(jnp.tanh))(X), 1 - np.tanh(X) ** 2, rtol=1e-5)
        np.testing.assert_allclose(grad(grad(jnp.sin))(point), -np.sin(point), rtol=1e-5)
        out, push = xlamini.linearize(wave, X)
        np.testing.assert_allclose(push(X), xlamini.jvp(wave, (X,), (X,))[1], rtol=1e-5)
        np.testing.assert_allclose(xlamini.vjp(wave, X)[1](out)[0], out * grad(wave)(X), rtol=1e-5)
        np.testing.assert_allclose(xlamini.jacfwd(jnp.sin)(X), np.diag(np.cos(X)), rtol=1e-5)
        np.testing.assert_allclose(xlamini.hessian(wave)(X), np.diag(2 * np.cos(X) - X * np.sin(X)), rtol=1e-5)
        np.testing.assert_allclose(xlamini.linear_transpose(lambda x: 3 * x, X)(X)[0], 3 * X, rtol=1e-6)
        assert lax.cond(True, lambda x: x + 1, lambda x: x - 1, 2.0) == 3
        assert lax.fori_loop(0, 3, lambda i, x: x + i, 1) == 4


# --- memory


def alive() -> int:
    gc.collect()
    return sum(type(x) is Jaxpr for x in gc.get_objects())


def redefined_gradient(turn: int) -> None:
    namespace = {"jnp": jnp}
    exec("def loss(x):\n    return jnp.sum(jnp.tanh(x) * 2 + 1)", namespace)
    grad(namespace["loss"])(X)


def redefined_jit(turn: int) -> None:
    xlamini.jit(lambda x: jnp.tanh(x) * 2 + turn)(X)


def fresh_rule(turn: int) -> None:
    fun = xlamini.custom_jvp(lambda x: x * 2)
    fun.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    grad(lambda x: jnp.sum(fun(x)))(X)


@pytest.mark.full
@pytest.mark.parametrize("step", [redefined_gradient, redefined_jit, fresh_rule])
def test_redefinitions_leave_nothing_behind(step: Callable[[int], None]) -> None:
    for turn in range(5):
        step(turn)
    before, loaded = alive(), len(crowd.loaded)
    for turn in range(5, 25):
        step(turn)
    assert alive() <= before + 10 and len(crowd.loaded) <= loaded + 2


def test_a_dropped_function_takes_its_programs_with_it() -> None:
    before = len(crowd.loaded)
    jitted = xlamini.jit(lambda x: jnp.cos(x) + 1)
    jitted(X), jitted(X[:2])
    assert len(crowd.loaded) == before + 2
    del jitted
    gc.collect()
    assert len(crowd.loaded) == before
