"""What rows cannot say of windows: computations that close over values, starts in a batch, programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.core.program.avals import ShapedArray
from xlamini.core.tracing.tracer import build
from xlamini.scipy import signal
from xlamini.test_util import check_grads

X = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4, 6)), jnp.float32)


def names(function: Any, *args: Any) -> list[str]:
    return [eqn.primitive.name for eqn in xlamini.make_jaxpr(function)(*args).eqns]


def scalar_jaxpr(function: Any) -> Any:
    return build(lambda a, b: [function(a, b)], [ShapedArray((), np.dtype(np.float32))] * 2)[0]


@pytest.mark.parametrize("jit", [lambda f: f, xlamini.jit], ids=["eager", "jit"])
def test_a_computation_may_close_over_values(jit: Any) -> None:
    x = X[0, 0]
    summed = jit(lambda x, y: lax.reduce(x, 0.0, lambda a, b: a + b + 0 * y, (0,)))(x, 2.0)
    np.testing.assert_allclose(summed, np.sum(x), rtol=1e-5)
    windows = jit(lambda x, y: lax.reduce_window(x, 0.0, lambda a, b: a + b + 0 * y, (2,)))(x, 2.0)
    np.testing.assert_allclose(windows, np.asarray(x[1:] + x[:-1]), rtol=1e-5)


@pytest.mark.full
def test_starts_in_a_batch_and_their_derivatives() -> None:
    starts = jnp.arange(3.0) + 1
    for operation in (lambda s: lax.reduce(X, s, lambda a, b: a * b, (0, 2)), windowed_product):
        each = jnp.stack([operation(s) for s in starts])
        np.testing.assert_allclose(xlamini.vmap(operation)(starts), each, rtol=1e-5)
    with xlamini.enable_x64(True):
        wide = jnp.asarray(X, jnp.float64) / 2
        check_grads(lambda s: lax.reduce(wide, s, lambda a, b: a * b, (0, 1)), (jnp.float64(2),), 2)


def windowed_product(start: Any) -> Any:
    return lax.reduce_window(X, start, lax.mul, (1, 2, 2))


def test_known_computations_become_their_primitives() -> None:
    assert names(lambda x: lax.reduce(x, 0, lambda a, b: b + a, (0,)), X) == ["reduce_sum"]
    assert names(lambda x: lax.reduce(x, 1.0, lax.add, (0,)), X) == ["reduce_sum", "broadcast_in_dim", "add"]
    assert names(lambda x: lax.reduce(x, -jnp.inf, jnp.maximum, (0,)), X) == ["reduce_max"]
    zero = jnp.zeros(())
    assert names(lambda x: lax.reduce_window(x, zero, lax.add, (1, 2, 2)), X) == ["reduce_window_sum"]
    assert names(lambda x: lax.reduce_window(x, jnp.float32(0), lax.add, (1, 2, 2)), X) == ["reduce_window_sum"]
    assert names(lambda x: lax.reduce_window(x, 0.0, lax.max, (1, 2, 2)), X) == ["reduce_window"]


@pytest.mark.parametrize("axes", [(0, 2), ()])
def test_a_start_that_is_no_identity_counts_once(axes: Any) -> None:
    assert names(lambda x, s: lax.reduce(x, s, lax.add, (0,)), X, 0.0)[0] == "reduce_sum"
    x = np.asarray(X)
    np.testing.assert_allclose(lax.reduce(X, 2.5, lax.add, axes), x.sum(axes) + 2.5, rtol=1e-5)
    np.testing.assert_allclose(lax.reduce(X, 2.5, lax.mul, axes), x.prod(axes) * 2.5, rtol=1e-5)
    np.testing.assert_array_equal(lax.reduce(X, 0.25, lax.max, axes), np.maximum(x.max(axes), 0.25))
    whole = lax.reduce(jnp.arange(6), 8, lax.bitwise_or, (0,))
    assert (int(whole), whole.dtype) == (15, np.int32)


def test_a_start_in_a_batch_and_its_derivative() -> None:
    def total(x: Any, start: Any) -> Any:
        return lax.reduce(x, start, lax.mul, (0,))

    starts = jnp.array([2.0, 3.0])
    products = np.prod(X, axis=1)
    np.testing.assert_allclose(xlamini.vmap(total)(X, starts), products * np.asarray(starts)[:, None], rtol=1e-5)
    np.testing.assert_allclose(xlamini.grad(lambda s: total(X[0], s).sum())(2.0), products[0].sum(), rtol=1e-5)
    both = xlamini.vmap(xlamini.grad(lambda x, s: total(x, s).sum(), 1))(X, starts)
    np.testing.assert_allclose(both, products.sum(1), rtol=1e-5)


@pytest.mark.full
def test_derivatives_of_pooling_compose() -> None:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(jnp.sin(x), -jnp.inf, lax.max, (2, 3), (1, 2), "SAME") ** 2

    with xlamini.enable_x64(True):
        wide = jnp.asarray(X, jnp.float64)
        slopes = xlamini.vmap(xlamini.grad(lambda x: pooled(x).sum()))(wide)
        together = xlamini.grad(lambda x: xlamini.vmap(pooled)(x).sum())(wide)
        np.testing.assert_allclose(slopes, together)
        check_grads(xlamini.jit(xlamini.vmap(pooled)), (wide,), 2, eps=1e-5)


def test_select_and_scatter() -> None:
    x = jnp.array([1.0, 3.0, 2.0, 5.0])
    params = {
        "select_jaxpr": scalar_jaxpr(lax.ge),
        "scatter_jaxpr": scalar_jaxpr(lax.mul),
        "window_dimensions": (2,),
        "window_strides": (2,),
        "padding": ((0, 0),),
    }

    def scattered(x: Any, source: Any) -> Any:
        return lax.select_and_scatter_p.bind(x, source, jnp.float32(2), **params)

    source = jnp.array([10.0, 20.0])
    np.testing.assert_array_equal(scattered(x, source), [2, 20, 2, 40])
    rows = xlamini.jit(xlamini.vmap(scattered))(jnp.stack([x, x[::-1]]), jnp.stack([source, source]))
    np.testing.assert_array_equal(rows, [[2, 20, 2, 40], [20, 2, 40, 2]])


def test_a_padding_of_infinities_loses_no_cotangent() -> None:
    x = jnp.full(4, -jnp.inf)
    slope = xlamini.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,)).sum())(x)
    np.testing.assert_array_equal(slope, [1, 0, 1, 0])


@pytest.mark.full
def test_windows_of_a_spectrum_warn_and_shrink() -> None:
    with pytest.warns(UserWarning, match="nperseg is 256, but the signal has 9 samples"):
        assert signal.welch(jnp.ones(9))[1].shape == (5,)
    with pytest.warns(UserWarning, match="the signal is complex"):
        assert signal.stft(jnp.ones(9) * 1j, nperseg=4)[2].shape == (4, 6)


@pytest.mark.parametrize("op, start", [(lax.add, 0.0), (lax.max, -np.inf), (lax.mul, 1.0), (lambda x, y: x + y, 0.0)])
def test_windows_of_one_element(op, start):
    x = jnp.arange(6.0).reshape(2, 3)
    for stride in (1, 2):
        f = lambda x, stride=stride: lax.reduce_window(x, start, op, (1, 1), (stride, stride), "VALID")
        np.testing.assert_array_equal(f(x), x[::stride, ::stride])
        np.testing.assert_array_equal(xlamini.vmap(f)(x[None])[0], x[::stride, ::stride])
        assert xlamini.grad(lambda x, f=f: f(x).sum())(x).sum() == f(x).size
