"""The updates that win where indices repeat are found by numbers of windows as they are by those of elements."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.core.program.avals import aval_of
from xlamini.lax import GatherScatterMode, ScatterDimensionNumbers
from xlamini.primitives.indexing.scatter import scatter_p
from xlamini.primitives.indexing.scatter_winners import _filled, _masks

RANDOM = np.random.default_rng(0)
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
COLUMNS = ScatterDimensionNumbers((0,), (1,), (1,))
BATCHED = ScatterDimensionNumbers((2,), (1,), (1,), (0,), (0,))
IN_PART = ScatterDimensionNumbers((1, 2), (), (0,))
WHOLE = ScatterDimensionNumbers((1, 2), (), ())
MOVED_ALONG = ScatterDimensionNumbers((1, 2), (), (1,))


@pytest.mark.parametrize(
    ("x", "indices", "updates", "numbers", "count"),
    [
        ((5, 3), (7, 1), (7, 3), ROWS, 1),
        ((5, 3), (7, 1), (5, 7), COLUMNS, 1),
        ((2, 5, 3), (2, 7, 1), (2, 7, 3), BATCHED, 1),
        ((5, 3), (7, 1), (7, 2, 3), IN_PART, 1),
        ((5, 3), (7, 1), (7, 2, 2), IN_PART, 0),
        ((5, 3), (7, 0), (7, 5, 3), WHOLE, 2),
        ((5, 3), (7, 1), (7, 5, 3), MOVED_ALONG, 1),
        ((5, 0), (7, 1), (7, 0), ROWS, 1),
        ((5, 3), (0, 1), (0, 3), ROWS, 1),
    ],
)
@pytest.mark.parametrize("mode", GatherScatterMode)
def test_windows_win_as_their_elements_do(
    x: Any, indices: Any, updates: Any, numbers: Any, count: int, mode: GatherScatterMode
) -> None:
    operand, given = aval_of(jnp.zeros(x)), aval_of(jnp.zeros(updates))
    high = 4 if mode is GatherScatterMode.PROMISE_IN_BOUNDS else 7
    places = jnp.asarray(RANDOM.integers(0, high, indices), "int32")
    params = {"dimension_numbers": numbers, "mode": mode, "indices_are_sorted": False, "unique_indices": False}
    filled = _filled(operand, given, numbers)
    assert len(filled) == count
    by_windows, by_elements = (_masks(scatter_p.bind, operand, given, f, params, places) for f in (filled, {}))
    for mine, expected in zip(by_windows, by_elements, strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_the_gradient_of_rows_that_are_set_twice() -> None:
    x, updates = RANDOM.normal(size=(5, 3)).astype("float32"), RANDOM.normal(size=(4, 3)).astype("float32")
    weights = RANDOM.normal(size=(5, 3)).astype("float32")
    rows = np.array([1, 3, 1, 9])
    set_rows = xlamini.grad(lambda x, u: (x.at[rows].set(u) * weights).sum(), (0, 1))
    of_x, of_updates = set_rows(jnp.asarray(x), jnp.asarray(updates))
    np.testing.assert_allclose(of_x, np.where([[True], [False], [True], [False], [True]], weights, 0), rtol=1e-6)
    np.testing.assert_allclose(of_updates, [0 * weights[0], weights[3], weights[1], 0 * weights[0]], rtol=1e-6)
