"""Numbers that leave a differentiated function: an error where they would lose a derivative, free where they would not.

JAX raises ConcretizationTypeError or TracerArrayConversionError for the same programs, but for `item`, which it lets
lose the derivative.
"""
from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import custom_jvp, custom_vjp, grad, jit, jvp, lax, linearize, vjp, vmap
from xlamini.errors import ConcretizationTypeError, TracerArrayConversionError

LOSSY: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "float": (float, ConcretizationTypeError),
    "complex": (lambda x: complex(x).real, ConcretizationTypeError),
    "item": (lambda x: x.item(), ConcretizationTypeError),
    "item at": (lambda x: x.reshape(1).item(0), ConcretizationTypeError),
    "tolist": (lambda x: x.tolist(), ConcretizationTypeError),
    "math": (math.sin, ConcretizationTypeError),
    "asarray": (np.asarray, TracerArrayConversionError),
    "array of": (lambda x: np.array([x, x]).sum(), TracerArrayConversionError),
    "filled": (lambda x: np.full(3, x).sum(), TracerArrayConversionError),
    "assigned": (lambda x: np.zeros(2).__setitem__(0, x) or x, ValueError),
    "float32": (lambda x: np.float32(x), TracerArrayConversionError),
    "ufunc": (lambda x: np.sin(x), TracerArrayConversionError),
    "save": (lambda x: np.save(io.BytesIO(), x) or x, TracerArrayConversionError),
    "from_dlpack": (np.from_dlpack, TracerArrayConversionError),
    "arange": (lambda x: jnp.arange(x).sum(), ConcretizationTypeError),
    "pickle": (lambda x: pickle.dumps(x) and x, TypeError),
}

DERIVATIVES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: grad(f)(1.5),
    "value_and_grad": lambda f: xlamini.value_and_grad(f)(1.5),
    "jvp": lambda f: jvp(f, (1.5,), (1.0,)),
    "vjp": lambda f: vjp(f, 1.5),
    "linearize": lambda f: linearize(f, 1.5),
    "jacfwd": lambda f: xlamini.jacfwd(f)(1.5),
    "hessian": lambda f: xlamini.hessian(f)(1.5),
    "vmap of a closure": lambda f: grad(lambda x: vmap(lambda y: y * f(x))(jnp.ones(2)).sum())(1.5),
    "vmap, unmapped": lambda f: grad(lambda x: vmap(lambda y, z: y * f(z), (0, None))(jnp.ones(2), x).sum())(1.5),
    "jit of a closure": lambda f: grad(lambda x: jit(lambda: f(x))())(1.5),
    "inner grad": lambda f: grad(lambda x: grad(lambda y: y * f(x))(1.0))(1.5),
    "outer grad": lambda f: grad(lambda x: grad(lambda y: y * f(lax.stop_gradient(y) + x))(1.0))(1.5),
}


@pytest.mark.parametrize("way", LOSSY)
def test_a_number_that_would_lose_its_derivative(way: str) -> None:
    convert, error = LOSSY[way]
    with pytest.raises(error):
        grad(lambda x: convert(x * 2) * x)(1.5)


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("way", ["float", "asarray"])
def test_under_every_derivative(way: str, derivative: str) -> None:
    convert, error = LOSSY[way]
    with pytest.raises(error, match=r"a number has no derivative.*lax\.stop_gradient"):
        DERIVATIVES[derivative](lambda x: convert(x) * x)


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_numbers_without_a_derivative_are_free(derivative: str) -> None:
    def fun(x: Any) -> Any:
        held = lax.stop_gradient(jnp.sin(x))
        numbers = [
            float(held), held.item(), np.asarray(held) * 1.0, float(jnp.floor(x)), float((x > 0).astype("float32")),
            int(x), int((x > 0).astype(int)), [1, 2][(x > 0).astype(int)], np.asarray(x > 0).item(),
            len(f"{x:.2f} {x}"),
        ]
        return x * len(numbers) if x > 0 and not math.isnan(numbers[0]) else -x

    DERIVATIVES[derivative](fun)
    assert grad(fun)(1.5) == 10.0


def test_the_message() -> None:
    with pytest.raises(ConcretizationTypeError) as caught:
        grad(lambda speed: float(speed * 2) * speed)(1.5)
    text = str(caught.value)
    assert "float32[]" in text and "grad differentiates <lambda>" in text and "'speed'" in text
    assert "test_activity.py:" in text and len(text) < 450


