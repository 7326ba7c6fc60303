"""Distributions and samples."""

from __future__ import annotations

from tests.support.error_rows import ones, row
from xlamini import jit, numpy as jnp
from xlamini.errors import ShapeError
from xlamini.scipy import stats

K1, K2 = stats.gaussian_kde(jnp.arange(3.0)), stats.gaussian_kde(jnp.array([[1.0, 2, 4], [0, 1, 1]]))
kde = stats.gaussian_kde

ROWS = [
    row("no array", lambda: stats.norm.pdf("x"), TypeError, "argument 'x' of pdf is 'x' of type str"),
    row(
        "shapes", lambda: stats.norm.pdf(ones(2), ones(3)), ShapeError,
        "Incompatible shapes for broadcasting", "float32[2], float32[3]",
    ),
    row("dirichlet", lambda: stats.dirichlet.pdf(ones(4), ones(2)), ShapeError, "alpha (2,) and x (4,)"),
    row(
        "allow_singular", lambda: stats.multivariate_normal.logpdf(ones(2), ones(2), ones(2, 2), True),
        NotImplementedError, "allow_singular must be None", "add to the diagonal",
    ),
    row(
        "covariance", lambda: stats.multivariate_normal.pdf(ones(2), ones(2), ones(3, 3)),
        ShapeError, "cov (..., 2, 2)",
    ),
    row("mode's policy", lambda: stats.mode(ones(2), nan_policy="omit"), NotImplementedError, "got 'omit'"),
    row("policy", lambda: stats.sem(ones(2), nan_policy="x"), ValueError, "'propagate' or 'omit', got 'x'"),
    row("mode's axis", lambda: stats.mode(ones(2), axis=1), ValueError, "mode"),
    row("rankdata's method", lambda: stats.rankdata(ones(2), "first"), ValueError, "'ordinal', got 'first'"),
    row("one sample", lambda: kde(1.0), ValueError, "two samples or more are needed", "(1, 1)"),
    row("weights", lambda: kde(ones(3), weights=ones(2)), ShapeError, "weights must have shape (3,)", "got (2,)"),
    row("bandwidth", lambda: kde(ones(3), "x"), ValueError, "'scott', 'silverman'", "got 'x'"),
    row("points", lambda: K2(ones(3, 4)), ShapeError, "points of shape (2, m) are needed, got (3, 4)"),
    row("points under jit", lambda: jit(K2.logpdf)(ones(3, 4)), ShapeError, "points of shape (2, m)"),
    row("box", lambda: K2.integrate_box_1d(0, 1), ValueError, "samples of one component are needed, these have 2"),
    row("boxes", lambda: K2.integrate_box(0, 1), NotImplementedError, "use integrate_box_1d"),
    row("two densities", lambda: K1.integrate_kde(K2), ShapeError, "samples of 1 and of 2 components"),
    row("mean", lambda: K2.integrate_gaussian(ones(3), ones(2, 2)), ShapeError, "mean (2,) and cov (2, 2)"),
    row("set_bandwidth", lambda: K1.set_bandwidth(1.0), NotImplementedError, "make a new gaussian_kde"),
]  # fmt: skip
