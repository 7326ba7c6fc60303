"""Quantiles, histograms, covariances, sets, polynomials and their kin."""

from __future__ import annotations

import numpy as np

from tests.support.error_rows import ones, row
from xlamini import jit, numpy as jnp
from xlamini.errors import ConcretizationTypeError, ShapeError

V = np.arange(4, dtype=np.float32)

ROWS = [
    row("method", lambda: jnp.quantile(V, 0.5, method="hazen"), ValueError, "quantile: method='hazen'", "'linear'"),
    row("rank of q", lambda: jnp.quantile(V, ones(1, 2)), ValueError, "quantile: q must be", "(1, 2)"),
    row("axis", lambda: jnp.percentile(V, 50, axis=1), ValueError, "percentile: axis 1 is out of range"),
    row("complex", lambda: jnp.quantile(V * 1j, 0.5), ValueError, "quantile: complex numbers have no order"),
    row("nothing", lambda: jnp.quantile(V[:0], 0.5), ValueError, "quantile: axis", "holds no element"),
    row(
        "weights",
        lambda: jnp.quantile(V, 0.5, weights=V),
        NotImplementedError,
        "quantile: method='linear'",
        "inverted_cdf",
    ),
    row(
        "weights' shape",
        lambda: jnp.quantile(V, 0.5, weights=V[:3], method="inverted_cdf"),
        ShapeError,
        "quantile: weights of shape (3,)",
    ),
    row("bins' rule", lambda: jnp.histogram(V, "auto"), NotImplementedError, "histogram: bins='auto'"),
    row("histogram's weights", lambda: jnp.histogram(V, weights=V[:2]), ShapeError, "weights of shape (2,)", "(4,)"),
    row("histogram of nothing", lambda: jnp.histogram(V[:0]), ValueError, "histogram: no elements", "`range`"),
    row("bins of a grid", lambda: jnp.histogramdd(ones(4, 2), [2]), ValueError, "histogramdd: 1 bins for 2 dimensions"),
    row("points", lambda: jnp.histogram2d(V, V[:2]), ShapeError, "histogram2d: x and y must be", "(2,)"),
    row("cov's rank", lambda: jnp.cov(ones(2, 2, 2)), ValueError, "cov: at most two dimensions", "(2, 2, 2)"),
    row("fweights", lambda: jnp.cov(V, fweights=V), TypeError, "cov: fweights must be integers, got float32"),
    row("aweights", lambda: jnp.cov(V, aweights=V[:2]), RuntimeError, "cov: aweights of shape (2,) for 4 observations"),
    row("cov's dtype", lambda: jnp.cov(V, dtype=int), ValueError, "cov: dtype must be a float or complex one"),
    row("unique traced", lambda: jit(jnp.unique)(V), ConcretizationTypeError, "unique: the length", "argument `size`"),
    row("unique of a list", lambda: jnp.unique([1, 2]), TypeError, "unique: an array or a number is needed, got list"),
    row("unique's axis", lambda: jnp.unique(V, axis=1), ValueError, "unique: axis 1 is out of range"),
    row("unique of nothing", lambda: jnp.unique(V[:0], size=2), ValueError, "unique: of no elements", "`fill_value`"),
    row("isin's method", lambda: jnp.isin(V, V, method="x"), ValueError, "isin: method='x'", "'binary_search'"),
    row("kth", lambda: jnp.partition(V, 4), ValueError, "partition: kth=4 is out of range", "length 4"),
    row("partition of complex", lambda: jnp.partition(V * 1j, 1), NotImplementedError, "partition: complex numbers"),
    row("order of polyder", lambda: jnp.polyder(V, -1), ValueError, "polyder: m must be from 0 to 10000, got -1"),
    row("polyder without end", lambda: jnp.polyder(V, 2**40), ValueError, "polyder: m must be from 0 to 10000"),
    row("constants", lambda: jnp.polyint(V, 2, V[:3]), ValueError, "polyint: k has length 3", "2 orders"),
    row(
        "coefficients", lambda: jnp.polyadd(ones(2, 2), V), ValueError, "polyadd: coefficients must be one-dimensional"
    ),
    row("polyfit's y", lambda: jnp.polyfit(V, V[:2], 1), TypeError, "polyfit: y must have one row", "(2,)"),
    row("vander's N", lambda: jnp.vander(V, -1), ValueError, "vander: N must be 0 or more, got -1"),
    row("roots traced", lambda: jit(jnp.roots)(V), ConcretizationTypeError, "roots: the length", "strip_zeros=False"),
    row("gradient's samples", lambda: jnp.gradient(V[:1]), ValueError, "gradient: axis 0 has 1 samples"),
    row("spacings", lambda: jnp.gradient(V, 1, 2), TypeError, "gradient: 2 spacings for 1 axes"),
    row("edge_order", lambda: jnp.gradient(V, edge_order=3), ValueError, "gradient: edge_order must be 1 or 2"),
    row("gcd of floats", lambda: jnp.gcd(V, 2), ValueError, "gcd: integers are needed, got float32"),
    row("window's length", lambda: jnp.hanning(-1), ValueError, "hanning: M must be 0 or more, got -1"),
    row("choices", lambda: jnp.choose(np.array([3]), [V, V]), ValueError, "choose: `a` has numbers outside 0 to 1"),
    row(
        "condition", lambda: jnp.compress(V > 0, V[:2]), ValueError, "compress: a condition of length 4 for 2 elements"
    ),
    row("resize", lambda: jnp.resize(V, (-1,)), ValueError, "resize: new_shape has no negative sizes"),
]
