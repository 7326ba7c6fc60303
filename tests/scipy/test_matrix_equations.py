"""Derivatives of Sylvester's equation and of square roots of matrices, beside central differences; grids in order."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.ndimage

import xlamini as xl
import xlamini.numpy as jnp
from xlamini.scipy import linalg, ndimage
from xlamini.scipy.interpolate import RegularGridInterpolator

RANDOM = np.random.default_rng(0)
A, B = (RANDOM.normal(size=(n, n)) + 5 * np.eye(n) for n in (3, 2))
C = RANDOM.normal(size=(3, 2))
CHANGES = [RANDOM.normal(size=x.shape) for x in (A, B, C)]


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with xl.enable_x64():
        yield


def check(function: Callable[..., Any], *operands: Any) -> None:
    """Forward and reverse mode of a sum of all parts, compiled, and the second derivative."""
    changes = [jnp.asarray(d[: x.shape[-2], : x.shape[-1]], x.dtype) for d, x in zip(CHANGES, operands, strict=False)]

    def along(t: Any) -> Any:
        out = function(*(x + t * d for x, d in zip(operands, changes, strict=True)))
        return (jnp.arange(out.size).reshape(out.shape) * (jnp.real(out) + 2 * jnp.imag(out))).sum()

    wanted = (along(1e-5) - along(-1e-5)) / 2e-5
    np.testing.assert_allclose(xl.jvp(along, (0.0,), (1.0,))[1], wanted, rtol=1e-6)
    np.testing.assert_allclose(xl.jit(xl.grad(along))(0.0), wanted, rtol=1e-6)
    np.testing.assert_allclose(xl.vmap(xl.grad(along))(jnp.zeros(2))[1], wanted, rtol=1e-6)
    second = (xl.grad(along)(1e-4) - xl.grad(along)(-1e-4)) / 2e-4
    np.testing.assert_allclose(xl.grad(xl.grad(along))(0.0), second, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_sylvester(method: str, dtype: str) -> None:
    turned = 1 if dtype == "float64" else np.exp(0.4j)
    operands = [jnp.asarray(x * turned, dtype) for x in (A, B, C)]
    check(lambda a, b, c: linalg.solve_sylvester(a, b, c, method=method), *operands)


@pytest.mark.parametrize("matrix", [A, np.eye(3) * 4, A + 0.5j * np.eye(3)])
def test_sqrtm(matrix: np.ndarray) -> None:
    check(linalg.sqrtm, jnp.asarray(matrix))


@pytest.mark.parametrize("points", [[0.0, 2, 1], [0.0, 1, 1], [2.0, 1, 1], [0.0, np.nan, 1]])
def test_a_grid_must_be_in_order(points: list[float]) -> None:
    with pytest.raises(ValueError, match="ascend or descend"):
        RegularGridInterpolator((jnp.array(points),), jnp.arange(3.0))
    with pytest.raises(ValueError, match="ascend"):
        scipy.interpolate.RegularGridInterpolator((np.array(points),), np.arange(3.0))


def test_a_traced_grid_is_not_looked_at() -> None:
    f = xl.jit(lambda points: RegularGridInterpolator((points,), jnp.arange(3.0))(jnp.array([[0.5]])))
    assert float(f(jnp.array([0.0, 1.0, 2.0]))[0]) == 0.5


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", ["grid-constant", "grid-wrap", "nearest", "mirror", "reflect"])
def test_modes_are_scipys(mode: str, order: int) -> None:
    x, places = np.arange(12.0).reshape(3, 4), RANDOM.uniform(-6, 8, (2, 50))
    wanted = scipy.ndimage.map_coordinates(x, places, order=order, mode=mode, cval=-3.0)
    np.testing.assert_allclose(ndimage.map_coordinates(x, list(places), order, mode, -3.0), wanted, atol=1e-12)
