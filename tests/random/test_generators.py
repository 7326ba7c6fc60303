"""The generators beside threefry: their keys, the flag that chooses one, and what vmap draws."""
from __future__ import annotations

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import random


@pytest.fixture
def key():
    return random.key(0)


def words(keys):
    return np.asarray(random.key_data(keys))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_generators_have_keys_of_four_words(impl):
    key = random.key(5, impl=impl)
    assert (words(key).tolist(), random.key_impl(key)) == ([0, 5, 0, 5], impl)
    assert random.PRNGKey(5, impl=impl).tolist() == [0, 5, 0, 5]
    again = random.wrap_key_data(random.key_data(key), impl=impl)
    assert again.dtype == key.dtype != random.key(5).dtype
    assert bool(again == key)
    assert repr(xlamini.jit(random.split)(key).dtype) == {"rbg": "key<rbg>", "unsafe_rbg": "key<urbg>"}[impl]
    copies = xlamini.lax.scan(lambda k, i: (random.fold_in(k, i), random.bits(k)), key, jnp.arange(3))[1]
    assert len(set(copies.tolist())) == 3


def test_a_flag_chooses_the_generator(key):
    with xlamini.default_prng_impl("rbg"):
        assert random.key_impl(random.key(1)) == "rbg"
        assert random.split(random.PRNGKey(1)).shape == (2, 4)
        assert random.key_impl(key) == "threefry2x32"


@pytest.mark.full
def test_under_vmap_other_generators_draw_from_the_first_key():
    # What JAX gives for bits of keys 0 and 1 of split(key(5, impl="rbg"), 2).
    keys = random.split(random.key(5, impl="rbg"), 2)
    found = xlamini.vmap(lambda k: random.bits(k, (3,)))(keys)
    expected = [[2023636972, 2918828640, 4012437316], [930688508, 2174621975, 4143501827]]
    np.testing.assert_array_equal(found, expected)
    folded = xlamini.vmap(random.fold_in, (0, None))(keys, 2)
    np.testing.assert_array_equal(words(folded)[0], [2682945473, 3744231012] * 2)
