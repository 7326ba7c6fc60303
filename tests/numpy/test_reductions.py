"""What the rows of reductions do not say: dtypes, ties, NaNs, masks, empty axes, and errors by their text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

NAN = np.nan
HOLES = np.array([[1, NAN, 3, -2], [NAN, NAN, NAN, NAN], [5, 0.5, NAN, 2]], np.float32)


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("dtype", "summed", "averaged", "running"),
    [
        ("bool", "int32", "float32", "int32"),
        ("int8", "int32", "float32", "int8"),
        ("uint8", "uint32", "float32", "uint8"),
        ("int32", "int32", "float32", "int32"),
        ("float16", "float16", "float16", "float16"),
        ("bfloat16", "bfloat16", "bfloat16", "bfloat16"),
        ("complex64", "complex64", "complex64", "complex64"),
    ],
)
def test_dtypes(dtype: str, summed: str, averaged: str, running: str) -> None:
    x = np.ones((3, 2), getattr(ml_dtypes, dtype, dtype))
    assert {f(x).dtype.name for f in (jnp.sum, jnp.prod, jnp.nansum)} == {summed}
    assert {f(x).dtype.name for f in (jnp.mean, jnp.nanmean)} == {averaged}
    assert jnp.var(x).dtype.name == averaged.replace("complex64", "float32")
    assert {f(x).dtype.name for f in (jnp.cumsum, jnp.cumprod)} == {running}
    assert jnp.max(x).dtype.name == dtype
    assert jnp.any(x).dtype == bool
    assert jnp.count_nonzero(x).dtype == np.int32


def test_dtypes_that_are_asked_for() -> None:
    x = np.array([1.5, 1.5], np.float32)
    assert int(jnp.sum(x, dtype=int)) == 2, "elements are converted before they are summed"
    assert jnp.sum(np.ones(3, np.int8), promote_integers=False).dtype == np.int8
    assert jnp.mean(np.ones(3, np.int32), dtype="float16").dtype == np.float16


def test_halves_are_summed_in_float32() -> None:
    x = np.ones(4096, ml_dtypes.bfloat16)
    assert float(jnp.sum(x)) == 4096
    assert "f32[4096]" in str(xlamini.make_jaxpr(jnp.sum)(x))


def test_results_are_not_weakly_typed() -> None:
    assert not any(f(2.0).weak_type for f in (jnp.sum, jnp.max, jnp.mean, jnp.var))


@pytest.mark.sample(4)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (1, -3), ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any", "mean", "var", "std"])
def test_axes(name: str, axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, 3, 4)).astype(np.float32)
    found = getattr(jnp, name)(x, axis=axis, keepdims=keepdims)
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_axes_may_be_a_list() -> None:
    assert jnp.sum(np.ones((2, 3, 4)), axis=[0, 2]).shape == (3,)


def test_derivative_is_shared_by_ties() -> None:
    gradient = xlamini.grad(lambda x: lax.reduce_max(x, (0,)))(np.array([1, 3, 3, 2], np.float32))
    np.testing.assert_array_equal(gradient, [0, 0.5, 0.5, 0])


def test_derivative_of_a_product_beside_zeros() -> None:
    gradient = xlamini.grad(jnp.prod)
    np.testing.assert_array_equal(gradient(np.array([0, 3, 2], np.float32)), [6, 0, 0])
    np.testing.assert_array_equal(gradient(np.array([0, 3, 0], np.float32)), [0, 0, 0])


@pytest.mark.parametrize("function", (lax.reduce_prod, lax.reduce_max))
def test_results_beside_a_tangent_have_the_type_that_they_have_without(function: Any) -> None:
    weak = lax.broadcast(2.0, (3,))
    out, tangent = xlamini.jvp(lambda x: function(x, (0,)), (weak,), (weak,))
    assert out.aval == function(weak, (0,)).aval
    assert float(tangent) == (24 if function is lax.reduce_prod else 2)


@pytest.mark.parametrize("function", (jnp.var, jnp.std))
def test_what_does_not_count_is_in_no_derivative_of_a_spread(function: Any) -> None:
    """Not even NaN or an infinity."""
    counts = np.array([True, False, True, False])
    found = xlamini.grad(lambda x: function(x, where=counts))(np.array([1, NAN, 3, np.inf], np.float32))
    part = xlamini.grad(function)(np.array([1, 3], np.float32))
    np.testing.assert_array_equal(found, [part[0], 0, part[1], 0])


@pytest.mark.parametrize("size", [8, 64])
def test_first_nan_wins(size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    x[[3, 5]] = NAN
    assert int(jnp.argmax(x)) == int(jnp.argmin(x)) == 3
    assert np.isnan(jnp.max(x))
    assert int(jnp.argmax(np.zeros(size, np.float32))) == 0


def test_complex_extrema_go_by_real_part_first() -> None:
    x = np.array([1 + 2j, 1 + 3j, 0], np.complex64)
    assert complex(jnp.max(x)) == 1 + 3j
    assert complex(jnp.min(x)) == 0


def test_reductions_of_nothing() -> None:
    empty = np.zeros((0, 3), np.float32)
    np.testing.assert_array_equal(jnp.sum(empty, axis=0), np.zeros(3))
    np.testing.assert_array_equal(jnp.prod(empty, axis=0), np.ones(3))
    np.testing.assert_array_equal(lax.reduce_max(empty, (0,)), np.full(3, -np.inf))
    np.testing.assert_array_equal(jnp.max(empty, axis=0, initial=1), np.ones(3))
    assert np.isnan(jnp.mean(empty))
    assert jnp.max(empty, axis=1).shape == (0,)


def test_masks_and_initial_values() -> None:
    x, mask = np.nan_to_num(HOLES), np.nan_to_num(HOLES) > 0
    np.testing.assert_allclose(jnp.sum(x, where=mask, initial=3), np.sum(x, where=mask, initial=3), rtol=1e-6)
    np.testing.assert_allclose(jnp.max(x, 0, where=mask, initial=-1), np.max(x, 0, where=mask, initial=-1))
    np.testing.assert_allclose(jnp.mean(x, 0, where=mask), [3, 0.5, 3, 2], rtol=1e-6)
    np.testing.assert_allclose(jnp.var(x, 0, where=mask, ddof=1), [8, NAN, NAN, NAN], rtol=1e-6)
    np.testing.assert_array_equal(jnp.all(x, 0, where=mask), [True] * 4)
    np.testing.assert_array_equal(jnp.sum(x, where=mask[:, :1]), np.sum(x, where=mask[:, :1]))


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty", "ignore:Degrees of freedom")
def test_functions_that_pass_over_nans(name: str, axis: int | None) -> None:
    np.testing.assert_allclose(
        getattr(jnp, name)(HOLES, axis=axis), getattr(np, name)(HOLES, axis=axis), rtol=1e-6, atol=1e-6
    )


def test_places_of_extrema_that_are_not_nan() -> None:
    np.testing.assert_array_equal(jnp.nanargmax(HOLES, axis=1), [2, -1, 0])
    np.testing.assert_array_equal(jnp.nanargmin(HOLES, axis=1, keepdims=True), [[3], [-1], [1]])
    np.testing.assert_array_equal(jnp.nancumsum(HOLES[0]), [1, 1, 4, 2])


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_median(axis: Any) -> None:
    x = np.nan_to_num(HOLES)
    np.testing.assert_allclose(jnp.median(x, axis, keepdims=True), np.median(x, axis, keepdims=True))
    assert np.isnan(jnp.median(HOLES))


def test_running_results() -> None:
    x = np.arange(1, 7).reshape(2, 3)
    np.testing.assert_array_equal(jnp.cumsum(x), np.cumsum(x))
    np.testing.assert_array_equal(jnp.cumulative_sum(x, axis=1, include_initial=True), [[0, 1, 3, 6], [0, 4, 9, 15]])
    np.testing.assert_array_equal(jnp.cumulative_prod(x[0]), [1, 2, 6])
    infinite = np.array([-np.inf, -np.inf, 1, np.inf, np.inf], np.float32)
    np.testing.assert_array_equal(lax.cumlogsumexp(infinite), infinite)


@pytest.mark.full
@pytest.mark.parametrize("size", [4097, 5000, 8192])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_results_in_blocks(size: int, reverse: bool) -> None:
    x = np.random.default_rng(size).integers(-9, 10, (2, size)).astype(np.int32)
    turned = (lambda x: x[:, ::-1]) if reverse else (lambda x: x)
    np.testing.assert_array_equal(lax.cumsum(x, 1, reverse), turned(np.cumsum(turned(x), 1)))
    np.testing.assert_array_equal(lax.cummax(x, 1, reverse), turned(np.maximum.accumulate(turned(x), 1)))


def test_one_program_for_an_eager_reduction() -> None:
    text = xlamini.jit(lambda x: jnp.mean(x, axis=0)).lower(np.ones((3, 2), np.float32)).as_text()
    assert text.count("stablehlo.reduce") == 1


X = np.ones((2, 3), np.float32)
ERRORS: list[tuple[Callable[[], Any], type, str]] = [
    (lambda: jnp.sum(X, axis=2), ValueError, "sum: axis 2 is out of range for an array of rank 2; it takes -2 to 1"),
    (lambda: jnp.max(X, axis=(0, 0)), ValueError, "max: axis (0, 0) names an axis twice"),
    (lambda: jnp.sum(X, out=X), NotImplementedError, "sum: `out` must be None"),
    (lambda: jnp.sum(X, axis=-3), IndexError, "sum: axis -3 is out of range for an array of rank 2"),
    (lambda: jnp.add(np.zeros(2, xlamini.float0), 1), TypeError, "an operand has dtype float0"),
    (lambda: jnp.sum(X, where=X), ValueError, "sum: `where` must be boolean, got float32"),
    (lambda: jnp.max(X, where=X > 0), ValueError, "max: `where` may leave no element, so give `initial` too"),
    (lambda: jnp.min(np.zeros((0, 3))), ValueError, "min: axis 0 of shape (0, 3) is empty"),
    (lambda: jnp.argmax(np.zeros(0)), ValueError, "argmax: axis None of shape (0,) is empty"),
    (lambda: jnp.median(np.zeros(0)), ValueError, "median: axis (0,) of shape (0,) holds no element"),
    (lambda: jnp.var(X, ddof=1, correction=1), ValueError, "var: `ddof` and `correction` are two names of one thing"),
    (lambda: jnp.average(X, weights=np.ones(3)), TypeError, "average: weights of shape (3,) fit neither"),
    (lambda: jnp.ptp(X > 0), TypeError, "sub does not accept dtype bool"),
    (lambda: jnp.cumulative_sum(X), ValueError, "cumulative_sum: `axis` may be left out for one dimension only"),
    (lambda: jnp.cumsum(X, axis=2), ValueError, "cumsum: axis 2 is out of range"),
    (lambda: lax.reduce_sum(X > 0, (0,)), TypeError, "reduce_sum does not accept dtype bool"),
    (lambda: lax.reduce_and(X, (0,)), TypeError, "reduce_and does not accept dtype float32; it takes"),
    (lambda: lax.reduce_max(X, (2,)), TypeError, "reduce_max: axes (2,) do not fit f32[2,3]"),
    (lambda: lax.argmax(X, 2, np.int32), TypeError, "argmax: axis 2 does not fit f32[2,3]; it takes 0 to 1"),
    (lambda: lax.argmax(X, 0, np.float32), TypeError, "argmax: index_dtype must be an integer dtype, got float32"),
    (lambda: lax.argmin(np.zeros((0, 2)), 0, np.int32), TypeError, "argmin: axis 0 of f32[0,2] is empty"),
    (lambda: lax.cumsum(X, axis=3), TypeError, "cumsum: axis 3 does not fit f32[2,3]; it takes 0 to 1"),
    (lambda: lax.cumlogsumexp(X.astype(int)), TypeError, "cumlogsumexp does not accept dtype int32"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_averages_of_halves_are_rounded_once() -> None:
    x = np.full((2**10, 3), 1.5, ml_dtypes.bfloat16)
    for options in ({}, {"axis": 0}, {"axis": 0, "weights": np.full(2**10, 0.5, ml_dtypes.bfloat16)}):
        average, total = jnp.average(x, **options, returned=True)
        np.testing.assert_array_equal(average, np.full(average.shape, 1.5))
        expected = 2**9 if "weights" in options else x.size // average.size
        np.testing.assert_array_equal(total, np.full(average.shape, expected, ml_dtypes.bfloat16))
