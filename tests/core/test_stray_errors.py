"""Errors of Python itself inside the library: which get the call's name, and which are left alone."""

from __future__ import annotations

from typing import Any

import pytest

import xlamini
from xlamini import numpy as jnp


def endless(x: Any) -> Any:
    return xlamini.jit(endless)(x)


def test_a_traced_function_that_calls_itself() -> None:
    with pytest.raises(RecursionError, match="calls itself"):
        xlamini.jit(endless)(1.0)


def test_an_error_of_the_users_code_is_left_as_it_is() -> None:
    def f(x: Any) -> Any:
        return x + len(3)  # type: ignore[arg-type]

    for transformed in (xlamini.jit(f), xlamini.vmap(f), xlamini.grad(f)):
        with pytest.raises(TypeError) as raised:
            transformed(jnp.ones(3))
        assert str(raised.value) == "object of type 'int' has no len()"


def test_a_wrong_call_is_left_as_it_is() -> None:
    with pytest.raises(TypeError) as raised:
        jnp.sin()  # type: ignore[call-arg]
    assert str(raised.value).startswith("sin() missing 1 required positional argument")
    with pytest.raises(TypeError, match=r"^eye\(\) got an unexpected keyword argument 'M2'"):
        jnp.eye(2, M2=3)


def test_the_flag_that_shows_all_frames_keeps_the_text() -> None:
    xlamini.config.update("traceback_filtering", "off")
    try:
        with pytest.raises(TypeError, match=r"eye: .*it was given N='a'"):
            jnp.eye("a")
    finally:
        xlamini.config.update("traceback_filtering", "auto")
