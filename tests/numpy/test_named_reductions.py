"""Reductions over named axes, alone and beside axes of the array: those of the array with the mapped axis in front."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, nn, numpy as jnp
from xlamini.scipy.special import logsumexp

X = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": jnp.sum,
    "mean": jnp.mean,
    "max": jnp.max,
    "min": jnp.min,
    "var": jnp.var,
    "std": jnp.std,
    "ptp": jnp.ptp,
    "nansum": jnp.nansum,
    "nanmean": jnp.nanmean,
    "average": jnp.average,
    "count_nonzero": jnp.count_nonzero,
    "logsumexp": nn.logsumexp,
    "logmeanexp": nn.logmeanexp,
    "scipy logsumexp": logsumexp,
    "sum where": lambda x, axis: jnp.sum(x, axis, where=x > 0),
    "mean where": lambda x, axis: jnp.mean(x, axis, where=x > 0),
    "max where": lambda x, axis: jnp.max(x, axis, where=x > 0, initial=-1.0),
    "var ddof": lambda x, axis: jnp.var(x, axis, ddof=1),
}
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "standardize": nn.standardize,
    "standardize stable": lambda x, axis: nn.standardize(x, axis, algorithm="stable"),
    "softmax where": lambda x, axis: nn.softmax(x, axis, where=x > -1),
}
AXES = (("n", (0,)), (("n",), (0,)), ((0, "n"), (0, 1)), (("n", 1), (0, 2)))


@pytest.mark.parametrize("axes", AXES, ids=lambda axes: str(axes[0]))
@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_and_gradients(name: str, axes: tuple[Any, tuple[int, ...]]) -> None:
    (named, plain), f = axes, REDUCTIONS[name]
    expected = np.asarray(f(X, axis=plain))
    got = xlamini.vmap(lambda x: f(x, axis=named), axis_name="n")(X)
    np.testing.assert_allclose(got, np.broadcast_to(expected, (3, *expected.shape)), rtol=2e-5, atol=1e-6)
    if name == "count_nonzero":
        return
    weights = jnp.cos(jnp.arange(expected.size, dtype="float32")).reshape(expected.shape)
    slope = xlamini.grad(lambda x: (f(x, axis=plain) * weights).sum())(X)
    mapped = xlamini.vmap(lambda x: (f(x, axis=named) * weights).sum(), axis_name="n")
    np.testing.assert_allclose(xlamini.grad(lambda x: mapped(x)[0])(X), slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axes", AXES, ids=lambda axes: str(axes[0]))
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_of_all_elements(name: str, axes: tuple[Any, tuple[int, ...]]) -> None:
    (named, plain), f = axes, ELEMENTWISE[name]
    got = xlamini.jit(xlamini.vmap(lambda x: f(x, axis=named), axis_name="n"))(X)
    np.testing.assert_allclose(got, f(X, axis=plain), rtol=1e-4, atol=1e-5)


def test_the_same_call_under_axes_of_other_sizes() -> None:
    for size in (2, 5):
        x = jnp.ones((size, 3))
        assert xlamini.vmap(lambda x: jnp.mean(x, axis="n"), axis_name="n")(x).tolist() == x.tolist()
        assert xlamini.vmap(lambda x: jnp.sum(x, axis=(0, "n")), axis_name="n")(x).tolist() == [3.0 * size] * size


def test_methods_and_axes_of_the_array_that_are_kept() -> None:
    got = xlamini.vmap(lambda x: x - x.mean(axis=("n", 0), keepdims=True), axis_name="n")(X)
    np.testing.assert_allclose(got, X - X.mean((0, 1), keepdims=True), rtol=1e-5, atol=1e-6)
    both = xlamini.vmap(xlamini.vmap(lambda x: x.max(axis=("a", "b")), axis_name="b"), axis_name="a")(X)
    np.testing.assert_array_equal(both, np.broadcast_to(X.max((0, 1)), X.shape))


def test_what_has_no_collective_or_no_such_axis_is_refused() -> None:
    x = jnp.ones((2, 3))
    with pytest.raises(NotImplementedError, match=r"prod: a named axis, 'n', is reduced by sums and extrema alone"):
        xlamini.vmap(lambda x: jnp.prod(x, axis="n"), axis_name="n")(x)
    with pytest.raises(TypeError, match=r"sum: axis must be an integer, got 'm' of type str"):
        xlamini.vmap(lambda x: jnp.sum(x, axis="m"), axis_name="n")(x)
    with pytest.raises(TypeError, match=r"sort: axis must be an integer"):
        xlamini.vmap(lambda x: lax.psum(jnp.sort(x, axis="n"), "n"), axis_name="n")(x)
