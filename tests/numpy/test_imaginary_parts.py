"""Complex values that become real lose their imaginary part, and a ComplexWarning says so at the user's line."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

C = np.array([1 + 2j, 3 - 1j], np.complex64)
PLACE = np.array([True, False])

CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "astype": (lambda c: c.astype("float32"), [1, 3]),
    "astype int": (lambda c: c.astype("int32"), [1, 3]),
    "lax.convert_element_type": (lambda c: lax.convert_element_type(c, "float32"), [1, 3]),
    "asarray": (lambda c: jnp.asarray(c, dtype=float), [1, 3]),
    "asarray of NumPy's": (lambda c: jnp.asarray(C, dtype="float32"), [1, 3]),
    "float32": (lambda c: jnp.float32(c), [1, 3]),
    "sum, dtype": (lambda c: jnp.sum(c, dtype="float32"), 4),
    "sum, initial": (lambda c: jnp.sum(jnp.ones(2), initial=2 + 1j), 4),
    "sum, initial array": (lambda c: jnp.sum(jnp.ones(2), initial=c[1]), 5),
    "max, initial": (lambda c: jnp.max(jnp.ones(2), initial=4 + 1j), 4),
    "cumsum": (lambda c: jnp.cumsum(c, dtype="float32"), [1, 4]),
    "mean": (lambda c: jnp.mean(c, dtype="float32"), 2),
    "full": (lambda c: jnp.full((2,), 2 + 1j, dtype="float32"), [2, 2]),
    "full of an array": (lambda c: lax.full((2,), c[1], "float32"), [3, 3]),
    "full_like": (lambda c: jnp.full_like(jnp.ones(2), 2 + 1j), [2, 2]),
    "concatenate": (lambda c: jnp.concatenate([c[:1], jnp.ones(1)], dtype="float32"), [1, 1]),
    "pad": (lambda c: jnp.pad(jnp.ones(1), 1, constant_values=2 + 1j), [2, 1, 2]),
    "insert": (lambda c: jnp.insert(jnp.ones(1), 0, c[1]), [3, 1]),
    "put": (lambda c: jnp.put(jnp.ones(2), 0, c[1], inplace=False), [3, 1]),
    "place": (lambda c: jnp.place(jnp.ones(2), PLACE, c[1:], inplace=False), [3, 1]),
    "fill_diagonal": (lambda c: jnp.fill_diagonal(jnp.ones((1, 1)), 2 + 1j, inplace=False), [[2]]),
    "nan_to_num": (lambda c: jnp.nan_to_num(jnp.full(1, jnp.nan), nan=2 + 1j), [2]),
    "linspace": (lambda c: jnp.linspace(0, 2 + 2j, 3, dtype="float32"), [0, 1, 2]),
    "piecewise": (lambda c: jnp.piecewise(jnp.ones(2), [PLACE], [3 + 1j, 0.0]), [3, 0]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_warning_points_at_the_users_line(name: str) -> None:
    function, expected = CASES[name]
    for run in (function, xlamini.jit(function)):
        with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part") as caught:
            out = run(jnp.asarray(C))
        np.testing.assert_allclose(out, expected, rtol=1e-6)
        assert {w.filename for w in caught} == {__file__}


def test_updates_warn_of_the_cast_as_well() -> None:
    with pytest.warns(np.exceptions.ComplexWarning), pytest.warns(FutureWarning, match="float32, the dtype of x"):
        out = jnp.ones(2).at[0].set(jnp.asarray(C)[1])
    np.testing.assert_array_equal(out, [3, 1])


def test_what_loses_nothing_is_silent() -> None:
    c = jnp.asarray(C)
    np.testing.assert_array_equal((c * 0 + 1j).astype(bool), [True, True])
    np.testing.assert_array_equal(c.astype("complex64").real, [1, 3])
    np.testing.assert_array_equal(jnp.where(c, 1.0, 2.0), [1, 1])
    np.testing.assert_array_equal(jnp.abs(c).astype("float32"), np.abs(C))


def test_products_asked_for_in_a_real_dtype_are_the_real_part() -> None:
    c = jnp.asarray(C)
    for form, expected in {"i,i->i": C * C, "i,i->": (C * C).sum(), "i,j->ij": C[:, None] * C}.items():
        out = jnp.einsum(form, c, c, preferred_element_type="float32")
        np.testing.assert_allclose(out, expected.real, rtol=1e-6)
    np.testing.assert_allclose(jnp.dot(c, c, preferred_element_type="float32"), (C * C).sum().real)
    np.testing.assert_allclose(jnp.dot(c, 2j, preferred_element_type="float32"), (C * 2j).real)


@pytest.mark.full
def test_derivatives_take_real_parts_in_silence() -> None:
    """A real value that becomes complex has a complex cotangent, of which it gets the real part."""

    def energy(x: Any) -> Any:
        z = x.astype("complex64") * C + x * 1j
        return (jnp.abs(z) ** 2).sum() + (jnp.einsum("i,i->", x, z) * 1j).real + (jnp.fft.fft(x)[1]).real

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slope = xlamini.grad(energy)(jnp.array([0.5, -1.5]))
        second = xlamini.hessian(energy)(jnp.array([0.5, -1.5]))
        batched = xlamini.vmap(xlamini.grad(energy))(jnp.array([[0.5, -1.5]]))
    np.testing.assert_allclose(batched[0], slope, rtol=1e-6)
    np.testing.assert_allclose(second @ jnp.array([0.5, -1.5]) + jnp.array([1.0, -1.0]), slope, rtol=1e-5)


def test_the_warning_comes_for_each_trace() -> None:
    """An interned number, and a program of the cache, do not keep it back in another function."""
    for _ in range(2):
        with pytest.warns(np.exceptions.ComplexWarning):
            xlamini.jit(lambda x: jnp.full((3,), 1j, x.dtype) + x)(jnp.ones(3))


def test_gradient_of_the_real_part_that_a_conversion_takes() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        slope = xlamini.grad(lambda x: lax.convert_element_type(x * (2 + 3j), "float32"))(1.0)
    np.testing.assert_allclose(slope, 2.0)
