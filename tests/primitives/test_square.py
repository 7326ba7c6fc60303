"""The derivative of the product of a value with itself: one product, not the sum of two equal ones."""

import numpy as np
import pytest

import xlamini
from xlamini import lax

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def square(x):
    return lax.mul(x, x)


def names(fun, *operands):
    return [eqn.primitive.name for eqn in xlamini.make_jaxpr(fun)(*operands).jaxpr.eqns]


def test_the_tangent_is_one_product():
    assert names(lambda x, dx: xlamini.jvp(square, (x,), (dx,))[1], X, X) == ["mul", "mul", "mul"]
    assert names(lambda x, ct: xlamini.vjp(square, x)[1](ct), X, X) == ["mul", "mul", "mul"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
def test_values(dtype):
    x = np.asarray(X, dtype) * (1 + 1j if dtype == np.complex64 else 1)
    out, tangent = xlamini.jvp(square, (x,), (x[::-1].copy(),))
    np.testing.assert_allclose(out, x * x, rtol=1e-3)
    np.testing.assert_allclose(tangent, 2 * x * x[::-1], rtol=1e-3)
    (ct,) = xlamini.vjp(square, x)[1](x[::-1].copy())
    np.testing.assert_allclose(ct, 2 * x * x[::-1], rtol=1e-3)


def test_one_array_as_two_operands_has_two_derivatives():
    x, y = X, 2 * X
    _, tangent = xlamini.jvp(lax.mul, (x, x), (x, y))
    np.testing.assert_allclose(tangent, x * x + x * y, rtol=1e-6)
    of_x, of_y = xlamini.grad(lambda x, y: lax.mul(x, y).sum(), argnums=(0, 1))(x, x)
    np.testing.assert_array_equal(of_x, x)
    np.testing.assert_array_equal(of_y, x)


def test_constants_have_no_derivative():
    np.testing.assert_array_equal(xlamini.grad(lambda x: (x + square(X)).sum())(X), np.ones_like(X))
    np.testing.assert_array_equal(xlamini.grad(lambda x: square(lax.stop_gradient(x)).sum())(X), np.zeros_like(X))


@pytest.mark.parametrize("outer", [xlamini.jacfwd, xlamini.jacrev])
@pytest.mark.parametrize("inner", [xlamini.jacfwd, xlamini.jacrev])
def test_second_derivatives(outer, inner):
    found = outer(inner(lambda x: square(square(x)).sum()))(X[0])
    np.testing.assert_allclose(found, np.diag(12 * X[0] ** 2), rtol=1e-5)


def test_batched_and_in_a_loop():
    def looped(x):
        return lax.fori_loop(0, 3, lambda i, y: square(y), x)

    def scanned(x):
        return lax.scan(lambda y, _: (square(y), None), x, None, 3)[0]

    found = xlamini.vmap(xlamini.vmap(xlamini.grad(scanned)))(X)
    np.testing.assert_allclose(found, 8 * X**7, rtol=1e-4)
    _, tangent = xlamini.jvp(looped, (X,), (np.ones_like(X),))
    np.testing.assert_allclose(tangent, 8 * X**7, rtol=1e-4)
