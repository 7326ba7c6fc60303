"""Rows of jnp's older families, as tables: reductions, statistics, order, running results, elementwise functions.

A line of a table is a name below `jnp`, NumPy's function if it is not of that name, and the domain or dtypes that are
special about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.rows.reductions import distinct, with_zeros
from tests.rows.row import BOOLS, COMPLEXES, FLOATS, INTS, SIGNEDS, Arg, Row, pairs, singles

LOOSE = {"bfloat16": 5e-2, "float16": 1e-2, "float32": 3e-5, "complex64": 3e-5, "float64": 1e-11, "complex128": 1e-11}
INEXACT = FLOATS + COMPLEXES
REALS = FLOATS + INTS
NUMBERS = REALS + COMPLEXES
ALL = NUMBERS + BOOLS
MATRIX = [[Arg((3, 4), domain=(-2, 2))], [Arg((2, 3, 2), domain=(-2, 2))]]


def own(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A reference whose result takes on the dtype of its argument, if it is inexact."""

    def cast(x: Any, *rest: Any) -> Any:
        out = np.asarray(reference(x, *rest))
        return out.astype(x.dtype) if x.dtype.kind in "fc" and out.dtype.kind == x.dtype.kind else out

    return cast


def row(name: str, reference: Any, samples: Any, dtypes: Any, **options: Any) -> Row:
    options = {"order": 1, "tolerance": LOOSE, **options}
    return Row(f"numpy.{name}", getattr(jnp, name.split(":")[0]), reference, samples, dtypes, **options)


def unary(names: str, domain: tuple[float, float] = (-2, 2), dtypes: Any = INEXACT, **options: Any) -> list[Row]:
    return [row(n, getattr(np, n), singles(domain=domain), dtypes, **options) for n in names.split()]


def binary(names: str, domain: tuple[float, float] = (0.5, 3), dtypes: Any = FLOATS, **options: Any) -> list[Row]:
    return [row(n, getattr(np, n), pairs(domain=domain), dtypes, **options) for n in names.split()]


FLAT = {"differentiable": False, "exact": True}
ELEMENTWISE = [
    *unary("sin cos sinh cosh tanh exp arcsinh sinc"),
    *unary("tan arcsin arccos arctanh asin acos atanh", (-0.9, 0.9), FLOATS),
    *unary("arctan atan asinh expm1 exp2 square negative", dtypes=FLOATS),
    *unary("sqrt log log10 log2 reciprocal", (0.3, 3)),
    *unary("log1p cbrt fabs", (0.3, 3), FLOATS),
    *unary("arccosh acosh", (1.2, 3), FLOATS),
    *unary("abs absolute positive conj conjugate", (0.3, 2), NUMBERS),
    *unary("real imag", dtypes=NUMBERS),
    *unary("angle", (0.3, 2), COMPLEXES + ("float32",), differentiable=False),
    row("i0", own(np.i0), singles(domain=(0.2, 3)), ("float32", "float64")),
    *unary("deg2rad radians rad2deg degrees", dtypes=FLOATS),
    *unary("floor ceil trunc rint round around sign", dtypes=FLOATS, **FLAT),
    *unary("isnan isinf isfinite isneginf isposinf signbit", dtypes=("float32", "float64"), specials=True, **FLAT),
    *unary("iscomplex isreal", dtypes=NUMBERS, **FLAT),
    *unary("logical_not", dtypes=ALL, **FLAT),
    *unary("invert bitwise_not bitwise_invert", dtypes=INTS + BOOLS, **FLAT),
    row("bitwise_count", np.bitwise_count, singles(domain=(0, 99)), SIGNEDS, **FLAT),
    row("nan_to_num", np.nan_to_num, singles(), NUMBERS),
    *binary("add multiply", dtypes=ALL),
    *binary("subtract", dtypes=NUMBERS),
    *binary("divide true_divide power pow", dtypes=INEXACT),
    *binary("float_power", dtypes=("float64", "complex128")),
    *binary("arctan2 atan2 hypot logaddexp logaddexp2 copysign"),
    *binary("maximum minimum fmax fmin", specials=True),
    *binary("equal not_equal less less_equal greater greater_equal", (0, 3), REALS + BOOLS, specials=True, **FLAT),
    *binary("logical_and logical_or logical_xor", (0, 2), ALL, **FLAT),
    *binary("bitwise_and bitwise_or bitwise_xor", (0, 99), INTS + BOOLS, **FLAT),
    *binary("left_shift bitwise_left_shift right_shift bitwise_right_shift", (0, 4), INTS, **FLAT),
    *binary("floor_divide mod remainder fmod", (1, 9), INTS, **FLAT),
    *binary("heaviside nextafter isclose", (0.5, 3), ("float32", "float64"), differentiable=False),
    *binary("allclose array_equal array_equiv", dtypes=REALS, **FLAT),
]


