"""Joins of very many arrays are lowered as a tree, since XLA's time for one operation grows as the square."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp

COUNT = 300


def joined(x: xlamini.Array) -> xlamini.Array:
    return lax.concatenate([x[i : i + 1 + i % 2] for i in range(COUNT)], 0)


def expected(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[i : i + 1 + i % 2] for i in range(COUNT)])


def test_no_operation_joins_very_many() -> None:
    text = xlamini.jit(joined).lower(jnp.zeros(COUNT + 1)).as_text()
    found = [line.count("%") - 1 for line in re.findall(r".*stablehlo\.concatenate.*", text)]
    assert len(found) == 6
    assert max(found) <= 64


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int2"])
def test_values(dtype: str) -> None:
    x = (np.arange(COUNT + 1) % 2).astype(dtype)
    rows = [x[i : i + 1 + i % 2] for i in range(COUNT)]
    np.testing.assert_array_equal(xlamini.jit(lambda *a: jnp.concatenate(a))(*rows), expected(x))


@pytest.mark.slow
def test_derivative_and_batch() -> None:
    rows = [jnp.full((2, 1 + i % 2), float(i)) for i in range(COUNT)]
    weights = np.arange(sum(row.shape[1] for row in rows), dtype=np.float32)

    def weighted(rows: list[xlamini.Array]) -> xlamini.Array:
        return (xlamini.vmap(lambda rows: lax.concatenate(rows, 0))(rows) * weights).sum()

    found = xlamini.jit(xlamini.grad(weighted))(rows)
    np.testing.assert_array_equal(np.concatenate(found, 1), np.stack([weights] * 2))
