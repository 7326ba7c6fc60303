"""One array in place of a list: its rows are joined as a list of them is, but the program does not take it apart."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini.numpy as jnp
from xlamini import grad, jit, lax, make_jaxpr, vmap
from xlamini.errors import ShapeError

SHAPES = ((3,), (3, 2), (3, 2, 4), (2, 1, 3, 2), (1, 3), (3, 0))
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{
        name: (getattr(jnp, name), getattr(np, name))
        for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")
    },
    "stack last": (lambda x: jnp.stack(x, -1), lambda x: np.stack(list(x), -1)),
    "concatenate last": (lambda x: jnp.concatenate(x, -1), lambda x: np.concatenate(list(x), -1)),
    "lax.stack": (lax.stack, np.stack),
    "lax.stack last": (lambda x: lax.stack(x, -1), lambda x: np.stack(list(x), -1)),
    "lax.concatenate": (lambda x: lax.concatenate(x, 0), np.concatenate),
    "lax.concatenate last": (lambda x: lax.concatenate(x, len(np.shape(x)) - 2), lambda x: np.concatenate(list(x), -1)),
    "concatenate flat": (lambda x: jnp.concatenate(x, None), lambda x: np.concatenate(list(x), None)),
}


def cases() -> list[tuple[str, tuple[int, ...]]]:
    """All but the joins of numbers, which have no axis."""
    return [
        (name, shape)
        for name in FUNCTIONS
        for shape in SHAPES
        if len(shape) > 1 or "concatenate" not in name or name == "concatenate flat"
    ]


@pytest.mark.parametrize(("name", "shape"), cases())
def test_values_and_gradients(name: str, shape: tuple[int, ...]) -> None:
    ours, numpys = FUNCTIONS[name]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = numpys(list(x))
    np.testing.assert_array_equal(ours(x), expected)
    np.testing.assert_array_equal(jit(ours)(x), ours([*x]))
    np.testing.assert_array_equal(vmap(ours)(np.stack([x, x + 1]))[1], expected + 1)
    weights = np.arange(expected.size, dtype=np.float32).reshape(expected.shape)
    found = grad(lambda x: (ours(x) * weights).sum())(jnp.asarray(x))
    np.testing.assert_array_equal(numpys(list(np.asarray(found))), weights)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_program_is_short(name: str) -> None:
    """It has no slice for each row."""
    ours, _ = FUNCTIONS[name]
    assert len(make_jaxpr(ours)(jnp.ones((1000, 2, 3))).eqns) <= 3


def test_dtypes_and_errors() -> None:
    assert jnp.vstack(jnp.arange(3), dtype="float32").dtype == "float32"
    assert jnp.concatenate(np.ones((2, 3), np.float16)).dtype == "float16"
    with pytest.raises(ValueError, match="stack: at least one array is needed, got none"):
        jnp.stack(jnp.ones((0, 3)))
    with pytest.raises(TypeError, match="concatenate: a list or tuple of arrays is needed, got a scalar"):
        jnp.concatenate(jnp.float32(1))
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        lax.stack(jnp.float32(1))
    with pytest.raises(ShapeError, match="do not join along dimension 1"):
        lax.concatenate(jnp.ones((2, 3)), 1)
    with pytest.raises(ValueError, match="axis"):
        jnp.concatenate(jnp.ones((2, 3)), 1)