def along(name: str, axis: Any, dtypes: Any, samples: Any = MATRIX, **options: Any) -> Row:
    ours, theirs = getattr(jnp, name), getattr(np, name)
    keep = {"keepdims": options.pop("keepdims")} if "keepdims" in options else {}
    options = {"order": 1, "tolerance": LOOSE, **options}
    return Row(
        f"numpy.{name}: axis {axis}",
        lambda x: ours(x, axis=axis, **keep),
        own(lambda x: theirs(x, axis=axis, **keep)),
        samples,
        dtypes,
        **options,
    )


def each_axis(names: str, dtypes: Any, samples: Any = MATRIX, **options: Any) -> Iterable[Row]:
    for name in names.split():
        for axis in ((0, -1),) if name.startswith("nan") else (None, -1, (0, 1)):
            yield along(name, axis, dtypes, samples, keepdims=axis != (0, 1), **options)


DISTINCT = [[distinct(3, 4)], [distinct(2, 3, 2)]]
WIDE = ("float32", "float64")
REDUCTIONS = [
    *each_axis("sum mean", FLOATS + COMPLEXES),
    *each_axis("nansum nanmean", FLOATS),
    *each_axis("prod nanprod", WIDE, [[with_zeros(3, 4)], [Arg((2, 3, 1), (1, 2))]]),
    *each_axis("max min amax amin ptp nanmax nanmin median nanmedian", FLOATS, DISTINCT),
    *each_axis("var std nanvar nanstd", FLOATS),
    *each_axis("any all count_nonzero", ALL, [[with_zeros(3, 4)]], **FLAT),
    *(along(n, a, REALS, DISTINCT, **FLAT) for n in ("argmax", "argmin", "nanargmax", "nanargmin") for a in (None, 1)),
    *(along(n, a, WIDE, DISTINCT) for n in ("sort", "cumsum", "cumprod", "nancumsum", "nancumprod") for a in (0, -1)),
    along("argsort", 0, REALS, DISTINCT, **FLAT),
    *(along(n, 1, WIDE) for n in ("diff", "trapezoid", "cumulative_sum", "cumulative_prod")),
]


def called(name: str, op: Any, reference: Any, *args: Arg, dtypes: Any = WIDE, **options: Any) -> Row:
    return Row(f"numpy.{name}", op, reference, [list(args)], dtypes, **{"order": 1, "tolerance": LOOSE, **options})


