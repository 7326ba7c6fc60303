"""odeint beside SciPy's solver, recorded values of JAX, finite differences, and under every transformation."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.integrate

from xlamini import enable_x64, grad, jit, jvp, numpy as jnp, vmap
from xlamini.errors import ShapeError
from xlamini.experimental.ode import odeint
from xlamini.test_util import check_grads

pytestmark = pytest.mark.full

TIMES = np.linspace(0.0, 3.0, 5)
START = (1.2, 0.3)


def pendulum(y: Any, t: Any, drag: Any, gravity: Any) -> Any:
    angle, speed = y
    return speed, -drag * speed - gravity * jnp.sin(angle)


def loss(y0: Any, times: Any, drag: Any, gravity: Any) -> Any:
    angles, speeds = odeint(pendulum, y0, times, drag, gravity)
    return (angles * speeds).sum()


def test_values_are_scipys() -> None:
    expected = scipy.integrate.solve_ivp(
        lambda t, y: (y[1], -0.25 * y[1] - 9.8 * np.sin(y[0])), (0, 3), START, t_eval=TIMES, rtol=1e-11, atol=1e-12
    ).y
    with enable_x64(True):
        found = odeint(pendulum, START, TIMES, 0.25, 9.8)
        loose = odeint(pendulum, START, TIMES, 0.25, 9.8, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found, expected, rtol=2e-7)
    np.testing.assert_allclose(loose, expected, atol=5e-2)
    assert abs(np.array(loose) - expected).max() > 1e-6


def test_gradients_are_those_that_jax_computes() -> None:
    """Recorded from JAX 0.10.2: by y0, t, and both args."""
    with enable_x64(True):
        (angle, speed), times, drag, gravity = grad(loss, (0, 1, 2, 3))(START, TIMES, 0.25, 9.8)
    np.testing.assert_allclose([angle, speed, drag, gravity], [
        1.61371197675345, 0.898538718646916, -2.737183802262085, -0.212588734788323,
    ], rtol=1e-6)  # fmt: skip
    np.testing.assert_allclose(times, [
        -3.170265438186198, 5.665591952253807, 4.784458131615206, -6.498622631266286, -0.781162014416528,
    ], rtol=1e-6)  # fmt: skip


@pytest.mark.slow
def test_gradients_are_finite_differences_to_the_second_order() -> None:
    def decay(rate: Any, y: Any, t: Any) -> Any:
        return odeint(lambda y, t: -rate * y * jnp.cos(t), y, t, rtol=1e-10, atol=1e-10)

    with enable_x64(True):
        check_grads(decay, (0.7, jnp.array([1.0, 2.0]), jnp.array([0.0, 0.4, 1.1])), order=2, modes=["rev"], rtol=1e-5)


def test_gradients_by_time_of_a_slope_that_depends_on_it() -> None:
    slope = grad(lambda t: odeint(lambda y, t: t, 0.0, t)[-1])(jnp.array([0.25, 1.0]))
    np.testing.assert_allclose(slope, [-0.25, 1.0], rtol=1e-5)


def test_complex_values_and_gradients() -> None:
    def spin(rate: Any) -> Any:
        return odeint(lambda y, t, r: {"z": r * y["z"]}, {"z": 1 + 1j}, jnp.array([0.0, 1.0]), rate)["z"][-1]

    with enable_x64(True):
        rate = jnp.array(0.3 + 2j)
        np.testing.assert_allclose(spin(rate), (1 + 1j) * np.exp(0.3 + 2j), rtol=1e-6)
        slope = grad(lambda r: spin(r).real)(rate)
    np.testing.assert_allclose(slope, (1 + 1j) * np.exp(0.3 + 2j), rtol=1e-6)


@pytest.mark.full
def test_batched_and_compiled_in_both_orders() -> None:
    def end(rate: Any, y0: Any) -> Any:
        return odeint(lambda y, t, r: -r * y, y0, jnp.array([0.0, 0.5, 2.0]), rate)[-1]

    rates, starts = np.array([0.5, 1.0, 8.0]), np.array([1.0, -2.0, 3.0])
    with enable_x64(True):
        by_batch = jit(vmap(grad(end)))(rates, starts)
        by_grad = grad(lambda r: vmap(jit(end))(r, starts).sum())(rates)
    expected = -2 * starts * np.exp(-2 * rates)
    np.testing.assert_allclose(by_batch, expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(by_grad, expected, rtol=1e-5, atol=1e-7)


def test_values_closed_over_have_gradients_and_integers_none() -> None:
    def end(y: Any, scale: Any) -> Any:
        return odeint(lambda y, t, n: -scale * n * y, y, jnp.array([0.0, 1.0]), 3)[-1]

    np.testing.assert_allclose(grad(end, (0, 1))(2.0, 0.5), [np.exp(-1.5), -6 * np.exp(-1.5)], rtol=1e-4)


def test_limits() -> None:
    times = jnp.array([0.0, 0.5, 2.0])
    with enable_x64(True):
        beyond = odeint(lambda y, t: y * y, 1.0, times, mxstep=100)
        many, few = (odeint(lambda y, t: y, 1.0, times, hmax=h, mxstep=20)[-1] for h in (0.01, np.inf))
    np.testing.assert_allclose(beyond, [1, 2, np.nan], rtol=1e-6)
    assert np.isnan(many) and np.isclose(few, np.exp(2))


def test_equal_times_give_equal_values_and_decreasing_ones_none() -> None:
    np.testing.assert_allclose(odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 0.0, 1.0])), [1, 1, np.exp(-1)], rtol=1e-5)
    assert np.isnan(odeint(lambda y, t: -y, 1.0, jnp.array([1.0, 0.0]))[-1])


def test_results_have_the_dtypes_of_y0() -> None:
    with enable_x64(True):
        found = odeint(lambda y, t: -y * t, jnp.float32(1), jnp.array([0.0, 1.0]))
        mixed = odeint(lambda y, t: (-y[0], y[1]), (jnp.float32(1), jnp.float64(1)), jnp.array([0.0, 1.0]))
    assert found.dtype == jnp.float32 and [leaf.dtype.name for leaf in mixed] == ["float32", "float64"]
    assert odeint(lambda y, t: y, jnp.ones((2, 3)), jnp.zeros(1)).shape == (1, 2, 3)


def test_a_slope_of_another_dtype_is_converted() -> None:
    np.testing.assert_allclose(odeint(lambda y, t: 1, 0.0, jnp.array([0.0, 2.0])), [0, 2], rtol=1e-6)


@pytest.mark.parametrize("call, error, text", [
    (lambda t: odeint(lambda y, t: y, 1, t), TypeError, "y0 must consist of floats, got int32"),
    (lambda t: odeint(lambda y, t: y, 1.0, jnp.arange(3)), TypeError, "t must consist of floats, got int32"),
    (lambda t: odeint(lambda y, t: y, 1.0, jnp.array(1.0)), ShapeError, r"t must be a vector .* got shape \(\)"),
    (lambda t: odeint(lambda y, t: y, 1.0, [0.0, 1.0]), TypeError, "odeint: t: an array or a number is needed"),
    (lambda t: odeint(lambda y, t, a: y, 1.0, t, "a"), TypeError, "odeint: args: an array .* got str"),
    (lambda t: odeint(lambda y, t: (y, y), 1.0, t), ShapeError, "must return the structure of y0"),
    (lambda t: odeint(lambda y, t: y[:1], t, t), ShapeError, r"the shapes of y0, got \(1,\) for \(2,\)"),
    (lambda t: odeint(lambda y, t: 1j * y, 1.0, t), TypeError, "complex numbers where y0 is real"),
    (lambda t: jvp(lambda y: odeint(lambda y, t: y, y, t), (1.0,), (1.0,)), TypeError, "custom_vjp"),
])  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with warnings.catch_warnings(), pytest.raises(error, match=text):
        call(jnp.array([0.0, 1.0]))
