"""Powers of integers, as JAX has them: by squaring, with the lowest six bits of the exponent."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.rows.row import SIGNEDS
from xlamini import lax

BASES, EXPONENTS = np.repeat(np.arange(-3, 4), 7), np.tile(np.arange(-3, 4), 7)
WAYS: dict[str, Callable[..., Any]] = {
    "operator": lambda x, y: x**y,
    "power": jnp.power,
    "jit": xlamini.jit(lambda x, y: x**y),
    "vmap": xlamini.vmap(lambda x, y: x**y),
}


def wrapped(base: int, exponent: int, dtype: Any) -> int:
    """The power in this dtype; a negative exponent counts from 64 down."""
    return int(np.array(base ** (exponent % 64) % 2**64, np.uint64).astype(dtype))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", SIGNEDS)
def test_negative_exponents_give_what_jax_gives(dtype: str, way: str) -> None:
    with xlamini.enable_x64(True):
        found = WAYS[way](jnp.asarray(BASES, dtype), jnp.asarray(EXPONENTS, dtype))
    expected = [wrapped(int(b), int(e), dtype) for b, e in zip(BASES, EXPONENTS, strict=True)]
    np.testing.assert_array_equal(np.asarray(found), np.array(expected, dtype))


def test_the_signs_of_a_checkerboard() -> None:
    signs = [-1, 1, -1, 1, -1, 1, -1]
    assert ((-1) ** jnp.arange(-3, 4)).tolist() == signs
    assert xlamini.jit(lambda m: jnp.power(-1, m))(jnp.arange(-3, 4)).tolist() == signs
    with pytest.raises(TypeError, match="pow does not accept dtype int32"):
        lax.pow(jnp.arange(3), jnp.arange(3))
