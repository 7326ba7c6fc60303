"""Of a matrix whose one triangle is read, the derivative is a function of that triangle: beside central differences."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini as xl
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.scipy import linalg

RANDOM = np.random.default_rng(1)
B, WEIGHTS = RANDOM.normal(size=(3, 2)), RANDOM.normal(size=(3, 3))


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with xl.enable_x64():
        yield


def solved(a: Any, lower: bool) -> Any:
    return linalg.cho_solve(linalg.cho_factor(a, lower=lower), jnp.asarray(B))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cholesky": linalg.cholesky,
    "cholesky, lower": lambda a: linalg.cholesky(a, lower=True),
    "cho_factor": lambda a: linalg.cho_factor(a)[0],
    "cho_solve": lambda a: solved(a, False),
    "cho_solve, lower": lambda a: solved(a, True),
    "solve": lambda a: linalg.solve(a, jnp.asarray(B), assume_a="pos"),
    "solve, lower": lambda a: linalg.solve(a, jnp.asarray(B), assume_a="pos", lower=True),
    "lax cholesky": lambda a: lax.linalg.cholesky(a, symmetrize_input=False),
    "lax eigh": lambda a: (lambda v, w: jnp.abs(v * w) ** 2)(*lax.linalg.eigh(a, lower=True, symmetrize_input=False)),
    "lax eigh, upper": lambda a: lax.linalg.eigh(a, lower=False, symmetrize_input=False)[1],
    "eigh": lambda a: jnp.linalg.eigh(a, symmetrize_input=False)[0],
    "eigvalsh": lambda a: jnp.linalg.eigvalsh(a, "U", symmetrize_input=False),
    "symmetrized": jnp.linalg.cholesky,
    "solve_triangular": lambda a: linalg.solve_triangular(a, jnp.asarray(B), lower=True),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_entry_of_the_gradient(name: str, dtype: str) -> None:
    """Of a matrix that is not symmetric."""
    parts = [np.random.default_rng(seed).normal(size=(3, 3)) for seed in (2, 3)]
    a = jnp.asarray(parts[0] + (1j * parts[1] if dtype == "complex128" else 0) + 8 * np.eye(3), dtype)

    def function(a: Any) -> Any:
        found = FUNCTIONS[name](a)
        weights = WEIGHTS[:, : found.shape[-1]] if found.ndim > 1 else WEIGHTS[0]
        return (weights * (jnp.real(found) + 2 * jnp.imag(found))).sum()

    gradient = xl.grad(function)(a)
    np.testing.assert_allclose(xl.jit(xl.grad(function))(a), gradient, atol=1e-12)
    np.testing.assert_allclose(xl.vmap(xl.grad(function))(a[None])[0], gradient, atol=1e-12)
    value = xl.jit(function)
    for unit in (1, 1j) if dtype == "complex128" else (1,):
        for i, j in np.ndindex(3, 3):
            step = np.zeros((3, 3), a.dtype)
            step[i, j] = 1e-6 * unit
            wanted = (value(a + step) - value(a - step)) / 2e-6
            np.testing.assert_allclose((gradient[i, j] * unit).real, wanted, rtol=1e-5, atol=1e-7)
