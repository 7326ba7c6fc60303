"""select with arrays in place of lists: their rows are the conditions and the choices, and stay together."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini.numpy as jnp
from xlamini import grad, jit, make_jaxpr, vmap
from xlamini.numpy.selection import FEW

ALIKE = ((9, 5), (9,), (1, 3), (FEW, 4), (9, 0))
SHAPES = (((9, 1, 3), (9, 2, 1)), *zip(ALIKE, ALIKE, strict=True))


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ("float32", "int8", "bool", "complex64"))
def test_values_are_those_of_lists(shapes: Any, dtype: str) -> None:
    draw = np.random.default_rng(0)
    holds = draw.random(shapes[0]) < 0.1
    choices = draw.integers(0, 100, shapes[1]).astype(dtype)
    default = np.full(np.broadcast_shapes(*shapes)[1:], 7, dtype)
    expected = jnp.select(list(holds), list(choices), default)
    found = jnp.select(jnp.asarray(holds), choices, default)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(jit(jnp.select)(holds, choices, default), expected)
    mapped = vmap(jnp.select)(np.stack([holds, ~holds]), np.stack([choices, choices]), np.stack([default] * 2))
    np.testing.assert_array_equal(mapped[0], expected)


def test_gradients_are_those_of_lists() -> None:
    """NaN where no condition holds stays out of them."""
    draw = np.random.default_rng(0)
    conditions = (draw.random((9, 20)) < 0.1).astype(np.float32)
    choices = np.where(conditions > 0, draw.random((9, 20), np.float32), np.float32(np.nan))
    default = draw.random(20, np.float32)

    def loss(choices: Any, default: Any, part: Any) -> Any:
        return (jnp.select(part(conditions), part(choices), default) ** 2).sum()

    derivatives = grad(loss, (0, 1))
    expected = derivatives(choices, default, list)
    for found, each in zip(derivatives(choices, default, jnp.asarray), expected, strict=True):
        np.testing.assert_array_equal(found, each)


def test_rows_of_other_kinds_are_taken_one_by_one() -> None:
    """Rows of different ranks, a list beside an array, and different counts."""
    holds, choices = jnp.ones((9, 1), bool), jnp.arange(9)
    np.testing.assert_array_equal(jnp.select(holds, choices), [0])
    np.testing.assert_array_equal(jnp.select(holds, list(choices)), [0])
    with pytest.raises(ValueError, match="9 conditions, but 8 choices"):
        jnp.select(holds, choices[1:])


def test_the_program_is_short() -> None:
    x = jnp.ones((1000, 3))
    assert len(make_jaxpr(jnp.select)(x > 0, x, 1.0).eqns) <= 12
