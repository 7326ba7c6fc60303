"""Functions of complex numbers beside NumPy: signs of zeros at branch cuts, infinities, small parts, large results."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp

LINE = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, np.inf, -np.inf)
POINTS = np.array([complex(x, y) for x, y in itertools.product(LINE, LINE)])
NAMES = "sin cos sinh cosh log log2 log10 log1p sqrt arcsin arccos arctan arcsinh arccosh arctanh".split()


def same(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where both are near, and their parts have one sign; any number does where a part of NumPy's is NaN."""
    parts = [(found.real, expected.real), (found.imag, expected.imag)]
    near = [np.isclose(f, e, 1e-5, 1e-6) & (np.signbit(f) == np.signbit(e)) for f, e in parts]
    return (near[0] & near[1]) | np.isnan(expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_zeros_and_infinities(name: str, dtype: str) -> None:
    with xlamini.enable_x64(True), np.errstate(all="ignore"):
        z, function = POINTS.astype(dtype), getattr(jnp, name)
        expected = getattr(np, name)(z)
        for call in (function, xlamini.jit(xlamini.vmap(function))):
            found = np.asarray(call(jnp.asarray(z)))
            assert z[~same(found, expected)].tolist() == []


SCALED = [0.3 + 1e-7j, 1e-5 + 1e-5j, 1e-10 + 1e-10j, 90j, 100j, 1e-10 + 95j, 1e-12 + 1j, 85 + 1e-9j]


@pytest.mark.parametrize("z", SCALED)
@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh"])
def test_small_and_large_parts(name: str, z: complex) -> None:
    slope, sign = {"sin": (np.cos, 1), "cos": (np.sin, -1), "sinh": (np.cosh, 1), "cosh": (np.sinh, 1)}[name]
    function, z32 = getattr(jnp, name), complex(np.complex64(z))
    with np.errstate(over="ignore"):
        expected = [np.complex64(getattr(np, name)(z32)), np.complex64(sign * slope(z32))]
    for call, right in zip((function, xlamini.grad(function, holomorphic=True)), expected, strict=True):
        found = np.complex64(xlamini.jit(call)(np.complex64(z)))
        np.testing.assert_allclose([found.real, found.imag], [right.real, right.imag], 2e-6, 1e-37)


def test_poles_of_inverse_tangents() -> None:
    np.testing.assert_allclose(jnp.arctan(np.complex64(1e-20 + 1j)), np.arctan(1e-20 + 1j), 1e-6)
    np.testing.assert_allclose(jnp.arctanh(np.complex64(1 + 1e-20j)), np.arctanh(1 + 1e-20j), 1e-6)
    np.testing.assert_allclose(jnp.log1p(np.complex64(-1 + 1e-30j)), np.log(1e-30j), 1e-6)
