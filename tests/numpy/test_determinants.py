"""Determinants whose terms cancel, overflow or underflow, beside exact ones of fractions."""
from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import xlamini as xl
import xlamini.numpy as jnp

CLOSE = np.full((3, 3), 41927.867) + 4.348 * np.eye(3)


def diagonal(*values: float) -> np.ndarray:
    return np.diag(np.array(values))


MATRICES = {
    "close": CLOSE,
    "close, two rows": CLOSE[:2, :2],
    "close, four rows": np.block([[CLOSE, np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]),
    "large": np.array([[1e20, 1e20], [1e20, 1.0001e20]]),
    "large to small": diagonal(1e25, 1e25, 1e-25),
    "small to large": diagonal(1e-25, 1e25, 1e25),
    "four rows": diagonal(1e25, 1e25, 1e-25, 1e-25),
    "small first": diagonal(1e-20, 1e-20, 1e12),
    "counter diagonal": np.array([[1e30, 1e-30], [1e30, 0.0]]),
    "whole numbers": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "rank one": np.ones((3, 3)),
    "zero": np.zeros((3, 3)),
}


def exact(matrix: np.ndarray) -> Fraction:
    """By expansion of the first row."""
    if matrix.shape[0] == 0:
        return Fraction(1)
    minors = [np.delete(matrix[1:], i, 1) for i in range(len(matrix))]
    return sum(((-1) ** i * Fraction(float(matrix[0, i])) * exact(m) for i, m in enumerate(minors)), Fraction(0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", MATRICES)
def test_det_of_matrices_whose_terms_cancel_or_leave_the_range(name: str, dtype: str) -> None:
    with xl.enable_x64(dtype in ("float64", "complex128")):
        wide = dtype in ("float64", "complex128")
        matrix = MATRICES[name]
        if wide:  # as far apart as this dtype allows
            matrix = np.sign(matrix) * np.abs(matrix) ** 5
        x = matrix.astype("float64" if wide else "float32")
        factor = 1j if "complex" in dtype else 1
        wanted = factor ** len(x) * complex(exact(x))
        tolerance = 8 * len(x) ** 2 * np.finfo(x.dtype).eps * (1e5 if "four" in name and "close" in name else 1)
        for det in (jnp.linalg.det, xl.jit(jnp.linalg.det), lambda a: xl.vmap(jnp.linalg.det)(a[None])[0]):
            found = det(jnp.asarray(x * factor, dtype))
            np.testing.assert_allclose(complex(found), wanted, rtol=tolerance)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_det_at_singular_matrices_are_minors(size: int, dtype: str) -> None:
    """Also those of second order."""
    with xl.enable_x64(dtype == "float64"):
        x = jnp.arange(size * size, dtype=dtype).reshape(size, size) if size == 3 else jnp.ones((2, 2), dtype)
        minors: Any = [[np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(size)] for i in range(size)]
        signs = (-1.0) ** np.add.outer(np.arange(size), np.arange(size))
        np.testing.assert_allclose(xl.jit(xl.grad(jnp.linalg.det))(x), minors * signs, atol=1e-5)
        second = xl.hessian(jnp.linalg.det)(x)
        np.testing.assert_allclose(second[0, 0][1:, 1:], xl.grad(jnp.linalg.det)(x[1:, 1:]), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_det_of_halves_does_not_cancel(dtype: str) -> None:
    assert float(jnp.linalg.det(jnp.array([[256, 256], [256, 258]], dtype))) == 512


def test_an_infinite_entry() -> None:
    with xl.enable_x64():
        for dtype in ("float32", "float64"):
            assert float(jnp.linalg.det(jnp.array([[np.inf, 0], [0, 1]], dtype))) == np.inf
