"""Distributions, generators and initializers called wrongly."""

from __future__ import annotations

import numpy as np

from tests.support.error_rows import ones, row
from xlamini import jit, numpy as jnp, random
from xlamini.errors import ShapeError
from xlamini.nn import initializers


def key(impl=None):
    return random.key(0, impl=impl)


ROWS = [
    row("gamma's dtype", lambda: random.gamma(key(), 1.0, dtype="int32"), ValueError, "gamma: dtype", "got int32"),
    row(
        "gamma's shape", lambda: random.gamma(key(), ones(3), (2,)), ValueError,
        "gamma: the parameters do not broadcast to shape (2,): a has shape (3,)",
    ),
    row("beta's shapes", lambda: random.beta(key(), ones(2), ones(3)), ValueError, "beta:", "a has shape (2,)"),
    row("dirichlet of a scalar", lambda: random.dirichlet(key(), 1.0), ShapeError, "dirichlet: alpha", "got a scalar"),
    row("no key", lambda: random.poisson(3, 1.0), TypeError, "poisson: a key is needed, got 3"),
    row("poisson's dtype", lambda: random.poisson(key(), 1.0, dtype="float32"), ValueError, "poisson: dtype must be"),
    row("geometric's dtype", lambda: random.geometric(key(), 0.5, dtype=float), ValueError, "geometric: dtype must be"),
    row(
        "multinomial of a scalar", lambda: random.multinomial(key(), 3, 0.5), ShapeError, "multinomial: p must have an",
    ),
    row(
        "multinomial's shape", lambda: random.multinomial(key(), 3, ones(3), shape=(2,)), ShapeError,
        "multinomial: shape must end with the number of outcomes, 3", "got (2,)",
    ),
    row("ball's dimension", lambda: random.ball(key(), 2.5), TypeError, "ball: shape must be an int", "2.5"),
    row(
        "mean and cov", lambda: random.multivariate_normal(key(), ones(3), jnp.eye(2)), ShapeError,
        "multivariate_normal: mean must have shape [..., n]", "float32[3] and float32[2,2]",
    ),
    row(
        "method", lambda: random.multivariate_normal(key(), ones(2), jnp.eye(2), method="qr"), ValueError,
        "method must be one of 'cholesky', 'eigh', 'svd', got 'qr'",
    ),
    row("orthogonal's size", lambda: random.orthogonal(key(), -1), ValueError, "orthogonal: shape must not have neg"),
    row("traced shape", lambda: jit(lambda n: random.gamma(key(), 1.0, (n,)))(3), TypeError, "gamma: shape must be"),
    row("generator", lambda: random.key(0, impl="mt19937"), ValueError, "no random generator 'mt19937'", "'rbg'"),
    row(
        "words of another generator", lambda: random.normal(random.PRNGKey(0, impl="rbg")), TypeError,
        "normal: a key is needed, or the words of one, uint32[2]; got uint32[4]", "wrap_key_data(words, impl='rbg')",
    ),
    row(
        "wrapped as another", lambda: random.wrap_key_data(random.PRNGKey(0), impl="rbg"), TypeError,
        "wrap_key_data: a key is needed, or the words of one, uint32[4]; got uint32[2]",
    ),
    row("sharding", lambda: random.gamma(key(), 1.0, out_sharding="x"), TypeError, "gamma: out_sharding must", "'x'"),
    row(
        "mode", lambda: initializers.variance_scaling(1.0, "fan", "normal")(key(), (2, 3)), ValueError,
        "variance_scaling: mode must be one of 'fan_in'", "got 'fan'",
    ),
    row(
        "distribution", lambda: initializers.variance_scaling(1.0, "fan_in", "flat")(key(), (2, 3)), ValueError,
        "variance_scaling: distribution must be one of 'normal'", "got 'flat'",
    ),
    row("a vector", lambda: initializers.he_normal()(key(), (3,)), ShapeError, "shape (3,) lacks an axis"),
    row("orthogonal vector", lambda: initializers.orthogonal()(key(), (3,)), ShapeError, "orthogonal: shape must have"),
    row(
        "delta", lambda: initializers.delta_orthogonal()(key(), (3, 4, 2)), ShapeError,
        "delta_orthogonal: shape must be", "got (3, 4, 2)",
    ),
    row("randint high", lambda: random.randint(key(), (2,), 0, 2**70), OverflowError, f"maxval is {2**70}", " to 2147"),
    row("randint low", lambda: random.randint(key(), (2,), -(2**31) - 1, 0), OverflowError, "minval is -2147483649"),
    row("randint start", lambda: random.randint(key(), (2,), 2**31, 2**31), OverflowError, "minval is 2147483648"),
    row("randint uint32", lambda: random.randint(key(), (2,), 0, 2**33, "uint32"), OverflowError, "is 8589934592"),
    row("randint float", lambda: random.randint(key(), (2,), 0, 1e12), OverflowError, "maxval is 1000000000000.0"),
    row("randint wide", lambda: random.randint(key(), (2,), 0, np.int64(2**40)), OverflowError, "maxval is 10995"),
    row("randint array", lambda: random.randint(key(), (2,), 0, np.array([9, 2**40])), OverflowError, "maxval is 1"),
    row("choice of many", lambda: random.choice(key(), 2**40), OverflowError, "choice: 1099511627776 numbers", "x64"),
    row("order of many", lambda: random.permutation(key(), np.int64(2**31)), OverflowError, "permutation: 2147483648"),
]
