"""jet beside nested forward mode, known series, recorded values of JAX, and under every transformation."""
from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import pytest

from xlamini import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    enable_checks,
    enable_x64,
    grad,
    jacfwd,
    jit,
    lax,
    make_jaxpr,
    nn,
    numpy as jnp,
    vmap,
)
from xlamini.core import MissingRule, Primitive
from xlamini.errors import ShapeError
from xlamini.experimental.jet import jet

pytestmark = pytest.mark.sample(4)

POINT = 0.7
MATRIX, OTHER = np.array([[2.0, 0.2], [0.3, 3.0]]), np.array([[1.0, 2.0], [3.0, 5.0]])
VECTOR = np.arange(3.0)


def along(fun: Callable[..., Any], order: int, point: Any = POINT) -> Any:
    """The value and derivatives of a function of one number."""
    out, series = jet(fun, (point,), ([1.0] + [0.0] * (order - 1),))
    return np.array([out, *series])


def nested(fun: Callable[..., Any], order: int) -> Any:
    """The same by forward mode in forward mode."""
    found = [fun(jnp.float64(POINT))]
    for _ in range(order):
        fun = jacfwd(fun)
        found.append(fun(jnp.float64(POINT)))
    return np.array(found)


@custom_jvp
def ruled(x: Any) -> Any:
    return jnp.sin(x)


ruled.defjvp(lambda primals, tangents: (jnp.sin(*primals), 2 * jnp.cos(*primals) * tangents[0]))


ELEMENTWISE = {
    "sin": jnp.sin, "tanh": jnp.tanh, "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt,
    "cbrt": jnp.cbrt, "erf": lax.erf, "erf_inv": lax.erf_inv, "sigmoid": nn.sigmoid, "softplus": nn.softplus,
    "gelu": nn.gelu, "selu": nn.selu, "relu": nn.relu, "arctan": jnp.arctan, "lgamma": lax.lgamma, "exp2": jnp.exp2,
    "abs": abs, "floor": lambda x: jnp.floor(x) * x, "reciprocal": lambda x: 1 / x, "half": lambda x: x / 2,
    "quotient": lambda x: jnp.sin(x) / (1 + x * x), "power": lambda x: x**2.5, "integer power": lambda x: x**5,
    "power of itself": lambda x: x**x, "arctan2": lambda x: jnp.arctan2(x, 1 + x),
    "maximum": lambda x: jnp.maximum(x, x * x), "where": lambda x: jnp.where(x > 0, x * x, x),
    "clip": lambda x: jnp.clip(x * x, 0, 10), "constant": lambda x: 3.0 + 0 * jnp.floor(x),
}  # fmt: skip
OF_ARRAYS = {
    "dot": lambda x: jnp.dot(jnp.sin(x * VECTOR), jnp.cos(x * VECTOR)),
    "dot with a constant": lambda x: jnp.dot(jnp.sin(x * VECTOR), VECTOR),
    "convolve": lambda x: jnp.convolve(jnp.sin(x * VECTOR), jnp.cos(x * VECTOR))[2],
    "scalars among arrays": lambda x: (x * jnp.sin(x * VECTOR) / x)[1],
    "sum": lambda x: jnp.sin(x * VECTOR).sum(), "prod": lambda x: jnp.prod(1 + x * VECTOR),
    "max": lambda x: jnp.max(x * x * VECTOR), "cumsum": lambda x: jnp.cumsum(jnp.sin(x * VECTOR))[1],
    "cumprod": lambda x: jnp.cumprod(1 + x * VECTOR).sum(), "sort": lambda x: jnp.sort(VECTOR[::-1] * x * x)[1],
    "gather": lambda x: (x * VECTOR)[np.array([0, 2])].sum() ** 2, "scatter": lambda x: jnp.ones(3).at[1].add(x).prod(),
    "softmax": lambda x: nn.softmax(x * VECTOR)[2], "fft": lambda x: abs(jnp.fft.fft(jnp.sin(x * VECTOR)))[1],
    "inv": lambda x: jnp.linalg.inv(MATRIX + x * OTHER)[0, 1], "det": lambda x: jnp.linalg.det(MATRIX + x * OTHER),
    "cholesky": lambda x: jnp.linalg.cholesky(MATRIX @ MATRIX.T + x * jnp.ones((2, 2)))[1, 0],
}  # fmt: skip
PROGRAMS = {
    "jit": lambda x: jit(lambda y: (y * x, 3.0))(x)[0], "checkpoint": lambda x: checkpoint(jnp.sin)(x) * x,
    "cond": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), "custom_jvp": ruled,
    "scan": lambda x: lax.scan(lambda c, _: (c * x, c + x), x, None, length=3)[1].sum(),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * c + x, x),
    "while_loop": lambda x: lax.while_loop(lambda c: c < 5, lambda c: c * (1 + x), x),
    "vmap": lambda x: vmap(lambda y: x * y * y)(x * VECTOR).sum(),
    "Python control flow": lambda x: x * x if x > 0 else x,
}  # fmt: skip


