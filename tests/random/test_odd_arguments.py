"""Seeds of 64 bits, whole numbers as probabilities and booleans as signs. The numbers are JAX's."""
from __future__ import annotations

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import random

SEEDS = [(2**63, [2**31, 0]), (2**63 + 5, [2**31, 5]), (2**64 - 1, [2**32 - 1] * 2)]


@pytest.mark.parametrize(("seed", "words"), SEEDS)
def test_seeds_of_dtype_uint64(seed: int, words: list[int]) -> None:
    np.testing.assert_array_equal(random.PRNGKey(np.uint64(seed)), [0, words[1]])
    with xlamini.enable_x64():
        np.testing.assert_array_equal(random.PRNGKey(np.uint64(seed)), words)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_choice_with_whole_numbers_as_probabilities(dtype: str) -> None:
    key, p = random.key(7), jnp.array([1, 0, 3, 2, 0], dtype)
    np.testing.assert_array_equal(random.choice(key, 5, (8,), p=p), [2, 0, 3, 2, 2, 2, 2, 2])
    np.testing.assert_array_equal(random.choice(key, 5, (3,), replace=False, p=p), [0, 2, 3])


def test_signs_as_booleans_are_true() -> None:
    np.testing.assert_array_equal(random.rademacher(random.key(7), (4,), bool), [True] * 4)