def test_which_arguments_are_differentiated() -> None:
    fun = lambda x, n, y: x * float(y) * int(n)
    assert grad(fun)(2.0, 3, 4.0) == 12.0
    assert grad(fun, argnums=(0, 1), allow_int=True)(2.0, 3, 4.0)[0] == 12.0
    with pytest.raises(ConcretizationTypeError, match="argument 'y'"):
        grad(fun, argnums=(0, 2))(2.0, 3, 4.0)


def test_through_a_call() -> None:
    parts = jit(lambda x: (x * x, lax.stop_gradient(x * x), jnp.floor(x)))
    assert grad(lambda x: x * float(parts(x)[1]) * float(parts(x)[2]))(2.5) == 12.5
    with pytest.raises(ConcretizationTypeError):
        grad(lambda x: x * float(parts(x)[0]))(2.5)
    count = lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, 0.0)
    assert grad(lambda x: x * float(count(lax.stop_gradient(x))))(2.0) == 6.0
    with pytest.raises(ConcretizationTypeError):
        grad(lambda x: x * float(count(x)))(2.0)


def test_device_get_leaves_traced_values_as_they_are() -> None:
    square = lambda x: (xlamini.device_get({"x": x})["x"] ** 2).sum()
    x = np.arange(3.0, dtype=np.float32)
    for wrap in (grad(square), jit(grad(square)), grad(jit(square)), vmap(grad(square))):
        assert wrap(x).tolist() == [0.0, 2.0, 4.0]
    assert jvp(square, (x,), (x,))[1] == 10.0
    assert vmap(lambda x: xlamini.device_get(x) * 2)(x).tolist() == [0.0, 2.0, 4.0]


# --- custom rules: their derivative does not come from the numbers that the function read


@custom_vjp
def cube(x: Any) -> Any:
    return jnp.asarray(np.asarray(x) ** 3)


cube.defvjp(lambda x: (jnp.asarray(np.asarray(x) ** 3), x), lambda x, ct: (3 * x * x * ct,))


@custom_jvp
def square(x: Any) -> Any:
    return jnp.float32(float(x) ** 2)


@square.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return square(primals[0]), 2 * primals[0] * tangents[0]


@custom_jvp
def frozen_slope(x: Any) -> Any:
    return x * x


@frozen_slope.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return frozen_slope(primals[0]), 2 * float(primals[0]) * tangents[0]


def test_functions_with_rules_may_read_numbers() -> None:
    assert grad(cube)(2.0) == 12.0 and grad(lambda x: cube(x * x))(2.0) == 192.0
    assert grad(square)(3.0) == 6.0 and grad(grad(square))(3.0) == 2.0
    assert grad(frozen_slope)(3.0) == 6.0


def test_rules_that_are_differentiated_may_not() -> None:
    for fun in (cube, frozen_slope):
        with pytest.raises((ConcretizationTypeError, TracerArrayConversionError)):
            grad(grad(fun))(2.0)


@pytest.mark.full
def test_shapes_and_choices_by_values_are_free() -> None:
    x = np.array([0.0, 2.0, 0.0, 3.0], np.float32)
    assert grad(lambda x: (x[x > 0] ** 2).sum())(x).tolist() == [0, 4, 0, 6]
    assert grad(lambda x: (x[jnp.nonzero(x)] ** 2).sum())(x).tolist() == [0, 4, 0, 6]
    assert grad(lambda x: (jnp.trim_zeros(x) ** 2).sum())(x).tolist() == [0, 4, 0, 6]
    assert grad(lambda x: (jnp.unique(x) ** 2).sum())(x).tolist() == [0, 4, 0, 6]
    assert grad(lambda x: jnp.roots(x[1:]).real.sum())(x).shape == (4,)
    assert grad(lambda x: lax.fori_loop(0, (x > 0).astype(int) + 2, lambda i, c: c * x, x))(2.0) == 32.0


def test_text_is_free() -> None:
    seen: list[str] = []

    def fun(x: Any) -> Any:
        seen.append(f"{x * 2} {x * 2:.1f} {x!r}")
        return x * x

    assert grad(fun)(1.5) == 3.0
    assert "3.0" in seen[0] and "value=1.5" in seen[0]