@pytest.mark.sample(30)
@pytest.mark.parametrize("fun", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_elementwise_functions(fun: Any) -> None:
    with enable_x64(True), enable_checks(True):
        np.testing.assert_allclose(along(fun, 4), nested(fun, 4), rtol=1e-8, atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("fun", OF_ARRAYS.values(), ids=OF_ARRAYS)
def test_functions_of_arrays(fun: Any) -> None:
    with enable_x64(True), enable_checks(True):
        np.testing.assert_allclose(along(fun, 3), nested(fun, 3), rtol=1e-8, atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("fun", PROGRAMS.values(), ids=PROGRAMS)
def test_calls_loops_and_rules(fun: Any) -> None:
    with enable_x64(True), enable_checks(True):
        np.testing.assert_allclose(along(fun, 3), nested(fun, 3), rtol=1e-8, atol=1e-9)


def test_taylor_coefficients() -> None:
    with enable_x64(True):
        _, series = jet(lambda x: jnp.exp(2 * x), (0.0,), ((1.0, 0.0, 0.0, 0.0),), factorial_scaled=False)
        _, shifted = jet(lambda x: x**3, (1.0,), ((0.0, 1.0, 0.5),), factorial_scaled=False)
    np.testing.assert_allclose(series, [2**k / factorial(k) for k in range(1, 5)])
    np.testing.assert_allclose(shifted, [0, 3, 1.5])  # (1 + t² + t³/2)³ = 1 + 3t² + 3t³/2 + …


def test_values_are_those_of_jax() -> None:
    """Recorded from JAX 0.10.2."""

    def fun(x: Any, y: Any) -> Any:
        return jnp.tanh(x @ y) / (1 + jnp.exp(y[0]))

    with enable_x64(True):
        x, y = jnp.array([[1.0, 2.0], [3.0, 4.0]]) / 10, jnp.array([0.3, -0.2])
        series = (x, x * x), (y, jnp.ones(2))
        out, derivatives = jet(fun, (x, y), series)
        scaled = jet(fun, (x, y), series, factorial_scaled=False)[1]
    first = [-0.00777695, 0.00777695]
    np.testing.assert_allclose(out, [-0.00425543, 0.00425543], atol=1e-8)
    np.testing.assert_allclose(derivatives, [first, [0.12236496, 0.29889482]], atol=1e-8)
    np.testing.assert_allclose(scaled, [first, [0.12516818, 0.2960916]], atol=1e-8)


def test_structures_and_dtypes() -> None:
    out, series = jet(
        lambda x, y: {"a": (jnp.sin(x) * y,), "b": 3.0, "c": jnp.arange(3)}, (0.5, jnp.bfloat16(0.3)), ((1, 0), (0, 0))
    )
    assert [x.shape for x in series["c"]] == [(3,), (3,)] and float(series["b"][1]) == 0
    assert out["c"].dtype == jnp.int32 and not np.any(series["c"])
    assert {x.dtype for x in series["a"][0]} == {out["a"][0].dtype} == {jnp.dtype("bfloat16")}
    assert jet(jnp.sin, (0.5,), ((),))[1] == [] and jet(lambda: 1.0, (), ()) == (1.0, [])
    assert float(jet(lambda x: x * x, (2.0,), ((1.0,),))[1][0]) == 4


def test_a_custom_vjp_is_its_function() -> None:
    """As in JAX: the rules are for reverse mode alone."""
    f = custom_vjp(jnp.sin)
    f.defvjp(lambda x: (x, None), lambda _, ct: (0 * ct,))
    np.testing.assert_allclose(along(f, 2), along(jnp.sin, 2))


@pytest.mark.full
def test_under_transformations_in_both_orders() -> None:
    def third(x: Any) -> Any:
        return jet(lambda y: jnp.sin(y) * x, (x,), ((1.0, 0.0, 0.0),))[1][2]

    points = np.array([0.3, 0.6])
    with enable_x64(True):
        values = vmap(jit(third))(points), jit(vmap(third))(points)
        slope = jit(grad(third))(0.3), grad(jit(third))(0.3)
        of_grad = along(grad(lambda y: jnp.sin(y) ** 2), 2, 0.3)
        of_vmap = jet(vmap(jnp.sin), (points,), ((np.ones(2), np.zeros(2)),))[1][1]
    np.testing.assert_allclose(values, 2 * [-np.cos(points) * points])
    np.testing.assert_allclose(slope, 2 * [0.3 * np.sin(0.3) - np.cos(0.3)])
    np.testing.assert_allclose(of_grad, [np.sin(0.6), 2 * np.cos(0.6), -4 * np.sin(0.6)])
    np.testing.assert_allclose(of_vmap, -np.sin(points))


@pytest.mark.parametrize("fun", [lambda x: jnp.sin(x) / (1 + x * x), nn.gelu, lax.erf_inv, lambda x: x**2.5])
def test_programs_grow_polynomially(fun: Any) -> None:
    def equations(order: int) -> int:
        return len(make_jaxpr(lambda x: jet(fun, (x,), ([1.0] * order,)))(POINT).eqns)

    assert equations(10) < 8 * equations(5)


def test_an_unknown_primitive_is_named() -> None:
    class Opaque(Primitive):
        name = "opaque"

        def shape_rule(self, aval: Any, **params: Any) -> Any:
            return aval

    with pytest.raises(MissingRule, match="primitive 'opaque' has no jvp rule"):
        jet(Opaque().bind, (1.0,), ((1.0,),))


@pytest.mark.parametrize("call, error, text", [
    (lambda: jet(jnp.sin, 0.5, ((1.0,),)), TypeError, "primals and series must be tuples"),
    (lambda: jet(jnp.sin, (0.5,), (1.0,)), TypeError, r"series\[0\] must be a list of terms, got float"),
    (lambda: jet(jnp.sin, (0.5,), ()), ValueError, "1 primals need as many series, got 0"),
    (lambda: jet(jnp.add, (0.5, 1.0), ((1.0,), (1.0, 0.0))), ValueError, "one length, got 1, 2"),
    (lambda: jet(jnp.sin, (1,), ((1,),)), TypeError, r"primals\[0\] is .*int32.*\.astype"),
    (lambda: jet(jnp.sin, ({"a": 1.0},), ((1.0,),)), TypeError, r"jet: primals\[0\]: an array .* got dict"),
    (lambda: jet(jnp.sin, (0.5,), ((jnp.ones(2),),)), ShapeError, r"series\[0\]\[0\] has shape \(2,\)"),
    (lambda: jet(3, (0.5,), ((1.0,),)), TypeError, "jet takes a function"),
])  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
