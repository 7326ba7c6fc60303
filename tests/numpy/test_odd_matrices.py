"""Empty matrices, whole numbers and narrow floats where a function of matrices or spectra rarely meets them."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import xlamini
import xlamini.numpy as jnp
from xlamini.scipy import fft

HALF = np.array([[3, 1, 2, 5], [1, 0, 4, 2]])


def test_the_rank_of_empty_matrices_with_a_tolerance() -> None:
    assert jnp.linalg.matrix_rank(jnp.zeros((0, 3)), 0.5) == 0
    np.testing.assert_array_equal(jnp.linalg.matrix_rank(jnp.zeros((2, 3, 0)), 0.5), [0, 0])
    assert jnp.linalg.matrix_rank(jnp.diag(jnp.array([3.0, 2.0, 1.0])), 0.5) == 2


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "bfloat16"])
def test_hfft_of_real_numbers(dtype: str) -> None:
    found = jnp.fft.hfft(jnp.asarray(HALF, dtype))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.fft.hfft(HALF), 1e-6, 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_cosine_transforms_of_narrow_floats(name: str, dtype: str) -> None:
    found = getattr(fft, name)(jnp.asarray(HALF, dtype))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, getattr(scipy.fft, name)(HALF), 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_eigenvalues_alone_are_asked_of_lapack(dtype: str) -> None:
    matrix = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 5]], dtype)
    program = xlamini.jit(jnp.linalg.eigvalsh)
    assert f"mode = {ord('N')} : ui8" in program.lower(matrix).as_text()
    np.testing.assert_allclose(program(matrix), np.linalg.eigvalsh(matrix), 1e-5)
    both = xlamini.jit(xlamini.value_and_grad(lambda a: jnp.linalg.eigvalsh(a)[0].real))(matrix)
    np.testing.assert_allclose(both[0], np.linalg.eigvalsh(matrix)[0], 1e-5)
    np.testing.assert_allclose(np.trace(both[1]), 1, 1e-5)
