"""Rows of scipy.special, beside SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as reference

from tests.rows.row import COMPLEXES, Arg, Row, singles
from xlamini.scipy import special

Domain = tuple[float, float]
COSTLY: dict[str, Any] = {"dtypes": ("float64",), "order": 1}  # loops, which XLA takes long to compile
TOLERANCE = {"bfloat16": 2e-2, "float16": 3e-3, "float32": 1e-5, "float64": 1e-11, "complex64": 1e-5}
WIDE = ("float32", "float64")
DEGREES, ORDERS = np.array([0, 1, 2, 3], "int32"), np.array([0, 1, -1, 2], "int32")


def _row(name: str, *domains: Domain, fixed: int = 0, like: Callable[..., Any] | None = None, **options: Any) -> Row:
    """A function beside SciPy's of its name, on arrays in these domains; no derivatives in the first `fixed`."""
    samples = [[Arg((2, 3), domain=d, diff=i >= fixed) for i, d in enumerate(domains)]]
    function = getattr(special, name)
    options.setdefault("samples", singles(domain=domains[0]) if len(domains) == 1 else samples)
    options.setdefault("tolerance", TOLERANCE)
    return Row(f"scipy.special.{name}", function, like or getattr(reference, name), **options)


def _whole(domain: Domain) -> Arg:
    return Arg((2, 3), domain=domain, dtype="int32")


def _stacked(function: Callable[..., Any]) -> Callable[..., Any]:
    def stacked(x: Any) -> Any:
        first, second = function(x)
        return first + 2 * second

    return stacked


