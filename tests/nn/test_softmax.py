"""logsumexp with weights of zero, and softmax with elements left out: values and both derivatives."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import xlamini
import xlamini.numpy as jnp
from tests.support.checks import assert_close
from xlamini import grad, hessian, jit, nn, vmap
from xlamini.scipy.special import logsumexp

INF, NAN = np.inf, np.nan


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


LEFT_OUT = [
    (f32(0, -200), -200.0),  # exp(-200) underflows beside exp(0)
    (f32(1000, 0), 0.0),
    (f32(0, -3e38), -3e38),
    (f32(INF, 1), 1.0),
    (f32(NAN, 1), 1.0),
    (f32(-INF, -1), -1.0),
]


@pytest.mark.parametrize("a, value", LEFT_OUT)
def test_an_element_of_weight_zero_is_left_out(a: np.ndarray, value: float) -> None:
    b = f32(0, 1)
    fun = lambda a: logsumexp(a, b=b)
    for wrapped in (fun, jit(fun), lambda a: vmap(fun)(a[None])[0], lambda a: logsumexp(a, b=b, return_sign=True)[0]):
        assert_close(wrapped(a), np.float32(value), 0)
    assert grad(fun)(a).tolist() == [0.0, 1.0]
    assert hessian(fun)(a).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.full
def test_the_derivative_in_a_weight_of_zero_is_not_zero() -> None:
    a, b = f32(-1, 2, 0), f32(0, 0, 2)
    assert_close(grad(lambda b: logsumexp(a, b=b))(b), np.exp(a) / 2, 1e-6)
    mixed = xlamini.jacfwd(grad(lambda b, a: logsumexp(a, b=b)), argnums=1)(b, a)
    assert_close(mixed, np.diag(np.exp(a) / 2) - np.outer(np.exp(a) / 2, [0, 0, 1]), 1e-6)


def test_all_weights_zero() -> None:
    a, none = f32(1, 2), f32(0, 0)
    assert logsumexp(a, b=none) == -INF
    assert logsumexp(a, b=none, return_sign=True)[1] == 0
    rows = lambda a: jnp.where(jnp.array([True, False]), logsumexp(a, 1, b=f32(0, 1, 0, 0).reshape(2, 2)), 0).sum()
    assert grad(rows)(np.stack([a, a])).tolist() == [[0, 1], [0, 0]]


@pytest.mark.full
def test_weights_broadcast_and_where() -> None:
    b = np.array([[0, 1], [1, 0], [0, 0]], np.float32)
    assert logsumexp(f32(0, -200), 1, b=b).tolist() == [-200, 0, -INF]
    assert logsumexp(f32(0, -200, 5), b=f32(1, 1, 0), where=np.array([False, True, True])) == -200
    assert logsumexp(-f32(0, 200)[:, None] * f32(1, 1), 0, b=f32(0, 1)[:, None]).tolist() == [-200] * 2
    assert logsumexp(f32(0, -200)[None], 1, b=f32(0, 1), keepdims=True).tolist() == [[-200]]
    assert_close(logsumexp(0.0, b=f32(1, 2)), np.log(3), 1e-6)


def test_negative_and_random_weights() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 6)) * 50, rng.normal(size=(4, 6)) * (rng.random((4, 6)) < 0.6)
    values, signs = scipy.special.logsumexp(a, 1, b, return_sign=True)
    found = logsumexp(a.astype("float32"), 1, b.astype("float32"), return_sign=True)
    assert_close(found[0], values, 1e-5)
    assert_close(found[1], signs, 0)


def test_complex_numbers() -> None:
    z = np.array([0 + 1j, -200 + 2j], np.complex64)
    assert_close(logsumexp(z, b=f32(0, 1)), np.complex64(-200 + 2j), 1e-6)
    size, phase = logsumexp(z, return_sign=True)
    assert size.dtype == np.float32 and abs(size) < 1e-6
    assert_close(phase, np.exp(np.complex64(1j)), 1e-6)


@pytest.mark.full
@pytest.mark.parametrize("other", [NAN, INF, -INF, 1000.0])
def test_elements_left_out_of_softmax_have_no_derivative(other: float) -> None:
    x, held, ct = f32(1, other, 2), np.array([True, False, True]), f32(1, 2, 3)
    p = np.exp(1) / (np.exp(1) + np.exp(2))
    slope = 2 * p * (1 - p)
    assert_close(nn.softmax(x, where=held), f32(p, 0, 1 - p), 1e-6)
    assert_close(grad(lambda x: (nn.softmax(x, where=held) * ct).sum())(x), f32(-slope, 0, slope), 1e-5)
    assert_close(grad(lambda x: nn.logsumexp(x, where=held))(x), f32(p, 0, 1 - p), 1e-6)
    assert_close(grad(lambda x: nn.logmeanexp(x, where=held))(x), f32(p, 0, 1 - p), 1e-6)
    logs = lambda x: (jnp.where(held, nn.log_softmax(x, where=held), 0) * f32(1, 0, 0)).sum()
    assert_close(grad(logs)(x), f32(1 - p, 0, p - 1), 1e-6)


@pytest.mark.full
def test_focal_loss() -> None:
    """A loss with weights of 0 and 1: its second derivative far out is 0, not infinite."""
    loss = lambda x: logsumexp(jnp.stack([0.0 * x, -x]), b=f32(0, 1))
    assert hessian(loss)(50.0) == 0.0 and grad(loss)(50.0) == -1.0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_of_halves_are_rounded_once(dtype: str) -> None:
    """By rounding each sum, the logarithm of 2**17 equal powers would be that of some thousands of them."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal(2**17), dtype)
    wide = np.asarray(x, np.float64)
    total = np.exp(wide).sum()
    step = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(nn.logsumexp(x), np.float64), np.log(total), rtol=step)
    np.testing.assert_allclose(np.asarray(nn.softmax(jnp.zeros(2**12, dtype)), np.float64), 2.0**-12, rtol=step)
    found = np.asarray(nn.log_softmax(x), np.float64)
    np.testing.assert_allclose(found, wide - np.log(total), rtol=2 * step, atol=0.05)
    _, derivative = xlamini.jvp(nn.softmax, (jnp.zeros(2**12, dtype),), (jnp.ones(2**12, dtype),))
    assert not derivative.any()


def test_the_gradient_of_the_sum_of_nothing_is_0() -> None:
    rows = jnp.array([[-INF, -INF], [0.0, 0.0]])
    found = grad(lambda x: nn.logsumexp(x, axis=1)[1])(rows)
    np.testing.assert_array_equal(found, [[0, 0], [0.5, 0.5]])
    assert jit(grad(nn.logsumexp))(rows[0]).tolist() == [0, 0]
