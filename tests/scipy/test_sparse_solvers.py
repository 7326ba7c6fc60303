"""scipy.sparse.linalg: cg, bicgstab and gmres beside NumPy's solve, under every transformation."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import enable_x64, grad, jit, jvp, numpy as jnp, vmap
from xlamini.scipy.sparse.linalg import bicgstab, cg, gmres
from xlamini.test_util import check_grads

pytestmark = pytest.mark.full  # loops take long to compile

GENERAL = {"bicgstab": bicgstab, "gmres incremental": functools.partial(gmres, solve_method="incremental")}
SOLVERS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
solvers = pytest.mark.parametrize("solver", [pytest.param(f, id=name) for name, f in SOLVERS.items()])
general = pytest.mark.parametrize("solver", [pytest.param(f, id=name) for name, f in GENERAL.items()])


def matrix(seed: int = 0, n: int = 4, dtype: Any = "float64", hermitian: bool = True) -> np.ndarray:
    """Well conditioned, and positive definite if Hermitian."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(-1, 1, (n, n))
    x = x @ x.conj().T if hermitian else x
    return (x + 3 * np.eye(n)).astype(dtype)


def vector(n: int = 4, dtype: Any = "float64") -> np.ndarray:
    return np.linspace(-1, 2, n).astype(dtype)


@solvers
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_solves_a_matrix(solver: Any, dtype: str) -> None:
    with enable_x64(True):
        A, b = matrix(dtype=dtype), vector(dtype=dtype)
        x, info = solver(jnp.asarray(A), jnp.asarray(b), tol=1e-6)
        assert info is None and x.dtype == dtype
        np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-4, atol=1e-5)


@general
def test_solves_an_unsymmetric_matrix(solver: Any) -> None:
    with enable_x64(True):
        A, b = matrix(1, 5, hermitian=False), vector(5)
        np.testing.assert_allclose(solver(jnp.asarray(A), b, tol=1e-12)[0], np.linalg.solve(A, b), rtol=1e-9)


@solvers
def test_solves_a_function_of_a_pytree(solver: Any) -> None:
    def product(v: Any) -> Any:
        return {"a": 4 * v["a"] + v["b"][0], "b": [v["a"] + 3 * v["b"][0]]}

    b = {"a": jnp.array([5.0, 9.0]), "b": [jnp.array([4.0, 5.0])]}
    x, _ = solver(product, b, tol=1e-6)
    np.testing.assert_allclose(x["a"], [1, 2], rtol=1e-4)
    np.testing.assert_allclose(x["b"][0], [1, 1], rtol=1e-4)


@solvers
def test_solves_a_function_of_a_matrix(solver: Any) -> None:
    A, b = matrix(dtype="float32"), np.ones((4, 2), "float32")
    x, _ = solver(lambda v: A @ v, jnp.asarray(b), tol=1e-6)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-4)


@solvers
def test_starts_from_x0(solver: Any) -> None:
    A, b = matrix(dtype="float32"), vector(dtype="float32")
    x = np.linalg.solve(A, b)
    np.testing.assert_allclose(solver(jnp.asarray(A), b, x, tol=1e-3, maxiter=0)[0], x)
    np.testing.assert_allclose(solver(jnp.asarray(A), b, np.ones(4, "float32"), tol=1e-6)[0], x, rtol=1e-4)


@pytest.mark.full
@solvers
def test_stops_after_maxiter(solver: Any) -> None:
    A, b = jnp.asarray(matrix(n=8, dtype="float32")), vector(8, "float32")
    short = {} if solver in (cg, bicgstab) else {"restart": 2}

    def miss(most: int) -> float:
        return float(jnp.linalg.norm(A @ solver(A, b, tol=1e-5, maxiter=most, **short)[0] - b))

    assert miss(0) == pytest.approx(float(np.linalg.norm(b))) and miss(100) < 1e-4 < miss(1)


@solvers
def test_atol_is_enough(solver: Any) -> None:
    A, b = jnp.asarray(matrix(dtype="float32")), vector(dtype="float32")
    np.testing.assert_array_equal(solver(A, b, tol=0.0, atol=100.0)[0], np.zeros(4))