ERRORS = [
    _row("erf", (-2, 2)),
    _row("erfc", (-2, 2)),
    _row("erfcx", (-2, 5)),
    _row("erfinv", (-0.9, 0.9)),
    _row("dawsn", (-6, 6)),
    _row("wofz", (-4, 4), dtypes=COMPLEXES, order=1),
    _row("ndtr", (-4, 4)),
    _row("log_ndtr", (-20, 4), tolerance={**TOLERANCE, "float16": 1e-2}),
    _row("ndtri", (0.02, 0.98)),
    _row("owens_t", (-2, 2), (-2, 2)),
]
GAMMAS = [
    _row("gamma", (0.3, 4)),
    Row(
        "scipy.special.gamma: complex",
        special.gamma,
        reference.gamma,
        samples=singles(),
        dtypes=COMPLEXES,
        differentiable=False,
        tolerance={"complex64": 2e-5, "complex128": 1e-12},
    ),
    _row("gammaln", (0.3, 4)),
    _row("gammasgn", (0.3, 4), differentiable=False),
    _row("loggamma", (0.3, 4)),
    Row(
        "scipy.special.loggamma: complex",
        special.loggamma,
        reference.loggamma,
        samples=singles(),
        dtypes=COMPLEXES,
        differentiable=False,
        tolerance={"complex64": 2e-5, "complex128": 1e-12},
    ),
    _row("digamma", (0.5, 4)),
    _row("gammainc", (0.3, 4), (0.3, 4), fixed=1, **COSTLY),
    _row("gammaincc", (0.3, 4), (0.3, 4), fixed=1, **COSTLY),
    _row("beta", (0.3, 4), (0.3, 4)),
    _row("betaln", (0.3, 20), (0.3, 20)),
    _row("betainc", (0.3, 4), (0.3, 4), (0.1, 0.9), fixed=2, **COSTLY),
    _row("poch", (0.5, 4), (0.5, 3)),
    _row("factorial", (0.5, 4)),
    _row("comb", (5, 8), (1, 4), order=1, tolerance={**TOLERANCE, "float32": 1e-4}),
    _row(
        "polygamma",
        samples=[[_whole((1, 3)), Arg(domain=(0.6, 3))]],
        like=lambda n, x: reference.polygamma(n, x).astype(x.dtype),
        dtypes=WIDE,
    ),
    Row(
        "scipy.special.multigammaln",
        lambda a: special.multigammaln(a, 3),
        lambda a: reference.multigammaln(a, 3),
        samples=[[Arg((2, 3), domain=(1.5, 6))]],
        tolerance=TOLERANCE,
    ),
    _row("zeta", (1.3, 5), (0.5, 4), dtypes=WIDE, tolerance={"float32": 1e-4, "float64": 1e-11}),
    Row("scipy.special.bernoulli", lambda: special.bernoulli(6), lambda: reference.bernoulli(6), samples=[[]],
        dtypes=("float32",), differentiable=False, batched=False, tolerance=TOLERANCE),
]  # fmt: skip
INTEGRALS = [
    _row("exp1", (0.1, 6)),
    _row("expi", (0.6, 30), order=1),
    _row("spence", (0.1, 6)),
    _row("expn", samples=[[_whole((0, 5)), Arg(domain=(0.2, 4))]]),
    Row("scipy.special.sici", _stacked(special.sici), _stacked(reference.sici), samples=singles(domain=(0.5, 9)),
        tolerance=TOLERANCE),
    Row("scipy.special.fresnel", _stacked(special.fresnel), _stacked(reference.fresnel),
        samples=singles(domain=(-3, 3)), tolerance=TOLERANCE),
]  # fmt: skip
BESSEL = [
    _row("i0", (-4, 4)),
    _row("i0e", (-12, 12)),
    _row("i1", (-4, 4)),
    _row("i1e", (-12, 12)),
    Row(
        "scipy.special.bessel_jn",
        lambda z: special.bessel_jn(z, v=3),
        lambda z: np.stack([reference.jv(k, z).astype(z.dtype) for k in range(4)]),
        samples=singles(domain=(-6, 6)),
        tolerance=TOLERANCE,
        order=1,
    ),
]
HYPERGEOMETRIC = [
    _row("hyp1f1", (0.5, 3), (0.5, 3), (-3, 3), order=1),
    _row("hyp2f1", (0.5, 3), (0.5, 3), (3.5, 7), (-0.7, 0.7), order=1),
    Row(
        "scipy.special.sph_harm_y",
        lambda theta, phi: special.sph_harm_y(DEGREES, ORDERS, theta, phi),
        lambda theta, phi: reference.sph_harm_y(DEGREES, ORDERS, theta, phi),
        samples=[[Arg((4,), domain=(0.3, 2.5)), Arg((4,), domain=(0, 6))]],
        dtypes=WIDE,
        tolerance={"complex64": 1e-5, "float32": 1e-5, "float64": 1e-12},
        order=1,
    ),
]
LOGARITHMS = [
    _row("entr", (0.2, 3)),
    _row("kl_div", (0.5, 3), (0.5, 3)),
    _row("rel_entr", (0.5, 3), (0.5, 3)),
    _row("xlogy", (-2, 2), (0.3, 3), tolerance={**TOLERANCE, "bfloat16": 5e-2}),
    _row("xlog1py", (-2, 2), (-0.5, 3), tolerance={**TOLERANCE, "bfloat16": 5e-2}),
    _row("logit", (0.1, 0.9), tolerance={**TOLERANCE, "bfloat16": 5e-2, "float16": 6e-3}),
    _row("expit", (-4, 4)),
    _row("boxcox", (0.3, 3), (-2, 2)),
    _row("boxcox1p", (-0.5, 3), (-2, 2)),
    Row("scipy.special.softmax", special.softmax, reference.softmax, samples=[[Arg((2, 3))]], tolerance=TOLERANCE),
    Row(
        "scipy.special.log_softmax",
        lambda x: special.log_softmax(x, axis=1),
        lambda x: reference.log_softmax(x, axis=1),
        samples=[[Arg((2, 3))]],
        tolerance={**TOLERANCE, "bfloat16": 5e-2, "float16": 6e-3},
    ),
    Row("scipy.special.logsumexp", special.logsumexp, reference.logsumexp, samples=[[Arg((2, 3))]],
        tolerance={**TOLERANCE, "bfloat16": 5e-2, "float16": 6e-3}),
]  # fmt: skip

ROWS = [*ERRORS, *GAMMAS, *INTEGRALS, *BESSEL, *HYPERGEOMETRIC, *LOGARITHMS]
