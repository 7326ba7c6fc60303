"""Calls that C++ dispatch does not run are planned once: those of programs that call Python functions."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ShapeDtypeStruct, jit, numpy as jnp, pure_callback
from xlamini.staging.run.jit import calls_without_cpp, jitted_function as jit_module
from xlamini.staging.run.jit.calls_without_cpp import PythonCalls

X = jnp.arange(3, dtype=jnp.float32)


def doubled(x: Any) -> Any:
    return pure_callback(lambda v: v * 2, ShapeDtypeStruct(x.shape, x.dtype), x)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions whose calls are planned."""
    found: list[str] = []
    real = jit_module.Jitted.plan

    def plan(self: Any, args: Any, kwargs: Any) -> Any:
        found.append(self.name)
        return real(self, args, kwargs)

    monkeypatch.setattr(jit_module.Jitted, "plan", plan)
    return found


def test_a_program_with_callbacks_is_planned_once(plans: list[str]) -> None:
    table = np.array([1.0, 2.0, 3.0], np.float32)

    @jit
    def called(x: Any, *, shift: Any) -> Any:
        return {"y": doubled(x) + table * shift}

    for i in range(3):
        found = called(X + i, shift=X)
        np.testing.assert_allclose(found["y"], 2 * (np.asarray(X) + i) + table * np.asarray(X))
    assert plans.count("called") == 1
    for shift in (1.5, 2.5, np.float32([1, 2, 3]), np.float32([4, 5, 6])):
        np.testing.assert_allclose(called(X, shift=shift)["y"], 2 * np.asarray(X) + table * shift)
    assert plans.count("called") == 3  # for numbers, and for ndarrays, once each
    called(X, shift=2)
    with xlamini.default_device(xlamini.devices()[1]):
        called(X, shift=2)
    assert plans.count("called") == 5  # of another dtype, and for another device


def test_numbers_that_are_too_large_are_an_error() -> None:
    called = jit(lambda x, n: doubled(x) + n)
    called(X, 1)
    for _ in range(2):
        with pytest.raises(OverflowError, match="2147483648"):
            called(X, 2**31)


def test_captured_arrays_are_put_on_the_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, moved = np.ones(3, np.float32), []
    real = xlamini.runtime.execution.executable._place_argument

    def place(x: Any, *where: Any) -> Any:
        moved.append(x)
        return real(x, *where)

    monkeypatch.setattr(xlamini.runtime.execution.executable, "_place_argument", place)
    called = jit(lambda x: doubled(x) + table)
    for _ in range(4):
        np.testing.assert_allclose(called(X), 2 * np.asarray(X) + 1)
    assert len([x for x in moved if isinstance(x, np.ndarray)]) == 1


def test_static_arguments_are_part_of_the_key(plans: list[str]) -> None:
    @functools.partial(jit, static_argnums=1, static_argnames="power")
    def called(x: Any, factor: Any, power: int = 1) -> Any:
        return doubled(x) * factor**power

    cases: list[tuple[tuple[Any, ...], dict[str, int], Any]] = [
        ((X, 3), {}, 6 * X), ((X, 3), {"power": 2}, 18 * X), ((X, 3.0), {}, 6 * X), ((X, True), {}, 2 * X),
    ]  # fmt: skip
    for _ in range(2):
        for args, kwargs, expected in cases:
            np.testing.assert_allclose(called(*args, **kwargs), expected)
    assert plans.count("called") == len(cases)
    with pytest.raises(ValueError, match="static argument 'factor' of called is of type list, which cannot be hashed"):
        called(X, [3])


def test_types_devices_and_flags_are_part_of_the_key(plans: list[str]) -> None:
    called = jit(functools.wraps(doubled)(lambda x: doubled(x)))
    second = xlamini.devices()[1]
    on_second = xlamini.device_put(X, second)
    contexts: list[tuple[Callable[[], Any], Any]] = [
        (lambda: called(X), xlamini.devices()[0]),
        (lambda: called(X[:2]), xlamini.devices()[0]),
        (lambda: called(X[None]), xlamini.devices()[0]),
        (lambda: called(on_second), second),
        (lambda: _on(second, called), second),
    ]
    for _ in range(2):
        for call, device in contexts:
            out = call()
            assert out.device == device
            assert out.committed == (call is contexts[3][0])
    assert plans.count("doubled") == len(contexts)


def _on(device: Any, called: Any) -> Any:
    with xlamini.default_device(device):
        return called(X)


def test_debug_nans_looks_at_a_call_that_was_planned_before() -> None:
    called = jit(lambda x: jnp.log(doubled(x)))
    bad = X - 1
    for _ in range(2):
        assert np.isnan(np.asarray(called(bad))[0])
    with xlamini.debug_nans(True), pytest.raises(FloatingPointError):
        called(bad)


def test_inside_of_another_function_it_is_traced() -> None:
    called = jit(doubled)
    called(X)
    np.testing.assert_allclose(jit(lambda x: called(x) + 1)(X), 2 * X + 1)
    np.testing.assert_allclose(xlamini.make_jaxpr(called)(X).eqns[0].params["jaxpr"].in_avals[0].shape, (3,))


def test_a_deleted_argument_is_named() -> None:
    called, x = jit(doubled), X + 1
    called(X)
    x.delete()
    with pytest.raises(RuntimeError, match="the argument 'x' of doubled"):
        called(x)


def test_a_failed_callback_is_reported() -> None:
    def positive(v: Any) -> Any:
        if (v < 0).any():
            raise ValueError("no luck")
        return v

    called = jit(lambda x: pure_callback(positive, ShapeDtypeStruct(x.shape, x.dtype), x))
    called(X)
    with pytest.raises(xlamini.errors.CallbackError, match="no luck"):
        xlamini.block_until_ready(called(X - 1))
    np.testing.assert_allclose(called(X), X)
    xlamini.effects_barrier()


def test_clear_caches_forgets_them() -> None:
    called = jit(doubled)
    called(X)
    calls: PythonCalls = called.trace.__self__.in_python
    assert len(calls.calls) == 1 and len(calls_without_cpp.python_calls) >= 1
    xlamini.clear_caches()
    assert not calls.calls
