"""Rows of scipy.stats, beside SciPy: every function of every distribution, at places inside its support."""
from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats

from tests.rows.row import Arg, Row
from xlamini.scipy import stats

WIDE = ("float32", "float64")
TOLERANCE = {"float32": 3e-5, "float64": 1e-11}
LOOSE = {"float32": 3e-4, "float64": 1e-8}

# Where the density is asked, and the domains of the parameters.
PLACES: dict[str, tuple[tuple[float, float], ...]] = {
    **dict.fromkeys(("cauchy", "gumbel_l", "gumbel_r", "logistic", "norm"), ((-2, 2), (-0.5, 0.5), (0.7, 2))),
    "laplace": ((0.7, 2), (-0.5, 0.5), (0.7, 2)),
    "expon": ((0.7, 3), (0.1, 0.5), (0.7, 2)),
    "uniform": ((0.6, 1), (0.1, 0.5), (1, 2)),
    "beta": ((0.2, 0.8), (0.7, 3), (0.7, 3)),
    "chi2": ((0.5, 4), (0.7, 4)),
    "gamma": ((0.5, 4), (0.7, 4)),
    "gennorm": ((0.3, 2), (0.7, 3)),
    "pareto": ((1.2, 4), (0.7, 3)),
    "t": ((-2, 2), (1, 5), (-0.5, 0.5), (0.7, 2)),
    "truncnorm": ((-0.4, 0.6), (-2, -1), (1, 2)),
    "vonmises": ((-2, 2), (0.5, 3)),
    "wrapcauchy": ((0.5, 5), (0.2, 0.7)),
    "bernoulli": ((0, 1), (0.2, 0.8)),
    "betabinom": ((0, 3), (4, 6), (0.7, 3), (0.7, 3)),
    "binom": ((0, 3), (4, 6), (0.2, 0.8)),
    "geom": ((1, 4), (0.2, 0.8)),
    "nbinom": ((0, 4), (2, 5), (0.2, 0.8)),
    "poisson": ((0, 5), (0.7, 3)),
}
DENSITIES = ("logpdf", "pdf")
TAILS = ("cdf", "logcdf", "sf", "logsf")
COUNTS = ("logpmf", "pmf")
FUNCTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cauchy", "norm"), (*DENSITIES, *TAILS, "ppf", "isf")),
    **dict.fromkeys(("expon", "gumbel_l", "gumbel_r", "pareto"), (*DENSITIES, *TAILS, "ppf")),
    **dict.fromkeys(("beta", "chi2", "gamma", "truncnorm"), (*DENSITIES, *TAILS)),
    **dict.fromkeys(("t", "vonmises", "wrapcauchy"), DENSITIES),
    "logistic": (*DENSITIES, "cdf", "sf", "ppf", "isf"),
    "laplace": (*DENSITIES, "cdf"),
    "gennorm": (*DENSITIES, "cdf"),
    "uniform": (*DENSITIES, "cdf", "ppf"),
    **dict.fromkeys(("betabinom", "binom", "geom", "nbinom"), COUNTS),
    "bernoulli": (*COUNTS, "cdf", "ppf"),
    "poisson": (*COUNTS, "cdf"),
}
WHOLE = ("bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson")
NONE = (("bernoulli", "ppf"), ("poisson", "cdf"))  # steps, and without derivatives
# No derivative exists in the shapes of the incomplete beta function; that of the gamma function is a row of lax.
FIXED = {"beta": (1, 2), "chi2": (1,), "gamma": (1,), "gennorm": (1,), "poisson": (0,)}


def whole(rng: np.random.Generator, dtype: np.dtype, low: float, high: float) -> Any:
    return rng.integers(int(low), int(high), 3, endpoint=True).astype(dtype)


def arguments(name: str, function: str) -> list[Arg]:
    place, *parameters = PLACES[name]
    fixed = FIXED.get(name, ()) if function in TAILS else ()
    if function in ("ppf", "isf"):
        place = 0.1, 0.9
    if name in WHOLE and function != "ppf":
        first = Arg((3,), diff=False, values=lambda rng, dtype: whole(rng, dtype, *place))
    else:
        first = Arg((3,), place, diff=name not in WHOLE)
    return [first, *(_parameter(name, i, domain, fixed) for i, domain in enumerate(parameters, 1))]


def _parameter(name: str, i: int, domain: tuple[float, float], fixed: tuple[int, ...]) -> Arg:
    if name in ("betabinom", "binom") and i == 1:
        return Arg((3,), diff=False, values=lambda rng, dtype: whole(rng, dtype, *domain))
    return Arg((3,), domain, diff=i not in fixed)


def like(name: str, function: str) -> Any:
    reference = getattr(getattr(scipy.stats, name), function)
    return lambda *args: np.asarray(reference(*(x.astype(float) for x in args))).astype(args[0].dtype)


