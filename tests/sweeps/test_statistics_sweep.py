"""Statistics and densities over scales and kinds of data in all float dtypes, beside NumPy and SciPy with more digits.

Budgets are in units of the dtype's rounding error, relative to the largest element of the result. The nightly run takes
all rows, the others a few.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

import xlamini as xl
import xlamini.numpy as jnp
from xlamini.ops import segment_sum
from xlamini.scipy import stats

INF = np.inf
DTYPES = ("float16", "bfloat16", "float32", "float64")
SCALES = {"float16": (1.0, 300.0, 1e-3), "bfloat16": (1.0, 1e25, 1e-25), "float32": (1.0, 1e25, 1e-25)}
SCALES["float64"] = (1.0, 1e200, 1e-200)
KINDS = {
    "spread": [1, -2, 0.5, 3, -1, 2, 0.25, -3],
    "equal": [2.0] * 8,
    "zero": [0.0] * 8,
    "offset": [100, 101, 99, 102, 98, 100, 103, 97],
}


class Statistic(NamedTuple):
    """A function of rows of eight numbers; `degree` is the power of a factor that its result is multiplied by."""

    name: str
    function: Callable[[Any], Any]
    reference: Callable[[Any], Any]
    degree: int = 1
    kinds: tuple[str, ...] = tuple(KINDS)
    budget: float = 8


def _named(name: str, degree: int = 1, **options: Any) -> Statistic:
    there, numpy = getattr(jnp, name), getattr(np, name)
    return Statistic(name, lambda x: there(x, **options), lambda x: numpy(x, **options), degree)


VARIED = ("spread", "offset")
STATISTICS = [
    *map(_named, ("mean", "std", "median", "nanmean", "nanstd", "nanmedian", "average", "ptp", "max", "min")),
    _named("var", 2),
    _named("nanvar", 2),
    *(
        Statistic(f"quantile: {q}", lambda x, q=q: jnp.quantile(x, q), lambda x, q=q: np.quantile(x, q))
        for q in (0.0, 0.3125, 0.5, 1.0)
    ),
    Statistic("percentile", lambda x: jnp.percentile(x, 25), lambda x: np.percentile(x, 25)),
    Statistic("nanquantile", lambda x: jnp.nanquantile(x, 0.75), lambda x: np.nanquantile(x, 0.75)),
    Statistic("norm", jnp.linalg.norm, np.linalg.norm),
    Statistic("cov", lambda x: jnp.cov(x.reshape(2, 4)), lambda x: np.cov(x.reshape(2, 4)), 2),
    Statistic("corrcoef", lambda x: jnp.corrcoef(x.reshape(2, 4)), lambda x: np.corrcoef(x.reshape(2, 4)), 0, VARIED),
]
CASES = [(row, dtype) for row in STATISTICS for dtype in DTYPES]


def limits(dtype: str) -> Any:
    return ml_dtypes.finfo(np.dtype(getattr(ml_dtypes, dtype, dtype)))


def check(found: Any, wanted: Any, budget: float, size: float, dtype: str) -> None:
    """A result out of range may be 0, or infinite, of either sign where products of both were added."""
    found, wanted = np.asarray(found).astype(np.float64), np.asarray(wanted).astype(np.float64)
    ends = limits(dtype)
    wanted = np.where(np.abs(wanted) > float(ends.max), np.sign(wanted) * INF, wanted)
    error = np.where((found == wanted) | (np.isinf(found) & np.isinf(wanted)), 0, np.abs(found - wanted))
    least = max(size, float(ends.tiny)) * float(ends.eps)
    assert (error <= budget * least).all(), f"{found} for {wanted}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.sample(60, full=12)
@pytest.mark.parametrize(("row", "dtype"), CASES, ids=[f"{row.name}, {dtype}" for row, dtype in CASES])
def test_statistics(row: Statistic, dtype: str) -> None:
    with xl.enable_x64(dtype == "float64"):
        inputs = [jnp.asarray(np.array(KINDS[k]) * s, dtype) for k in row.kinds for s in SCALES[dtype]]
        compiled, stacked = xl.jit(row.function), xl.jit(xl.vmap(row.function))(jnp.stack(inputs))
        gradients = xl.jit(xl.vmap(xl.grad(lambda x: row.function(x).sum())))(jnp.stack(inputs))
        for i, x in enumerate(inputs):
            exact = np.asarray(x).astype(np.longdouble)
            size = float(np.abs(exact).max() ** row.degree)
            for found in (stacked[i], compiled(x)):
                check(found, row.reference(exact), row.budget, size, dtype)
            if row.degree < 2:
                assert jnp.isfinite(gradients[i]).all()
        exact = np.asarray(inputs[0]).astype(np.longdouble)
        check(row.function(inputs[0]), row.reference(exact), row.budget, 3.0**2, dtype)


BINS = {
    "bincount": lambda x: jnp.bincount(jnp.zeros(len(x), int), x, length=1),
    "histogram": lambda x: jnp.histogram(jnp.zeros(len(x), x.dtype), 1, weights=x)[0],
    "histogram2d": lambda x: jnp.histogram2d(*jnp.zeros((2, len(x)), x.dtype), 1, weights=x)[0],
    "segment_sum": lambda x: segment_sum(x, jnp.zeros(len(x), int), 1),
}


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("name", BINS)
def test_sums_into_bins(name: str, dtype: str) -> None:
    """The terms are far below the rounding error of the sum."""
    found = xl.jit(BINS[name])(jnp.full(5000, 0.125, dtype))
    assert found.dtype == dtype
    check(found, 625.0, 1, 625.0, dtype)


class Density(NamedTuple):
    """A function of a distribution with its parameters, at numbers inside, outside and at the ends of the support."""

    name: str
    parameters: tuple[float, ...] = ()
    budget: float = 60


PLACES = (-1e30, -5.0, -1.0, -1e-3, 0.0, 1e-3, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 7.0, 30.0, 1e5, 1e30)
SHARES = (0.0, 1e-3, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
DENSITIES = [
    Density("beta", (2.0, 3.0)), Density("beta", (1.0, 1.0)), Density("cauchy"), Density("chi2", (4.0,), 200),
    Density("chi2", (2.0,)), Density("expon"), Density("gamma", (2.0,), 200), Density("gamma", (1.0,)),
    Density("gennorm", (1.5,)), Density("gumbel_l"), Density("gumbel_r"), Density("logistic"),
    Density("norm"), Density("pareto", (2.0,)), Density("t", (3.0,)), Density("t", (1e5,), 200),
    Density("truncnorm", (-1.0, 2.0)), Density("uniform"), Density("vonmises", (2.0,), 200),
    Density("wrapcauchy", (0.5,)),
]  # fmt: skip
FUNCTIONS = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
SHAPES = [
    (row, name, dtype)
    for row in DENSITIES
    for name in FUNCTIONS
    for dtype in ("float32", "float64")
    if hasattr(getattr(stats, row.name), name)
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.sample(120, full=24)
@pytest.mark.parametrize(
    ("row", "name", "dtype"), SHAPES, ids=[f"{r.name}{r.parameters}.{n}, {d}" for r, n, d in SHAPES]
)
def test_distributions(row: Density, name: str, dtype: str) -> None:
    with xl.enable_x64(dtype == "float64"):
        places = jnp.asarray(SHARES if name in ("ppf", "isf") else (*PLACES, -INF, INF), dtype)
        parameters = jnp.asarray(row.parameters, dtype) if row.parameters else ()
        function = lambda x: getattr(getattr(stats, row.name), name)(x, *parameters)
        wanted = getattr(getattr(scipy.stats, row.name), name)(np.asarray(places).astype(np.float64), *row.parameters)
        unknown = np.isnan(wanted) | (name.startswith("log") & np.isinf(wanted) & np.isfinite(np.asarray(places)))
        for found in (function(places), xl.jit(function)(places), xl.vmap(function)(places)):
            for one, exact, skipped in zip(np.asarray(found), wanted, unknown, strict=True):
                if not skipped:
                    size = max(abs(float(exact)), 1e-30 if name == "pdf" else 1.0)
                    check(one, exact, row.budget * max(1, abs(np.log(size))), size, dtype)
        assert np.isnan(np.asarray(function(jnp.asarray(np.nan, dtype))))
        if name not in ("ppf", "isf"):
            slopes = np.asarray(xl.vmap(xl.grad(function))(places))
            assert not np.isnan(slopes[np.isfinite(wanted)]).any()
