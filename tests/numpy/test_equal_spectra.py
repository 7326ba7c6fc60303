"""Derivatives of decompositions at equal singular values and eigenvalues, of functions that the choice of vectors there
does not change: beside formulas and central differences."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini as xl
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.scipy import linalg as scipy_linalg

RANDOM = np.random.default_rng(0)
LEFT, RIGHT, WEIGHTS, CHANGE = (RANDOM.normal(size=(4, 4)) for _ in range(4))
LEFT, RIGHT = np.linalg.qr(LEFT)[0], np.linalg.qr(RIGHT)[0]
EQUAL = np.array([2.0, 2.0, 1.0, 1.0])


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with xl.enable_x64():
        yield


def rebuilt(a: Any) -> Any:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return (u * s) @ vh


def rebuilt_hermitian(a: Any) -> Any:
    w, v = jnp.linalg.eigh(a)
    return (v * w) @ v.conj().T


def rebuilt_general(a: Any) -> Any:
    w, _, v = lax.linalg.eig(a, enable_eigvec_derivs=True)
    return jnp.real(v @ jnp.diag(w) @ jnp.linalg.inv(v))


@pytest.mark.parametrize("through", [rebuilt, rebuilt_hermitian, rebuilt_general])
@pytest.mark.parametrize("values", [(1.0, 1.0, 2.0, 3.0), (1.0, 1.0, 1.0), (5.0, 0.0, 0.0)])
def test_norm_of_what_factors_make(through: Callable[[Any], Any], values: tuple[float, ...]) -> None:
    a = np.diag(values)
    gradient = xl.grad(lambda a: jnp.sqrt((through(a) ** 2).sum()))
    wanted = a / np.linalg.norm(a)
    for found in (gradient(a), xl.jit(gradient)(a), xl.vmap(gradient)(a[None])[0]):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 4), (5, 4), (4, 6)])
def test_leading_part_of_a_matrix_of_low_rank(shape: tuple[int, int]) -> None:
    def leading(a: Any) -> Any:
        u, s, vh = jnp.linalg.svd(a, full_matrices=False)
        return (((u[:, :2] * s[:2]) @ vh[:2]) ** 2).sum()

    a = np.zeros(shape)
    a[0, 0], a[1, 1] = 3, 2
    np.testing.assert_allclose(xl.grad(leading)(a), 2 * a, atol=1e-12)


def projector(a: Any) -> Any:
    u = jnp.linalg.svd(a, full_matrices=False)[0][:, :2]
    return u @ u.conj().T


def unitary_factor(a: Any) -> Any:
    u, _, vh = jnp.linalg.svd(a, full_matrices=False)
    return u @ vh


def eigenspace(a: Any) -> Any:
    v = jnp.linalg.eigh(a + a.conj().T)[1][:, 2:]
    return v @ v.conj().T


SPACES = {
    "projector": projector,
    "unitary factor": unitary_factor,
    "eigenspace": eigenspace,
    "polar, right": lambda a: scipy_linalg.polar(a, method="svd")[1],
    "polar, left": lambda a: scipy_linalg.polar(a, "left", method="svd")[1],
    "pinv": jnp.linalg.pinv,
    "lstsq": lambda a: jnp.linalg.lstsq(a, jnp.ones((4, 2)) * a[:, :1])[0],
    "nuclear norm": lambda a: jnp.linalg.norm(a, "nuc"),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SPACES)
def test_functions_of_spaces(name: str, dtype: str) -> None:
    """Values are equal only up to rounding here, as the matrix is not diagonal."""
    phase = np.exp(0.3j) if dtype == "complex128" else 1
    a = (LEFT * EQUAL) @ LEFT.T if name == "eigenspace" else (LEFT * EQUAL) @ RIGHT * phase
    a, change, weights = jnp.asarray(a, dtype), jnp.asarray(CHANGE * phase, dtype), jnp.asarray(WEIGHTS)

    def function(a: Any) -> Any:
        found = SPACES[name](a)
        return jnp.real(weights[: found.shape[0], : found.shape[1]] * found).sum() if found.ndim else found

    wanted = (function(a + 1e-5 * change) - function(a - 1e-5 * change)) / 2e-5
    np.testing.assert_allclose(xl.jvp(function, (a,), (change,))[1], wanted, rtol=1e-6, atol=1e-8)
    gradient = xl.jit(xl.grad(function))(a)
    np.testing.assert_allclose(jnp.real(gradient * change).sum(), wanted, rtol=1e-6, atol=1e-8)


def test_second_derivatives_are_finite() -> None:
    for through in (rebuilt, rebuilt_hermitian):
        hessian = xl.hessian(lambda a, through=through: (through(a) ** 2).sum())(jnp.diag(jnp.array([1.0, 1.0, 2.0])))
        assert jnp.isfinite(hessian).all()


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_gaps_neither_underflow_nor_overflow(scale: float) -> None:
    a = np.array([[3, 1, 0], [1, 2, 1], [0, 1, 1]], "float32") * np.float32(scale)
    for through in (rebuilt, rebuilt_hermitian):
        found = xl.grad(lambda a, through=through: (through(a) * jnp.eye(3, dtype="float32")).sum())(a)
        np.testing.assert_allclose(found, np.eye(3), atol=1e-5)
