"""scipy.optimize.minimize: where it ends, beside SciPy's minimize and known minima, and under every transformation."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

from xlamini import enable_x64, jacfwd, jit, numpy as jnp, vmap
from xlamini.scipy.optimize import OptimizeResults, minimize

pytestmark = pytest.mark.full  # loops take long to compile

METHODS = ("BFGS", "l-bfgs-experimental-do-not-rely-on-this")
SCIPYS = dict(zip(METHODS, ("BFGS", "L-BFGS-B"), strict=True))
methods = pytest.mark.parametrize("method", METHODS)


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def quadratic(x: Any) -> Any:
    return (np.array([0.5, 5.0, 50.0]) * x * x).sum() - x.sum()


CASES = {
    "Rosenbrock": (rosenbrock, np.zeros(2)),
    "Rosenbrock in 5 dimensions": (rosenbrock, np.zeros(5)),
    "Himmelblau": (himmelblau, np.ones(2)),
    "quadratic": (quadratic, np.ones(3)),
}
cases = pytest.mark.parametrize("fun, x0", CASES.values(), ids=CASES)


@pytest.mark.sample(4)
@methods
@cases
def test_finds_what_scipy_finds(fun: Any, x0: np.ndarray, method: str) -> None:
    expected = scipy.optimize.minimize(fun, x0, method=SCIPYS[method])
    with enable_x64(True):
        found = minimize(fun, jnp.asarray(x0), method=method)
    assert found.success and int(found.status) in (0, 4)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-3)
    np.testing.assert_allclose(found.fun, fun(np.asarray(found.x)), atol=1e-12)
    assert float(abs(found.jac).max()) < 1e-2
    assert int(found.nit) < int(found.nfev) == int(found.njev) < 3 * expected.nfev + 30


@pytest.mark.full
@cases
def test_single_precision_is_enough(fun: Any, x0: np.ndarray) -> None:
    found = minimize(fun, jnp.asarray(x0, "float32"), method="BFGS", tol=1e-3)
    assert found.success and found.x.dtype == found.fun.dtype == found.hess_inv.dtype == jnp.float32
    assert float(abs(found.jac).max()) < 1e-3


def test_learns_the_inverse_hessian() -> None:
    with enable_x64(True):
        found = minimize(quadratic, jnp.ones(3), method="bfgs", tol=1e-10)
        np.testing.assert_allclose(found.hess_inv, np.diag([1, 0.1, 0.01]), atol=1e-6)
        assert minimize(quadratic, jnp.ones(3), method=METHODS[1]).hess_inv is None


@methods
def test_passes_arguments_on(method: str) -> None:
    args = jnp.array([1.0, 2.0]), 3.0
    found = minimize(lambda x, y, z: ((x - y * z) ** 2).sum(), jnp.zeros(2), args, method=method)
    np.testing.assert_allclose(found.x, [3, 6], rtol=1e-4)


@pytest.mark.full
@methods
def test_ends_at_its_limits(method: str) -> None:
    few = minimize(rosenbrock, jnp.zeros(2), method=method, options={"maxiter": 3})
    assert (int(few.status), int(few.nit), bool(few.success)) == (1, 3, False)
    none = minimize(rosenbrock, jnp.zeros(2), method=method, options={"maxiter": 0})
    assert (int(none.nit), int(none.nfev)) == (0, 1)
    there = minimize(rosenbrock, jnp.ones(2), method=method)
    assert (int(there.status), int(there.nit), bool(there.success)) == (0, 0, True)
    loose = minimize(himmelblau, jnp.zeros(2), method=method, options={"gtol": 50.0, "norm": 2})
    assert float(jnp.linalg.norm(loose.jac)) < 50


def test_ends_after_enough_evaluations() -> None:
    found = minimize(rosenbrock, jnp.zeros(2), method=METHODS[1], options={"maxfun": 5})
    assert int(found.status) == 2 and 5 <= int(found.nfev) < 12
    assert not found.success


@methods
def test_says_where_there_is_no_minimum(method: str) -> None:
    found = minimize(lambda x: -x.sum(), jnp.zeros(2), method=method, options={"maxiter": 20})
    assert not found.success and int(found.status) != 0


def test_keeps_away_from_what_is_not_a_number() -> None:
    found = minimize(lambda x: (x - jnp.log(x)).sum(), jnp.array([0.01, 5.0]), method="BFGS", tol=1e-3)
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-2)


@pytest.mark.full
@methods
def test_runs_under_jit_and_vmap(method: str) -> None:
    def least(x: Any) -> OptimizeResults:
        return minimize(himmelblau, x, method=method, tol=1e-3)

    starts = jnp.array([[1.0, 1.0], [-3.0, 3.0], [3.0, -3.0], [-4.0, -3.0]])
    found = jit(vmap(least))(starts)
    minima = [[3, 2], [-2.805118, 3.131312], [3.584428, -1.848126], [-3.779310, -3.283186]]
    np.testing.assert_allclose(found.x, minima, atol=1e-3)
    np.testing.assert_allclose(jit(least)(starts[1]).x, minima[1], atol=1e-3)
    np.testing.assert_allclose(vmap(jit(least))(starts).nit, found.nit)


@pytest.mark.full
@methods
def test_has_derivatives_in_forward_mode(method: str) -> None:
    with enable_x64(True):
        found = jacfwd(
            lambda a: minimize(lambda x: ((x - a**2) ** 2).sum() + x[0] ** 4, jnp.zeros(2), method=method, tol=1e-9).x
        )(1.5)
    assert float(found[1]) == pytest.approx(3, rel=1e-3)


def test_integers_become_floats() -> None:
    found = minimize(lambda x: ((x - 0.5) ** 2).sum(), jnp.array([3, 4]), method="BFGS")
    assert found.x.dtype == jnp.float32
    np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-5)
