"""Flag `debug_purity`: values that a function read while it was traced, and that have changed since."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.errors import StaleValueWarning

X = np.ones(2, np.float32)
RATE = 0.1
TABLE: dict[str, Any] = {}
SIZES: list[int] = []
WEIGHTS = np.ones(2, np.float32)


class Model:
    """An object whose attributes a traced function reads."""

    def __init__(self) -> None:
        self.rate, self.calls, self.inner, self.weights = 0.5, 0, None, jnp.ones(2)

    def step(self, x: Any) -> Any:
        return self.scaled(x) + self.weights

    def scaled(self, x: Any) -> Any:
        return x * self.rate

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other


MODEL = Model()


def helper(x: Any) -> Any:
    return x * RATE


def set_rate(value: float) -> None:
    global RATE
    RATE = value


def new_model() -> None:
    global MODEL
    MODEL = Model()
    MODEL.rate = 0.25


@pytest.fixture(autouse=True)
def _as_it_was() -> Any:
    global RATE, MODEL
    RATE, MODEL = 0.1, Model()
    TABLE.clear()
    TABLE["scale"] = 2.0
    SIZES[:] = [1, 2]
    WEIGHTS[:] = 1
    with xlamini.debug_purity(True):
        yield


def closed_over() -> tuple[Any, Callable[[], None]]:
    offset = 1.0

    def change() -> None:
        nonlocal offset
        offset = 3.0

    return lambda x: x + offset, change


def static_self() -> tuple[Any, Callable[[], None]]:
    jitted = xlamini.jit(Model.step, static_argnums=0)
    return functools.partial(jitted, MODEL), lambda: setattr(MODEL, "rate", 0.7)


OFFSET = closed_over()
CHANGES: dict[str, tuple[Any, Any, str]] = {
    "global": (lambda x: x * RATE, lambda: set_rate(0.2), "RATE was 0.1 when the function was traced, and is 0.2 now"),
    "global of a function that it calls": (lambda x: helper(x), lambda: set_rate(0.2), "RATE was 0.1"),
    "global under grad": (xlamini.grad(lambda x: (x * RATE).sum()), lambda: set_rate(0.2), "RATE was 0.1"),
    "global in a scan": (
        lambda x: lax.scan(lambda c, v: (c + v * RATE, None), 0.0, x)[0], lambda: set_rate(0.2), "RATE was 0.1"),
    "dict": (lambda x: x * TABLE["scale"], lambda: TABLE.update(scale=3.0), "{'scale': 2.0} when"),
    "list": (lambda x: x * len(SIZES), lambda: SIZES.append(3), "SIZES was [1, 2] when"),
    "ndarray in place": (lambda x: x * WEIGHTS, lambda: WEIGHTS.fill(2), "is another float32[2] now"),
    "attribute": (lambda x: x * MODEL.rate, lambda: setattr(MODEL, "rate", 0.7), "MODEL.rate was 0.5"),
    "attribute of a new object": (lambda x: x * MODEL.rate, new_model, "MODEL.rate was 0.5"),
    "attribute in a method": (lambda x: MODEL.step(x), lambda: setattr(MODEL, "rate", 0.7), "MODEL.rate was 0.5"),
    "array attribute": (
        lambda x: MODEL.step(x), lambda: setattr(MODEL, "weights", jnp.zeros(2)), "MODEL.weights was float32[2]"),
    "variable of a function around": (*OFFSET, "offset was 1.0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str) -> None:
    f, change, text = CHANGES[name]
    jitted = xlamini.jit(f)
    first = jitted(X)
    jitted(X)
    change()
    with pytest.warns(StaleValueWarning) as caught:
        again = jitted(X)
    np.testing.assert_array_equal(first, again)
    assert len(caught) == 1 and caught[0].filename == __file__
    message = str(caught[0].message)
    assert text in message and f"the compiled program goes on with the former; {__file__}:" in message
    assert message.endswith("as an argument, or call clear_cache() after a change")


def test_a_bound_method_and_a_static_object() -> None:
    for make in (lambda: xlamini.jit(MODEL.step), lambda: static_self()[0]):
        MODEL.rate = 0.5
        step = make()
        step(X)
        MODEL.rate = 0.7
        with pytest.warns(StaleValueWarning, match=r"self\.rate was 0\.5"):
            step(X)


def harmless(name: str) -> Callable[[], None]:
    return {
        "nothing": lambda: None,
        "an attribute that is not read": lambda: setattr(MODEL, "calls", MODEL.calls + 1),
        "a new entry": lambda: TABLE.update(other=1.0),
        "a global that is not read": lambda: set_rate(0.2),
        "an equal value": lambda: setattr(MODEL, "rate", 0.5),
    }[name]


HARMLESS = ("nothing", "an attribute that is not read", "a new entry", "a global that is not read", "an equal value")


@pytest.mark.parametrize("name", HARMLESS)
def test_silent(name: str) -> None:
    jitted = xlamini.jit(lambda x: MODEL.step(x) * TABLE["scale"])
    jitted(X)
    harmless(name)()
    jitted(X)


def test_without_the_flag_and_after_clear_cache() -> None:
    jitted = xlamini.jit(lambda x: x * RATE)
    with xlamini.debug_purity(False):
        jitted(X)
        set_rate(0.2)
        np.testing.assert_allclose(jitted(X), 0.1)
    jitted.clear_cache()
    np.testing.assert_allclose(jitted(X), 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jitted(X)


def test_a_jitted_function_in_another() -> None:
    inner = xlamini.jit(lambda x: x * RATE)
    inner(X)
    set_rate(0.2)
    with pytest.warns(StaleValueWarning, match="RATE was 0.1"):
        xlamini.jit(lambda x: inner(x) + 1)(X)


def test_a_program_has_the_captured_ndarray_of_its_trace() -> None:
    jitted = xlamini.jit(lambda x: x * WEIGHTS)
    with xlamini.debug_purity(False):
        np.testing.assert_array_equal(jitted(X), [1, 1])
        WEIGHTS[:] = 2
        for x in (X, jnp.ones(2), xlamini.device_put(X, xlamini.devices()[1])):
            np.testing.assert_array_equal(jitted(x), [1, 1])
        np.testing.assert_array_equal(xlamini.jit(lambda x: x * WEIGHTS)(X), [2, 2])
