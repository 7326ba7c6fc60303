"""Transforms of half spectra: the transpose of RFFT, and IRFFT as it is lowered for a TPU, against matrices."""
from __future__ import annotations

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.primitives.fft import _irfft_as_ifft


def half_of(n: int) -> np.ndarray:
    parts = np.random.default_rng(n).normal(size=(2, 2, n // 2 + 1)).astype(np.float32)
    return parts[0] + 1j * parts[1]


@pytest.mark.parametrize("n", (1, 2, 3, 8, 9))
def test_the_gradient_of_rfft(n: int) -> None:
    weights = half_of(n)
    found = xlamini.grad(lambda x: (jnp.fft.rfft(x) * weights).real.sum())(jnp.ones((2, n)))
    np.testing.assert_allclose(found, (weights @ np.fft.rfft(np.eye(n)).T).real, atol=1e-5)


@pytest.mark.parametrize("n", (1, 2, 3, 8, 9))
def test_irfft_by_zeros_for_the_other_half(n: int) -> None:
    """The imaginary parts of self-conjugate coefficients count in neither."""
    np.testing.assert_allclose(_irfft_as_ifft(half_of(n), (n,)), np.fft.irfft(half_of(n), n), atol=1e-6)
