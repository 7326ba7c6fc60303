"""Named axes under vmap: collectives equal sums, means and positions along the mapped axis, in every nesting."""

from __future__ import annotations

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def over_rows(fun, **options):
    return xlamini.vmap(fun, axis_name="i", **options)


@pytest.mark.parametrize(
    "collective, reference",
    [(lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max), (lax.pmin, np.min)],
    ids=["psum", "pmean", "pmax", "pmin"],
)
@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit], ids=["plain", "jit inside"])
def test_reductions(collective, reference, wrap):
    found = over_rows(wrap(lambda row: collective(row, "i")))(X)
    np.testing.assert_allclose(found, np.broadcast_to(reference(X, 0), X.shape), rtol=1e-6)


def test_the_result_does_not_vary_along_the_axis():
    np.testing.assert_allclose(over_rows(lambda row: lax.psum(row, "i"), out_axes=None)(X), X.sum(0))


def test_positions_and_sizes():
    index, size, twice = over_rows(lambda row: (lax.axis_index("i"), lax.axis_size("i"), lax.psum(2, "i")))(X)
    assert index.tolist() == [0, 1, 2] and size.tolist() == [3] * 3 and twice.tolist() == [6] * 3


def test_trees_and_values_that_do_not_vary():
    sums = over_rows(lambda row, c: lax.psum({"row": row, "c": c}, "i"), in_axes=(0, None))(X, 2.0)
    np.testing.assert_allclose(sums["c"], [6.0] * 3)
    np.testing.assert_allclose(sums["row"][1], X.sum(0))


def test_two_axes_in_any_order():
    def both(v):
        return lax.psum(v, ("i", "j")), lax.psum(v, "j"), lax.psum(v, "i"), lax.axis_index(("i", "j"))

    total, rows, columns, place = over_rows(xlamini.vmap(both, axis_name="j"))(X)
    np.testing.assert_allclose(total, np.full((3, 4), X.sum()))
    np.testing.assert_allclose(rows, np.broadcast_to(X.sum(1)[:, None], X.shape))
    np.testing.assert_allclose(columns, np.broadcast_to(X.sum(0), X.shape))
    np.testing.assert_array_equal(place, np.arange(12).reshape(3, 4))


def standardized(column):
    centred = column - lax.pmean(column, "i")
    return centred / jnp.sqrt(lax.pmean(centred**2, "i") + 1.0)


def plain_standardized(x):
    centred = x - x.mean(0)
    return centred / jnp.sqrt((centred**2).mean(0) + 1.0)


@pytest.mark.full
def test_derivatives_outside_the_map_are_those_of_the_plain_program():
    weights = np.cos(X)
    found = xlamini.grad(lambda x: (weights * over_rows(standardized)(x)).sum())(X)
    expected = xlamini.grad(lambda x: (weights * plain_standardized(x)).sum())(X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    ones = np.ones_like(X)
    np.testing.assert_allclose(
        xlamini.jvp(over_rows(standardized), (X,), (ones,))[1],
        xlamini.jvp(plain_standardized, (X,), (ones,))[1],
        atol=1e-5,
    )


def test_a_gradient_inside_the_map_is_that_of_the_sum_of_all_positions():
    found = over_rows(xlamini.grad(lambda v: lax.psum(v**2, "i")))(X[:, 0])
    np.testing.assert_allclose(found, 3 * 2 * X[:, 0])


def test_an_axis_that_is_not_there():
    with pytest.raises(NameError, match=r"unbound axis name: 'j'; named axes here: 'i'; .*axis_name='j'"):
        over_rows(lambda row: lax.psum(row, "j"))(X)
    with pytest.raises(NameError, match=r"unbound axis name: 'i'; named axes here: none"):
        lax.axis_index("i")


@pytest.mark.parametrize(
    "collective, shares",
    [(lambda v: lax.pmax(v, "i"), [0.0, 0.5, 0.5]), (lambda v: lax.pmin(v, "i"), [1.0, 0.0, 0.0])],
    ids=["pmax", "pmin"],
)
def test_the_tangent_of_an_extremum_is_shared_by_those_that_attain_it(collective, shares):
    x = np.array([1.0, 3.0, 3.0], np.float32)
    np.testing.assert_allclose(xlamini.grad(over_rows(collective, out_axes=None))(x), shares)
    _, tangent = xlamini.jvp(over_rows(collective), (x,), (x,))
    np.testing.assert_allclose(tangent, [np.dot(shares, x)] * 3)


def test_means_of_integers_and_counts_of_booleans():
    means = over_rows(lambda row: lax.pmean(row, "i"), out_axes=None)(X.astype(np.int32))
    assert means.dtype == np.float32 and means.tolist() == [4.0, 5.0, 6.0, 7.0]
    counts = over_rows(lambda row: lax.psum(row > 4, "i"), out_axes=None)(X)
    assert counts.dtype == np.int32 and counts.tolist() == [1, 2, 2, 2]


def test_spmd_axis_name_is_accepted():
    found = over_rows(lambda row: lax.psum(row, "i"), spmd_axis_name="devices", out_axes=None)(X)
    np.testing.assert_allclose(found, X.sum(0))
