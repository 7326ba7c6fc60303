"""Bounds of samplers with more or fewer dimensions than the shape of the draw."""
from __future__ import annotations

import numpy as np
import pytest

from xlamini import numpy as jnp, random


def test_bounds_of_one_element_with_more_dimensions_than_the_shape() -> None:
    """As in JAX: where the shape is (), the result has the shape of `minval`."""
    key, one = random.key(0), jnp.ones(1)
    plain = random.uniform(key, ())
    for low, high, shape in ((0 * one, one, (1,)), (jnp.zeros((1, 1)), one, (1, 1)), (0.0, one, ())):
        drawn = random.uniform(key, (), minval=low, maxval=high)
        assert drawn.shape == shape and drawn.item() == plain.item()
    with pytest.raises(ValueError, match="minval has shape"):
        random.uniform(key, (), minval=jnp.zeros(2))


def test_bounds_with_fewer_dimensions_than_the_shape() -> None:
    key, edge = random.key(0), jnp.array([0.5, 1.0, 1.5])
    drawn = random.truncated_normal(key, -edge, edge, (4, 3))
    np.testing.assert_array_equal(drawn, random.truncated_normal(key, *jnp.broadcast_arrays(-edge, edge, drawn)[:2]))
    assert (abs(drawn) < edge).all()
