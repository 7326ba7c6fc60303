"""Functions of lax given arguments that are rare: single sizes, odd dtypes, complex numbers, values out of range."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.lax import GatherDimensionNumbers, ScatterDimensionNumbers

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
Z = np.array([1j, 2, 0, 2 + 1j], np.complex64)
N = np.array([3, -1, 2, 5])
STATE = np.arange(4, dtype=np.uint32)

VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "a size as shape of full": (lambda: lax.full(2, 7), [7, 7]),
    "a size as shape of iota": (lambda: lax.broadcasted_iota("int32", 3, 0), [0, 1, 2]),
    "a size as shape of reshape": (lambda: lax.reshape(X, 6), X.reshape(6)),
    "a size as shape of bits": (lambda: lax.rng_bit_generator(STATE, 3)[1], lax.rng_bit_generator(STATE, (3,))[1]),
    "sizes in an array": (lambda: lax.reshape(X, jnp.array([3, 2])), X.reshape(3, 2)),
    "dimensions as numbers": (lambda: lax.dot_general(X, X, ((1, 1), ((), ()))), X @ X.T),
    "batch dimensions as numbers": (lambda: lax.dot_general(X, X, ((1, 1), (0, 0))), (X * X).sum(1)),
    "select_n of one case": (lambda: lax.select_n(True, 2.5), 2.5),
    "select_n by uint8": (lambda: lax.select_n(np.array([2, 0], np.uint8), N[:2], N[1:3], N[2:]), [2, -1]),
    "select_n by int8": (lambda: lax.select_n(np.array([1, 0], np.int8), N[:2], N[1:3]), [-1, -1]),
    "clamp of booleans": (lambda: lax.clamp(False, np.array([True, False]), True), [True, False]),
    "clamp of booleans from above": (lambda: lax.clamp(True, np.array([True, False]), False), [False, False]),
    "clamp of complex numbers": (lambda: lax.clamp(np.complex64(1), Z, np.complex64(2)), [1, 2, 1, 2]),
    "cummax of complex numbers": (lambda: lax.cummax(Z), [1j, 2, 2, 2 + 1j]),
    "cummin of complex numbers": (lambda: lax.cummin(Z, reverse=True), [0, 0, 0, 2 + 1j]),
    "maximum of integers from -inf": (lambda: lax.reduce(N, -np.inf, lax.max, (0,)), 5),
    "minimum of booleans from inf": (lambda: lax.reduce(N > 0, np.inf, lax.min, (0,)), False),
    "windows of integers from -inf": (
        lambda: lax.reduce_window(N, -np.inf, lax.max, (2,), (1,), "SAME"), [3, 2, 5, 5],
    ),
    "windows of uint8 from inf": (
        lambda: lax.reduce_window(N.astype(np.uint8), np.inf, lax.min, (2,), (2,), "VALID"), [3, 2],
    ),
    "full of more than int8 holds": (lambda: lax.full((2,), 300.0, "int8"), [127, 127]),
    "full of less than uint8 holds": (lambda: jnp.full(2, -1.5, "uint8"), [0, 0]),
    "full of an infinity": (lambda: lax.full((2,), -np.inf, "int32"), [-(2**31)] * 2),
    "full of NaN": (lambda: jnp.full(2, np.nan, "int32"), [0, 0]),
    "full of int4": (lambda: jnp.full(2, 1e20, "int4").astype(int), [7, 7]),
    "full that fits": (lambda: lax.full((2,), -7.9, "int8"), [-7, -7]),
    "convolution of booleans": (
        lambda: lax.conv_general_dilated(
            np.ones((1, 2, 5), bool), np.ones((1, 2, 2), bool), (2,), [(1, 1)], preferred_element_type="float32"
        ),
        [[[2, 4, 4]]],
    ),
    "eigenvalues of integers": (lambda: lax.linalg.eigh(np.diag([2, 1]))[1], [1, 2]),
    "maximum of booleans along an axis": (lambda: mapped(lax.pmax, N > 2), [True] * 4),
    "minimum of booleans along an axis": (lambda: mapped(lax.pmin, N > 2), [False] * 4),
}


def mapped(collective: Any, x: Any) -> Any:
    return xlamini.vmap(lambda v: collective(v, "i"), axis_name="i")(x)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    program, expected = VALUES[name]
    np.testing.assert_allclose(program(), expected)
    np.testing.assert_allclose(xlamini.jit(program)(), expected)


def test_the_tangent_of_a_complex_running_maximum_is_that_of_the_winner() -> None:
    tangent = np.array([1, 2, 3, 4], np.complex64)
    _, found = xlamini.jvp(lax.cummax, (Z,), (tangent,))
    np.testing.assert_allclose(found, [1, 2, 2, 4])


def test_the_gradient_of_clamped_complex_numbers_is_that_of_those_within() -> None:
    _, pull = xlamini.vjp(lambda z: lax.clamp(np.complex64(0.5), z, np.complex64(2 + 2j)), Z)
    np.testing.assert_allclose(pull(np.ones(4, np.complex64))[0], [0, 1, 0, 1])


ERRORS: dict[str, tuple[Callable[[], Any], type, str]] = {
    "letters as a shape": (lambda: lax.reshape(X, "32"), TypeError, "reshape: 'str' .*new_sizes='32'"),
    "a float in a shape": (lambda: lax.reshape(X, (3, 2.0)), TypeError, "reshape: 'float' .*integer"),
    "a float as a size": (lambda: lax.iota("int32", 2.0), TypeError, "iota: 'float' .*size=2.0"),
    "a float as a dimension": (lambda: lax.expand_dims(X, (1.0,)), TypeError, "expand_dims: 'float'"),
    "floats as a permutation": (lambda: lax.transpose(X, (1.0, 0)), TypeError, "transpose: 'float'"),
    "a dimension squeezed twice": (lambda: lax.squeeze(X[:1, :1], (0, -2)), ValueError, "named twice"),
    "a float as the number of largest": (lambda: lax.top_k(X, 2.0), TypeError, "top_k: .*k=2.0"),
    "a float as the number of keys": (lambda: lax.sort((X, X), num_keys=1.5), TypeError, "(?s)sort: .*num_keys=1.5"),
    "no axis of argmax": (lambda: lax.argmax(X, None, int), TypeError, "argmax: .*axis=None"),
    "an axis too far in front": (lambda: lax.cumsum(X, -3), ValueError, "cumsum: axis -3"),
    "a float as a start": (lambda: lax.dynamic_slice(X, (0.0, 0), (1, 1)), TypeError, "must be integers, got float32"),
    "a boolean as a start": (lambda: lax.dynamic_slice(X, (True, 0), (1, 1)), TypeError, "must be integers, got bool"),
    "no case of select_n": (lambda: lax.select_n(True), ValueError, "select_n: there is no case"),
    "windows of gather in another order": (
        lambda: lax.gather(X, jnp.array([1]), GatherDimensionNumbers((1, 0), (), (0,)), (1, 1)),
        TypeError, "offset_dims must be in ascending order",
    ),
    "windows of scatter in another order": (
        lambda: lax.scatter(X, jnp.array([0]), X, ScatterDimensionNumbers((1, 0), (), (0,))),
        TypeError, "update_window_dims must be in ascending order",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    program, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        program()
