"""Quantiles beside infinities and at the ends of a dtype, in order of their shares, beside NumPy's."""
from __future__ import annotations

import numpy as np
import pytest

import xlamini as xl
import xlamini.numpy as jnp

INF = np.inf
SHARES = np.linspace(0, 1, 201).astype(np.float32)


@pytest.mark.parametrize(
    ("data", "share", "wanted"),
    [
        ([1, INF], 1.0, INF),
        ([1, INF], 0.0, 1),
        ([1, INF], 0.5, INF),
        ([-INF, 1], 0.0, -INF),
        ([-INF, 1], 1.0, 1),
        ([-INF, -1], 0.5, -INF),
        ([INF], 0.5, INF),
        ([INF, INF], 0.5, INF),
        ([-INF, INF], 0.5, np.nan),
        ([1, INF], np.nan, np.nan),
        ([3e38, 3e38], 0.3, 3e38),
        ([-3e38, 3e38], 0.5, 0),
        ([-3e38, 3e38], 0.75, 1.5e38),
    ],
)
def test_between_two_elements(data: list[float], share: float, wanted: float) -> None:
    x = np.array(data, np.float32)
    ways = [
        jnp.quantile(x, share),
        jnp.percentile(x, 100 * share),
        jnp.nanquantile(np.append(x, np.float32(np.nan)), share),
        xl.jit(lambda x: jnp.quantile(x, jnp.float32(share)))(x),
        jnp.quantile(np.stack([x, x[::-1]]), share, axis=1)[1],
        xl.vmap(lambda x: jnp.quantile(x, share))(x[None])[0],
    ]
    for found in ways:
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_quantiles_rise_with_the_share(dtype: str) -> None:
    rows = np.stack([np.full(7, 0.1234567), np.random.default_rng(0).normal(size=7), [-1, -1, 0, 1, 1, 2, 2]])
    found = np.asarray(jnp.quantile(jnp.asarray(rows, dtype), SHARES, axis=1), np.float32)
    assert (np.diff(found, axis=0) >= 0).all()
    assert len(set(found[:, 0])) == 1


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("method", ["linear", "midpoint", "nearest", "lower", "higher", "inverted_cdf"])
def test_methods_are_numpys(method: str, share: float) -> None:
    for n in range(1, 8):
        x = np.arange(1.0, n + 1, dtype=np.float32) ** 2
        np.testing.assert_allclose(jnp.quantile(x, share, method=method), np.quantile(x, share, method=method), 1e-6)


def test_a_share_in_half_precision_finds_its_place_in_many() -> None:
    x = jnp.arange(10001, dtype="float32")
    assert float(jnp.quantile(x, jnp.float16(0.5))) == 5000


@pytest.mark.parametrize("data", [[3e38], [3e38, 3e38], [1.0, INF, 2.0], [-3e38, 3e38], [INF, INF]])
def test_medians_of_large_numbers(data: list[float]) -> None:
    wanted = np.median(np.array(data)).astype(np.float32)
    x = np.array(data, np.float32)
    for found in (jnp.median(x), jnp.nanmedian(np.append(x, np.float32(np.nan)))):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.full
def test_derivatives_beside_an_infinity() -> None:
    x = jnp.array([3.0, 1, 2, INF])
    np.testing.assert_allclose(xl.grad(lambda x: jnp.quantile(x, 0.3))(x), [0, 0.1, 0.9, 0], atol=1e-6)
    for function in (jnp.median, jnp.nanmedian):
        np.testing.assert_array_equal(xl.grad(function)(x), [0.5, 0, 0.5, 0])
