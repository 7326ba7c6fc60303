"""The largest eigenvalues by products with a matrix alone, beside NumPy's eigh."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse import BCOO
from xlamini.experimental.sparse.linalg import lobpcg_standard

RNG = np.random.default_rng(0)
START = RNG.standard_normal((30, 3)).astype(np.float32)


def spectrum(values: Any) -> Any:
    """A symmetric matrix with these eigenvalues."""
    turn, _ = np.linalg.qr(RNG.standard_normal((30, 30)))
    return (turn * values @ turn.T).astype(np.float32)


MATRICES = {
    "apart": spectrum(np.linspace(0, 10, 30) ** 2),
    "indefinite": spectrum(np.linspace(-20, 5, 30)),
    "repeated": spectrum(np.r_[np.zeros(26), 1, 2, 2, 2]),
    "of rank one": spectrum(np.r_[np.zeros(29), 7]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_are_those_of_eigh(name: str) -> None:
    matrix = MATRICES[name]
    values, vectors, steps = xlamini.jit(lambda a, x: lobpcg_standard(a, x, m=60))(matrix, START)
    scale = abs(np.linalg.eigvalsh(matrix)).max()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:3], atol=2e-5 * scale)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=3e-4 * scale)
    assert steps <= 60


@pytest.mark.full
def test_a_function_and_a_sparse_matrix_stand_for_a_matrix() -> None:
    diagonal = jnp.arange(30.0)
    sparse = BCOO.fromdense(jnp.diag(diagonal))
    for multiply in (lambda x: diagonal[:, None] * x, lambda x: sparse @ x):
        values, _, steps = lobpcg_standard(multiply, START, m=100)
        np.testing.assert_allclose(values, [29, 28, 27], rtol=1e-4)
        assert 3 < steps < 100


@pytest.mark.full
def test_it_stops_at_the_tolerance_and_after_m_steps() -> None:
    rough = lobpcg_standard(MATRICES["apart"], START, m=60, tol=1e-4)[2]
    exact = lobpcg_standard(MATRICES["apart"], START, m=60, tol=1e-7)[2]
    assert rough < exact
    assert lobpcg_standard(MATRICES["apart"], START, m=2)[2] == 2


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"0 < 5 \* k < n, got \(30, 6\)"):
        lobpcg_standard(MATRICES["apart"], np.ones((30, 6), np.float32))
    with pytest.raises(ShapeError, match=r"A must be a square matrix .* got float32\[3, 30\]"):
        lobpcg_standard(MATRICES["apart"][:3], START)
