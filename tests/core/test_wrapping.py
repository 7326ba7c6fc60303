"""Callables whose names are no strings, under the transformations that name what they make after them."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.core.wrapping import wraps


class Cube:
    """The cube."""

    def __init__(self) -> None:
        hidden: Any = object()
        self.__name__ = self.__qualname__ = self.__annotations__ = hidden

    def __call__(self, x: Any) -> Any:
        return x**3


TRANSFORMED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "vmap": (lambda f: lambda x: xlamini.vmap(f)(x[None])[0], 8.0),
    "grad": (xlamini.grad, 12.0),
    "jacfwd": (xlamini.jacfwd, 12.0),
    "hessian": (xlamini.hessian, 12.0),
    "checkpoint": (xlamini.checkpoint, 8.0),
    "jit": (xlamini.jit, 8.0),
    "linearize": (lambda f: xlamini.jit(lambda x: xlamini.linearize(f, x)[1](x)), 24.0),
    "fori_loop": (lambda f: lambda x: xlamini.lax.fori_loop(0, 1, lambda i, c: f(c), x), 8.0),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_names_that_are_no_strings(name: str) -> None:
    transform, expected = TRANSFORMED[name]
    np.testing.assert_allclose(transform(Cube())(jnp.float32(2.0)), expected)


def test_names_that_are_strings_are_kept() -> None:
    def named(x: Any) -> Any:
        """Its text."""
        return x

    made = wraps(named)(lambda x: x)
    assert (made.__name__, made.__doc__, made.__wrapped__) == ("named", "Its text.", named)  # type: ignore[attr-defined]
    assert wraps(Cube())(lambda x: x).__doc__ == "The cube."


@pytest.mark.parametrize("transform", [xlamini.jit, xlamini.grad, xlamini.vmap, xlamini.checkpoint])
def test_what_is_made_of_a_partial_has_the_name_of_its_function(transform: Any) -> None:
    def power(n: int, x: Any) -> Any:
        return x**n

    made = transform(functools.partial(functools.partial(power), 2))
    assert (made.__name__, made.__qualname__) == ("power", power.__qualname__)
    assert made(jnp.ones(1)[0] if transform is xlamini.grad else jnp.ones(1)).sum() in (1.0, 2.0)


def test_an_integer_that_is_not_known_is_a_value_that_is_not_known() -> None:
    with pytest.raises(xlamini.errors.ConcretizationTypeError, match="The integer of a traced value"):
        xlamini.jit(lambda n: jnp.arange(n))(3)
