"""Buffers of sparse arrays equal those that JAX makes: the order of entries, padding and layout."""
from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import xlamini
import xlamini.numpy
import xlamini.random
from tests.support.paths import GOLDEN
from xlamini.experimental import sparse

sys.path.append(str(GOLDEN))
from sparse_arrays import EXPRESSIONS, described, names

pytestmark = pytest.mark.sample(8)

RECORDS = json.loads((GOLDEN / "sparse_arrays.json").read_text())


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_as_jax(text: str) -> None:
    found, expected = described(eval(text, names(xlamini, sparse))), RECORDS[text]
    assert found.pop("repr") == expected.pop("repr")
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, err_msg=name)