@solvers
def test_zero_stays_zero(solver: Any) -> None:
    np.testing.assert_array_equal(solver(jnp.asarray(matrix(dtype="float32")), jnp.zeros(4))[0], np.zeros(4))


@pytest.mark.full
@solvers
def test_a_preconditioner_saves_turns(solver: Any) -> None:
    scales = np.array([1.0, 10.0, 100.0, 1000.0, 30.0, 3.0], "float32")
    A, b = jnp.diag(jnp.asarray(scales)), jnp.ones(6)
    once = {"maxiter": 1, "tol": 1e-6} if solver in (cg, bicgstab) else {"maxiter": 1, "restart": 1, "tol": 1e-6}
    with_one = solver(A, b, M=lambda v: v / scales, **once)[0]
    np.testing.assert_allclose(with_one, 1 / scales, rtol=1e-5)
    np.testing.assert_allclose(solver(A, b, M=jnp.diag(1 / scales), **once)[0], 1 / scales, rtol=1e-5)
    assert float(jnp.linalg.norm(A @ solver(A, b, **once)[0] - b)) > 0.1


@pytest.mark.slow
@solvers
def test_has_derivatives_of_the_solution(solver: Any) -> None:
    with enable_x64(True):
        A, b = jnp.asarray(matrix(n=3)), jnp.asarray(vector(3))

        def solve(A: Any, b: Any) -> Any:
            return solver((A + A.T) / 2, b, tol=1e-12)[0]

        check_grads(solve, (A, b), order=2, rtol=1e-5, atol=1e-5)


@general
def test_has_derivatives_in_an_unsymmetric_matrix(solver: Any) -> None:
    with enable_x64(True):
        A, b = jnp.asarray(matrix(2, 3, hermitian=False)), jnp.asarray(vector(3))
        found = grad(lambda A: solver(A, b, tol=1e-13)[0].sum())(A)
        expected = grad(lambda A: jnp.linalg.solve(A, b).sum())(A)
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.full
@solvers
def test_runs_under_vmap_and_jit(solver: Any) -> None:
    A = jnp.stack([jnp.asarray(matrix(seed, dtype="float32")) for seed in range(3)])
    b = jnp.asarray(np.arange(12.0, dtype="float32").reshape(3, 4))
    expected = np.linalg.solve(A, np.asarray(b)[..., None])[..., 0]

    def solve(A: Any, b: Any) -> Any:
        return solver(A, b, tol=1e-6)[0]

    np.testing.assert_allclose(jit(vmap(solve))(A, b), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(vmap(jit(solve), (None, 0))(A[0], b)[0], expected[0], rtol=1e-3, atol=1e-4)


@pytest.mark.full
@solvers
def test_vmap_and_grad_commute(solver: Any) -> None:
    A, b = jnp.asarray(matrix(dtype="float32")), jnp.asarray(np.arange(8.0, dtype="float32").reshape(2, 4))

    def loss(A: Any, b: Any) -> Any:
        return (solver(A, b, tol=1e-6)[0] ** 2).sum()

    of_each = vmap(grad(loss, argnums=1), (None, 0))(A, b)
    together = grad(lambda b: vmap(loss, (None, 0))(A, b).sum())(b)
    np.testing.assert_allclose(of_each, together, rtol=1e-3, atol=1e-4)


def test_forward_mode_through_a_function() -> None:
    b = jnp.array([1.0, 2.0])
    x, dx = jvp(lambda s: cg(lambda v: s * v, b)[0], (2.0,), (1.0,))
    np.testing.assert_allclose(x, b / 2)
    np.testing.assert_allclose(dx, -b / 4)


@pytest.mark.full
def test_restarts_of_gmres_agree() -> None:
    A, b = jnp.asarray(matrix(3, 12, "float32", hermitian=False)), vector(12, "float32")
    whole, parts = (gmres(A, b, restart=n, tol=1e-6, maxiter=60)[0] for n in (12, 5))
    np.testing.assert_allclose(whole, parts, rtol=1e-3, atol=1e-4)


def test_integers_become_floats() -> None:
    x, _ = cg(jnp.eye(2, dtype=int) * 2, jnp.array([2, 4]))
    assert x.dtype == xlamini.numpy.float32
    np.testing.assert_allclose(x, [1, 2])
