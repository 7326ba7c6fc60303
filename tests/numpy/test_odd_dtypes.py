"""Booleans, unsigned integers, scalars and NaN where a function rarely meets them: the values are NumPy's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import nn, scipy

FLAGS = np.array([True, False, True])
ODD = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], np.float32)
COMPLEX = np.array([complex(np.nan, 0), complex(1, np.nan), 1 + 1j], np.complex64)
SMALL = np.array([1, 180, 1], np.uint8)

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "isreal of NaN": (lambda np, x: np.isreal(x), (ODD,)),
    "iscomplex of NaN": (lambda np, x: np.iscomplex(x), (ODD,)),
    "isreal of complex NaN": (lambda np, x: np.isreal(x), (COMPLEX,)),
    "iscomplex of complex NaN": (lambda np, x: np.iscomplex(x), (COMPLEX,)),
    "gradient beside infinity": (lambda np, x: np.gradient(x), (ODD,)),
    "gradient by a distance": (lambda np, x: np.gradient(x, 2.0, edge_order=2), (ODD[3:],)),
    "gradient of rows": (lambda np, x: np.gradient(x.reshape(2, 3), axis=1), (ODD,)),
    "left shift of booleans": (lambda np, x: np.left_shift(x, x), (FLAGS,)),
    "right shift of booleans": (lambda np, x: np.right_shift(x, 1), (FLAGS,)),
    "bits of booleans": (lambda np, x: np.bitwise_count(x), (FLAGS,)),
    "signs of booleans": (lambda np, x: np.signbit(x), (FLAGS,)),
    "booleans at least True": (lambda np, x: np.clip(x, np.asarray(True), None), (FLAGS,)),
    "powers that are booleans": (lambda np, x, n: np.ldexp(x, n), (ODD[3:], FLAGS)),
    "taken at booleans": (lambda np, x, at: np.take(x, at), (ODD[3:], FLAGS)),
    "select of arrays": (lambda np, c, x: np.select(c, x, 9), (np.array([FLAGS, ~FLAGS]), np.arange(6).reshape(2, 3))),
}
CONCRETE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "bincount of uint8": (lambda np, x: np.bincount(x), (SMALL,)),
    "bincount of uint8 with weights": (lambda np, x: np.bincount(x, np.asarray([1.0, 2.0, 3.0])), (SMALL,)),
    "bincount of booleans": (lambda np, x: np.bincount(x), (FLAGS,)),
    "bincount of nothing": (lambda np, x: np.bincount(x, minlength=2), (SMALL[:0],)),
    "argwhere of a number": (lambda np, x: np.argwhere(x), (np.float32(3.0),)),
    "argwhere of 0": (lambda np, x: np.argwhere(x), (np.float32(0.0),)),
}


def is_numpys(found: Any, call: Callable[..., Any], operands: tuple[Any, ...]) -> None:
    with np.errstate(invalid="ignore"):
        expected = call(np, *operands)
    assert found.shape == np.shape(expected)
    assert found.dtype.kind == expected.dtype.kind or expected.dtype == np.int8
    np.testing.assert_allclose(np.asarray(found), expected, 1e-6)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_numpy(name: str, jitted: bool) -> None:
    call, operands = CALLS[name]
    fun = lambda *xs: call(jnp, *xs)
    is_numpys((xlamini.jit(fun) if jitted else fun)(*map(jnp.asarray, operands)), call, operands)


@pytest.mark.parametrize("name", CONCRETE)
def test_values_of_functions_that_need_a_length_are_those_of_numpy(name: str) -> None:
    call, operands = CONCRETE[name]
    is_numpys(call(jnp, *map(jnp.asarray, operands)), call, operands)


X = np.array([1 + 2j, -3 + 4j, 0.5 - 9j, 80 + 1j], np.complex64)
Y = np.array([2 - 1j, -3.5 + 1j, 0.5 + 3j, 79 - 3j], np.complex64)


@pytest.mark.parametrize(("ours", "base"), [(jnp.logaddexp, np.e), (jnp.logaddexp2, 2.0)])
def test_logarithms_of_sums_of_complex_powers(ours: Callable[..., Any], base: float) -> None:
    rate, wide = np.log(base), np.complex128
    expected = np.log(np.exp(X.astype(wide) * rate) + np.exp(Y.astype(wide) * rate)) / rate
    np.testing.assert_allclose(ours(X, Y), expected, 1e-5)


def test_the_logarithm_of_a_sum_of_zeros_is_minus_infinity() -> None:
    assert jnp.logaddexp(jnp.complex64(-np.inf), jnp.complex64(-np.inf)).real == -np.inf


def test_the_derivative_of_the_logarithm_of_a_sum_of_complex_powers() -> None:
    found = xlamini.vmap(xlamini.grad(jnp.logaddexp, holomorphic=True))(X, Y)
    np.testing.assert_allclose(found, 1 / (1 + np.exp((Y - X).astype(np.complex128))), 1e-5)


def test_nan_to_num_replaces_nan_first() -> None:
    """As in JAX 0.10.2: an infinity given for NaN is replaced after it."""
    x = np.array([np.nan, np.inf, -np.inf, 2], np.float32)
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(jnp.nan_to_num(x, nan=-np.inf), [-largest, largest, -largest, 2])
    np.testing.assert_array_equal(jnp.nan_to_num(x, nan=np.inf, posinf=7, neginf=-np.inf), [7, 7, -np.inf, 2])


FLOATS_OF: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "division": lambda x: x / x,
    "mean": jnp.mean,
    "std": jnp.std,
    "quantile": lambda x: jnp.quantile(x, 0.5),
    "norm": jnp.linalg.norm,
    "rfft": lambda x: jnp.fft.rfft(x).real,
    "gammaln": scipy.special.gammaln,
    "softmax": nn.softmax,
}


@pytest.mark.parametrize("name", FLOATS_OF)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int32", "int64", "uint64"])
def test_functions_of_narrow_integers_are_float32_under_x64_too(name: str, dtype: str) -> None:
    with xlamini.enable_x64(True):
        found = FLOATS_OF[name](jnp.ones(3, dtype))
    assert found.dtype == ("float64" if dtype.endswith("64") else "float32")
    np.testing.assert_allclose(found, FLOATS_OF[name](jnp.ones(3)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("function", [jnp.rint, jnp.angle])
def test_functions_that_give_the_default_float_for_integers(function: Any) -> None:
    with xlamini.enable_x64(True):
        found = function(jnp.array([3, -1], "int32"))
    assert found.dtype == "float64"
    np.testing.assert_allclose(found, function(np.array([3.0, -1.0])))


@pytest.mark.parametrize(
    ("program", "dtype", "expected"),
    [
        (lambda: jnp.fft.fftfreq(4, 0.1, dtype=complex), "complex64", [0, 2.5, -5, -2.5]),
        (lambda: jnp.fft.fftfreq(4, 0.1, dtype=int), "int32", [0, 2, -5, -2]),
        (lambda: jnp.fft.fftfreq(4, 0.1, dtype="float16"), "float16", np.float16([0, 2.5, -5, -2.5])),
        (lambda: jnp.fft.rfftfreq(4, 0.1, dtype=complex), "complex64", [0, 2.5, 5]),
        (lambda: jnp.fft.rfftfreq(4, 0.1, dtype=int), "float32", [0, 2.5, 5]),
    ],
)
def test_frequencies_have_the_dtype_that_is_asked_for(program: Any, dtype: str, expected: Any) -> None:
    found = program()
    assert (found.dtype, found.weak_type) == (dtype, False)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_iterable_is_numpys() -> None:
    shaped = xlamini.ShapeDtypeStruct((2,), "int8")
    for value in (jnp.ones(2), jnp.float32(1), np.ones(2), np.float32(1), np.float32, shaped, 3):
        assert jnp.iterable(value) is np.iterable(value)