def row(name: str, function: str) -> Row:
    hard = name in ("beta", "chi2", "gamma", "gennorm", "truncnorm", "poisson")
    # Loops, which XLA takes long to compile; the logarithms' derivatives are the chain rule's alone.
    costly = name in ("beta", "chi2", "gamma") and function in TAILS
    return Row(
        f"scipy.stats.{name}.{function}",
        getattr(getattr(stats, name), function),
        like(name, function),
        [arguments(name, function)],
        ("float64",) if costly else WIDE,
        differentiable=(name, function) not in NONE and not (costly and function.startswith("log")),
        order=1,
        tolerance=LOOSE if hard else TOLERANCE,
    )


def on_simplex(rng: np.random.Generator, dtype: np.dtype) -> Any:
    return rng.dirichlet([2.0, 2.0, 2.0]).astype(dtype)


def covariance(x: Any) -> Any:
    """A positive definite matrix that every x gives."""
    return x @ x.T + 2 * np.eye(2, dtype=x.dtype)


def vectors(function: str) -> list[Row]:
    normal, of_scipy = getattr(stats.multivariate_normal, function), scipy.stats.multivariate_normal
    chance, shares = function.replace("pdf", "pmf"), [Arg((3,), diff=False, values=on_simplex), Arg((3,), (1, 3))]
    return [
        Row(
            f"scipy.stats.multivariate_normal.{function}",
            lambda x, mean, c: normal(x, mean, covariance(c)),
            lambda x, mean, c: np.asarray(getattr(of_scipy, function)(x - mean, cov=covariance(c)), x.dtype),
            [[Arg((3, 2), (-1, 1)), Arg((2,), (-1, 1)), Arg((2, 2), (-1, 1))]],
            WIDE,
            order=1,
            tolerance=TOLERANCE,
        ),
        Row(
            f"scipy.stats.dirichlet.{function}",
            lambda x, alpha: getattr(stats.dirichlet, function)(x[:2], alpha),
            lambda x, alpha: np.asarray(
                getattr(scipy.stats.dirichlet, function)(x[:2].astype(float), alpha.astype(float)), x.dtype
            ),
            [shares],
            WIDE,
            order=1,
            tolerance=TOLERANCE,
        ),
        Row(
            f"scipy.stats.multinomial.{chance}",
            lambda p: getattr(stats.multinomial, chance)(np.array([2, 1, 3]), 6, p),
            lambda p: np.asarray(
                np.exp(_log_multinomial(p)) if chance == "pmf" else _log_multinomial(p), p.dtype
            ),
            [[Arg((3,), (0.2, 0.5))]],
            WIDE,
            order=1,
            tolerance=TOLERANCE,
        ),
    ]


def _log_multinomial(p: Any) -> Any:
    """Also where p does not sum to 1, which SciPy refuses."""
    return np.log(60.0) + (np.array([2, 1, 3]) * np.log(p.astype(float))).sum()


def entropies(mu: Any) -> Any:
    return scipy.stats.poisson.entropy(mu.astype(float)).astype(mu.dtype)


def few(rng: np.random.Generator, dtype: np.dtype) -> Any:
    return rng.integers(0, 4, (3, 4)).astype(dtype)


def ranks(method: str) -> Row:
    return Row(
        f"scipy.stats.rankdata: {method}",
        lambda x: stats.rankdata(x, method, axis=1),
        lambda x: scipy.stats.rankdata(x, method, axis=1).astype("float32"),
        [[Arg(values=few)]],
        ("float32", "int32"),
        differentiable=False,
    )


SAMPLES = [
    *(ranks(method) for method in ("average", "min", "max", "dense", "ordinal")),
    Row(
        "scipy.stats.mode",
        lambda x: stats.mode(x, axis=1)[0],
        lambda x: scipy.stats.mode(x, axis=1)[0],
        [[Arg(values=few)]],
        ("float32", "int32"),
        differentiable=False,
    ),
    Row(
        "scipy.stats.mode: count",
        lambda x: stats.mode(x, axis=0)[1],
        lambda x: scipy.stats.mode(x, axis=0)[1].astype("int32"),
        [[Arg(values=few)]],
        ("float32", "int32"),
        differentiable=False,
    ),
    Row(
        "scipy.stats.sem",
        lambda x: stats.sem(x, axis=1),
        lambda x: scipy.stats.sem(x, axis=1),
        [[Arg((2, 4))]],
        WIDE,
        order=1,
        tolerance=TOLERANCE,
    ),
]

ROWS = [
    *(row(name, function) for name, functions in FUNCTIONS.items() for function in functions),
    *(each for function in DENSITIES for each in vectors(function)),
    Row(
        "scipy.stats.poisson.entropy", stats.poisson.entropy, entropies, [[Arg((3,), (0.5, 9))], [Arg((2,), (20, 30))]],
        WIDE, order=1, tolerance=LOOSE,
    ),
    *SAMPLES,
]  # fmt: skip
