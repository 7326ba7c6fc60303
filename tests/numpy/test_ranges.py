"""Numbers that count: the same in a program as eagerly, where they are operations of it."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp

RANGES: list[tuple[tuple[Any, ...], Any]] = [
    ((0, 64, 2), None), ((10, 0, -3), None), ((2, 9), None), ((5, 5, 2), None), ((9, 5), None),
    ((0.0, 64.0, 2.0), None), ((0, 64, 2), jnp.float32), ((0, 1, 0.1), None), ((0.5, 4), None),
    ((0, 1000, 3), jnp.bfloat16), ((0, 100, 3), jnp.bfloat16), ((0, 4096, 2), jnp.float16),
    ((3, 200, 7), jnp.uint8), ((250, 0, -7), jnp.uint8), ((200, 300), jnp.uint8), ((-100, 28, 5), jnp.int8),
    ((1, 2**31 - 1, 2**30), None), ((2**24, 2**24 + 9, 3), jnp.float32),
]  # fmt: skip


@pytest.mark.parametrize(("bounds", "dtype"), RANGES)
def test_a_range_is_the_same_in_a_program(bounds: tuple[Any, ...], dtype: Any) -> None:
    eager = jnp.arange(*bounds, dtype=dtype)
    traced = xlamini.jit(lambda: jnp.arange(*bounds, dtype=dtype))()
    assert traced.dtype == eager.dtype and not traced.weak_type
    np.testing.assert_array_equal(traced, eager)
    wanted = np.arange(*bounds).astype(eager.dtype)
    np.testing.assert_array_equal(eager, wanted)


@pytest.mark.parametrize("bounds", ((0, 64, 2), (10, 0, -3), (2, 9), (0.0, 64.0, 2.0)))
def test_whole_steps_are_operations_of_a_program(bounds: tuple[Any, ...]) -> None:
    assert not xlamini.make_jaxpr(lambda: jnp.arange(*bounds))().consts
