"""Order among elements of 2 and 4 bits: sorting, extrema and their places, against NumPy."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

RANGES = {"int2": (-2, 2), "uint2": (0, 4), "int4": (-8, 8), "uint4": (0, 16), "float4_e2m1fn": (-3, 4)}


def ordered(x: Any) -> tuple[Any, ...]:
    """What depends on the order of the elements."""
    place = jnp.arange(x.shape[0]) % 3
    return (
        jnp.sort(x), jnp.argsort(x), jnp.argmax(x), jnp.argmin(x), jnp.max(x), jnp.min(x), lax.cummax(x),
        *lax.top_k(x, 3), lax.sort((place, x), num_keys=2)[1], xlamini.vmap(jnp.argmax)(jnp.stack([x, x])),
    )


@pytest.mark.full
@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("size", [7, 40])
def test_order(dtype: str, size: int) -> None:
    x = np.random.default_rng(size).integers(*RANGES[dtype], size).astype(float)
    place, largest = np.arange(size) % 3, np.argsort(-x, kind="stable")[:3]
    expected = (
        np.sort(x), np.argsort(x, kind="stable"), np.argmax(x), np.argmin(x), x.max(), x.min(),
        np.maximum.accumulate(x), x[largest], largest, x[np.lexsort((x, place))], [np.argmax(x)] * 2,
    )
    narrow = x.astype(getattr(ml_dtypes, dtype))
    for found, wanted in zip(xlamini.jit(ordered)(narrow), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(found, float), np.asarray(wanted, float))
    assert jnp.sort(narrow).dtype == dtype and lax.top_k(narrow, 2)[0].dtype == dtype
    np.testing.assert_array_equal(np.asarray(jnp.unique(narrow), float), np.unique(x))


def test_largest_of_truths() -> None:
    x = np.array([False, True, False, True])
    values, places = lax.top_k(x, 3)
    assert values.tolist() == [True, True, False] and places.tolist() == [1, 3, 0]