V, W, POINTS = Arg((5,), (-2, 2)), Arg((5,), (0.5, 2)), distinct(6)
MASKED = [
    called(
        f"{n}: where",
        lambda x, n=n: getattr(jnp, n)(x, axis=-1, where=np.arange(4) > 0),
        lambda x, n=n: getattr(np, n)(x, axis=-1, where=np.arange(4) > 0),
        Arg((3, 4), (1, 2)),
    )
    for n in ("sum", "prod", "mean")
]
INITIAL = [
    called(
        f"{n}: initial",
        lambda x, n=n: getattr(jnp, n)(x, axis=-1, initial=2.5),
        lambda x, n=n: getattr(np, n)(x, axis=-1, initial=2.5).astype(x.dtype),
        distinct(3, 4),
    )
    for n in ("sum", "prod", "max", "min")
]
QUANTILES = [
    called(
        f"{n}: {method}",
        lambda x, n=n, m=method, q=q: getattr(jnp, n)(x, q, axis=-1, method=m),
        lambda x, n=n, m=method, q=q: getattr(np, n)(x, np.asarray(q, x.dtype), axis=-1, method=m).astype(x.dtype),
        distinct(3, 5),
        dtypes=WIDE,
    )
    for n, q in (("quantile", 0.3), ("nanquantile", 0.6), ("percentile", 35), ("nanpercentile", 62))
    for method in ("linear", "lower", "higher", "midpoint", "nearest")
]
OTHERS = [
    called("average", lambda x, w: jnp.average(x, weights=w), lambda x, w: np.average(x, weights=w), V, W),
    called(
        "divmod", lambda x, y: jnp.divmod(x, y), np.divmod, Arg((4,), (1, 9)), Arg((4,), (1, 5)), dtypes=INTS, **FLAT
    ),
    called("modf", jnp.modf, np.modf, Arg((4,), (0.1, 0.9))),
    called("clip", lambda x: jnp.clip(x, -1, 1), lambda x: np.clip(x, -1, 1).astype(x.dtype), V, dtypes=FLOATS),
    called("ldexp", lambda x: jnp.ldexp(x, 3), lambda x: np.ldexp(x, 3), V),
    called(
        "where", lambda x, y: jnp.where(np.arange(5) > 2, x, y), lambda x, y: np.where(np.arange(5) > 2, x, y), V, W
    ),
    called("select", lambda x: jnp.select([x > 0], [x], -x), lambda x: np.abs(x), V),
    called(
        "piecewise",
        lambda x: jnp.piecewise(x, [x > 0], [lambda v: v * 2, -1.0]),
        lambda x: np.where(x > 0, x * 2, -1).astype(x.dtype),
        V,
    ),
    called(
        "interp",
        lambda x: jnp.interp(x, np.arange(3.0), np.array([1.0, 4, 2])),
        lambda x: np.interp(x, np.arange(3.0), [1.0, 4, 2]),
        Arg((4,), (0.1, 0.9)),
        dtypes=("float64",),
    ),
    called("ediff1d", jnp.ediff1d, np.ediff1d, V),
    called(
        "lexsort", lambda x, y: jnp.lexsort((x, y)), lambda x, y: np.lexsort((x, y)), POINTS, Arg((6,), (0, 2)), **FLAT
    ),
    called(
        "searchsorted",
        lambda x, v: jnp.searchsorted(jnp.sort(x), v),
        lambda x, v: np.searchsorted(np.sort(x), v),
        POINTS,
        V,
        **FLAT,
    ),
    called("digitize", lambda x: jnp.digitize(x, np.arange(3)), lambda x: np.digitize(x, np.arange(3)), V, **FLAT),
    called(
        "digitize: descending",
        lambda x: jnp.digitize(jnp.round(x), np.arange(3)[::-1]),
        lambda x: np.digitize(np.round(x), np.arange(3)[::-1]),
        V,
        **FLAT,
    ),
    called(
        "bincount",
        lambda x: jnp.bincount(x, length=5),
        lambda x: np.bincount(x, minlength=5),
        Arg((6,), (0, 4)),
        dtypes=("int32",),
        **FLAT,
    ),
    called(
        "nonzero",
        lambda x: jnp.nonzero(x, size=4)[0],
        lambda x: np.pad(np.nonzero(x)[0], (0, 4))[:4],
        with_zeros(5),
        dtypes=("int32", "float32"),
        **FLAT,
    ),
    called(
        "flatnonzero",
        lambda x: jnp.flatnonzero(x, size=4),
        lambda x: np.pad(np.flatnonzero(x), (0, 4))[:4],
        with_zeros(2, 3),
        dtypes=("int32",),
        **FLAT,
    ),
    called(
        "argwhere",
        lambda x: jnp.argwhere(x, size=4),
        lambda x: np.pad(np.argwhere(x), ((0, 4), (0, 0)))[:4],
        with_zeros(2, 3),
        dtypes=("int32",),
        **FLAT,
    ),
    called("partition", lambda x: jnp.sort(jnp.partition(x, 2)[:3]), lambda x: np.sort(x)[:3], POINTS, dtypes=REALS),
    called("argpartition", lambda x: jnp.argpartition(x, 2)[:3], lambda x: np.argsort(x)[:3], POINTS, **FLAT),
    called("sort_complex", jnp.sort_complex, np.sort_complex, V, dtypes=COMPLEXES, differentiable=False),
    called("unique", lambda x: jnp.unique(x, size=6), np.sort, POINTS, dtypes=WIDE),
    called("unique_values", lambda x: jnp.unique_values(x, size=6), np.sort, POINTS, dtypes=WIDE),
    called(
        "unique_counts", lambda x: tuple(jnp.unique_counts(x, size=6)), lambda x: (np.sort(x), np.ones(6, int)), POINTS
    ),
    called(
        "unique_inverse",
        lambda x: tuple(jnp.unique_inverse(x, size=6)),
        lambda x: np.unique(x, return_inverse=True),
        POINTS,
    ),
    called("unique_all", lambda x: tuple(jnp.unique_all(x, size=6)), lambda x: np.unique(x, True, True, True), POINTS),
    called("union1d", lambda x, y: jnp.union1d(x, y, size=6), lambda x, y: np.sort(x), POINTS, POINTS, **FLAT),
    called("intersect1d", lambda x: jnp.intersect1d(x, x[:3], size=3), lambda x: np.sort(x[:3]), POINTS),
    called("setdiff1d", lambda x: jnp.setdiff1d(x, x[:3], size=3), lambda x: np.sort(x[3:]), POINTS),
    called("setxor1d", lambda x: jnp.setxor1d(x, x[:3], size=3), lambda x: np.sort(x[3:]), POINTS),
    called("isin", lambda x: jnp.isin(x, x[1:3]), lambda x: np.isin(x, x[1:3]), POINTS, dtypes=ALL[:-1], **FLAT),
    called(
        "histogram",
        lambda w: jnp.histogram(np.arange(5), 2, weights=w)[0],
        lambda w: np.histogram(np.arange(5), 2, weights=w)[0].astype(w.dtype),
        V,
        linear=True,
    ),
    called(
        "histogram_bin_edges", lambda x: jnp.histogram_bin_edges(x, 3), lambda x: np.histogram_bin_edges(x, 3), POINTS
    ),
    called(
        "histogram2d",
        lambda x, w: jnp.histogram2d(x, x, 2, weights=w)[0],
        lambda x, w: np.histogram2d(x, x, 2, weights=w)[0].astype(w.dtype),
        POINTS,
        Arg((6,)),
        differentiable=False,
    ),
    called(
        "histogramdd",
        lambda x: jnp.histogramdd(x, 2)[0],
        lambda x: np.histogramdd(x, 2)[0].astype(int),
        distinct(6, 2),
        **FLAT,
    ),
    called("cov", jnp.cov, np.cov, Arg((2, 5)), dtypes=("float64", "complex128")),
    called("corrcoef", jnp.corrcoef, np.corrcoef, Arg((2, 5)), dtypes=("float64",)),
    called("gradient", lambda x: jnp.gradient(x, edge_order=2), lambda x: np.gradient(x, edge_order=2), V),
    called(
        "gradient: coordinates",
        lambda x: jnp.gradient(x, np.array([0.0, 1, 3, 4, 7], x.dtype), axis=0),
        lambda x: np.gradient(x, np.array([0.0, 1, 3, 4, 7]), axis=0).astype(x.dtype),
        V,
    ),
    called("unwrap", lambda x: jnp.unwrap(3 * x), lambda x: np.unwrap(3 * x).astype(x.dtype), V),
    called("gcd", jnp.gcd, np.gcd, Arg((3, 1), (-20, 20)), Arg((4,), (1, 20)), dtypes=INTS, **FLAT),
    called("lcm", jnp.lcm, np.lcm, Arg((3, 1), (-9, 9)), Arg((4,), (1, 9)), dtypes=INTS, **FLAT),
    called("resize", lambda x: jnp.resize(x, (3, 4)), lambda x: np.resize(x, (3, 4)), V, dtypes=ALL, linear=True),
    called(
        "choose",
        lambda x, y: jnp.choose(np.array([0, 1, 1, 0, 0]), [x, y], mode="clip"),
        lambda x, y: np.choose([0, 1, 1, 0, 0], [x, y]),
        V,
        W,
    ),
    called(
        "compress",
        lambda x: jnp.compress(np.array([True, False, True]), x, axis=0, size=2),
        lambda x: x[[0, 2]],
        Arg((4, 2)),
        dtypes=ALL,
    ),
    called("extract", lambda x: jnp.extract(np.arange(5) > 2, x, size=2), lambda x: x[3:], V, dtypes=ALL),
    called("frexp", jnp.frexp, np.frexp, V, differentiable=False),
    called("spacing", jnp.spacing, np.spacing, W, differentiable=False),
    called("fix", jnp.fix, np.trunc, V, **FLAT),
    called("geomspace", lambda x, y: jnp.geomspace(x, y, 4), lambda x, y: np.geomspace(x, y, 4).astype(x.dtype), W, W),
    called("poly", jnp.poly, np.poly, V, dtypes=("float64",)),
    *(called(n, getattr(jnp, n), getattr(np, n), V, W) for n in ("polyadd", "polysub", "polymul")),
    called("polydiv", lambda x, y: jnp.polydiv(x, y)[0], lambda x, y: np.polydiv(x, y)[0], W, Arg((2,), (1, 2))),
    called("polyder", jnp.polyder, np.polyder, V),
    called("polyint", jnp.polyint, np.polyint, V),
    called("polyval", jnp.polyval, np.polyval, V, W, order=2),
    called(
        "polyfit",
        lambda y: jnp.polyfit(np.arange(5.0), y, 2),
        lambda y: np.polyfit(np.arange(5.0), y, 2),
        V,
        dtypes=("float64",),
    ),
    called(
        "roots",
        lambda p: jnp.sort(abs(jnp.roots(p, strip_zeros=False))),
        lambda p: np.sort(abs(np.roots(p))),
        W,
        dtypes=("float64",),
        differentiable=False,
    ),
    called("vander", lambda x: jnp.vander(x, 3), lambda x: np.vander(x, 3).astype(x.dtype), V, dtypes=NUMBERS),
    called(
        "kaiser",
        lambda b: jnp.kaiser(5, b),
        lambda b: np.kaiser(5, b).astype(b.dtype),
        Arg((), (1, 3)),
        dtypes=("float64",),
    ),
    *(
        called(n, lambda x, n=n: x * getattr(jnp, n)(5), lambda x, n=n: x * getattr(np, n)(5), V, dtypes=("float64",))
        for n in ("bartlett", "blackman", "hamming", "hanning")
    ),
]

ROWS = [*ELEMENTWISE, *REDUCTIONS, *MASKED, *INITIAL, *QUANTILES, *OTHERS]
