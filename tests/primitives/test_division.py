"""The derivative of a quotient: one division for both operands, whatever their shapes."""

import numpy as np
import pytest

import xlamini
from xlamini import lax

RNG = np.random.default_rng(0)
SHAPES = [((3, 4), (3, 4)), ((3, 4), ()), ((), (3, 4)), ((3, 1), (3, 4)), ((3, 4), (1, 4)), ((3, 1), (1, 4)), ((), ())]


def operand(shape, dtype):
    values = RNG.uniform(0.5, 2, shape)
    return np.asarray(values + 1j * RNG.uniform(0.5, 2, shape) if dtype == np.complex128 else values, dtype)


def names(fun, *operands):
    return [eqn.primitive.name for eqn in xlamini.make_jaxpr(fun)(*operands).jaxpr.eqns]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("left, right", SHAPES)
def test_derivative_forward_and_backward(left, right, dtype):
    with xlamini.enable_x64(True):
        x, y, dx, dy = (operand(shape, dtype) for shape in (left, right, left, right))
        out, tangent = xlamini.jvp(lax.div, (x, y), (dx, dy))
        np.testing.assert_allclose(out, x / y, rtol=1e-14)
        np.testing.assert_allclose(tangent, dx / y - x * dy / y**2, rtol=1e-12)
        ct = operand(np.shape(x / y), dtype)
        ct_x, ct_y = xlamini.vjp(lax.div, x, y)[1](ct)
        np.testing.assert_allclose(np.sum(ct_x * dx) + np.sum(ct_y * dy), np.sum(ct * np.asarray(tangent)), rtol=1e-12)


def test_second_derivatives_in_both_orders():
    with xlamini.enable_x64(True):
        point = np.array([1.5, 0.7])
        expected = [[0, -1 / 0.7**2], [-1 / 0.7**2, 2 * 1.5 / 0.7**3]]
        for outer, inner in [("jacfwd", "jacrev"), ("jacrev", "jacfwd"), ("jacrev", "jacrev"), ("jacfwd", "jacfwd")]:
            hessian = getattr(xlamini, outer)(getattr(xlamini, inner)(lambda p: p[0] / p[1]))
            np.testing.assert_allclose(hessian(point), expected, rtol=1e-12, atol=1e-15)


def test_batched_derivative():
    x, y = operand((5, 3), np.float32), operand((5, 3), np.float32)
    ct_x, ct_y = xlamini.vmap(xlamini.grad(lambda x, y: (x / y).sum(), argnums=(0, 1)))(x, y)
    np.testing.assert_allclose(ct_x, 1 / y, rtol=1e-6)
    np.testing.assert_allclose(ct_y, -x / y**2, rtol=1e-5)


def test_the_cotangents_share_one_division():
    x, y = operand((3,), np.float32), operand((3,), np.float32)
    assert names(lambda x, y, ct: xlamini.vjp(lax.div, x, y)[1](ct), x, y, x) == ["div", "div", "neg", "mul"]


def test_the_cotangent_of_the_divisor_alone():
    x, y = operand((3,), np.float32), operand((3,), np.float32)
    np.testing.assert_allclose(xlamini.grad(lambda y: lax.div(x, y).sum())(y), -x / y**2, rtol=1e-6)


def test_division_by_zero_and_infinity():
    """The same infinities and NaNs as the formula dx / y - (x / y) * (dy / y)."""
    x, y = np.float32([1, 0, 1, np.inf]), np.float32([0, 0, np.inf, 2])
    ct_x, ct_y = xlamini.grad(lambda x, y: lax.div(x, y).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(ct_x, [np.inf, np.inf, 0, 0.5])
    np.testing.assert_array_equal(ct_y, [-np.inf, np.nan, 0, -np.inf])
