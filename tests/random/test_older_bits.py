"""Random bits with the flag threefry_partitionable off, which older programs and their recorded values rely on."""
from __future__ import annotations

import numpy as np
import pytest

import xlamini
from xlamini import random

BITS_OF_OLDER_PROGRAMS = {
    ("uint8", (3,)): [143, 4, 62],
    ("uint16", (3,)): [45869, 983, 33780],
    ("uint32", (3,)): [2465931498, 430176367, 255383827],
    ("uint64", (3,)): [13462782411356743825, 16033796027023006562, 16091099645456652183],
    ("uint8", (2, 3)): [[45, 179, 215], [3, 244, 131]],
    ("uint32", (2, 3)): [[3134548294, 3733159049, 3746501087], [894150801, 801545058, 2363201431]],
}


@pytest.mark.full
def test_bits_of_older_programs() -> None:
    """Values of JAX 0.10.2 with the flag off, for key 42."""
    with xlamini.threefry_partitionable(False), xlamini.enable_x64(True):
        key = random.key(42)
        for (dtype, shape), expected in BITS_OF_OLDER_PROGRAMS.items():
            np.testing.assert_array_equal(random.bits(key, shape, dtype), expected)
        keys = random.split(key, 3)
        expected = [[3134548294, 3733159049], [3746501087, 894150801], [801545058, 2363201431]]
        np.testing.assert_array_equal(random.key_data(keys), expected)
        np.testing.assert_array_equal(random.permutation(key, 7), [6, 0, 2, 5, 4, 3, 1])
        of_rbg = random.key_data(random.split(random.key(3, impl="rbg"), 3))
        np.testing.assert_array_equal(of_rbg[0], [877192987, 1614509672] * 2)
        drawn = xlamini.vmap(lambda k: random.bits(k, (3,)))(keys)
        np.testing.assert_array_equal(drawn, [random.bits(k, (3,)) for k in keys])
        assert random.bits(key, (0,)).shape == (0,)
    assert (random.bits(random.key(42), (3,)) != np.array(BITS_OF_OLDER_PROGRAMS["uint32", (3,)])).any()
