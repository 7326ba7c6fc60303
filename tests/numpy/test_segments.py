"""Segment operations of one number, which counts for every segment id."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp, ops

IDS = np.array([0, 2, 0, 0])


@pytest.mark.parametrize(
    "operation, expected",
    [
        (ops.segment_sum, [6.0, 0.0, 2.0]),
        (ops.segment_prod, [8.0, 1.0, 2.0]),
        (ops.segment_max, [2.0, -np.inf, 2.0]),
        (ops.segment_min, [2.0, np.inf, 2.0]),
    ],
)
def test_a_number_counts_for_every_id(operation: Any, expected: list[float]) -> None:
    np.testing.assert_array_equal(operation(2.0, IDS, 3), expected)
    np.testing.assert_array_equal(xlamini.jit(lambda x, ids: operation(x, ids, 3))(jnp.float32(2), IDS), expected)
    batch = xlamini.vmap(lambda x, ids: operation(x, ids, 3))(jnp.array([2.0, 2.0]), np.stack([IDS, IDS]))
    np.testing.assert_array_equal(batch, [expected, expected])


@pytest.mark.full
def test_the_gradient_of_a_number_has_every_id() -> None:
    weights = jnp.array([1.0, 10.0, 100.0])
    assert xlamini.grad(lambda x: (ops.segment_sum(x, IDS, 3) * weights).sum())(2.0) == 103
    assert xlamini.grad(lambda x: (ops.segment_sum(x, IDS, 3, bucket_size=2) * weights).sum())(2.0) == 103
