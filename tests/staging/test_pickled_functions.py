"""Jitted functions in pickles: by their name if they are found under it, else as what they were made of."""

import pickle

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp


@xlamini.jit
def twice(x):
    return 2 * x


def successor(x):
    return x + 1


def test_a_decorated_function_is_itself():
    assert pickle.loads(pickle.dumps(twice)) is twice


def test_a_jitted_function_is_made_again():
    for options in ({}, {"keep_unused": True}, {"inline": True}):
        again = pickle.loads(pickle.dumps(xlamini.jit(successor, **options)))
        np.testing.assert_array_equal([again(x) for x in (1.0, 2.0)], [2, 3])
        assert "add" in again.lower(jnp.ones(3)).as_text()
    again = pickle.loads(pickle.dumps({"f": xlamini.jit(jnp.sin)}))["f"]
    assert again(0.0) == 0


def test_a_function_without_a_name_is_named_in_the_error():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(xlamini.jit(lambda x: x))
