"""Sweeps of scipy.special."""
from __future__ import annotations

from typing import Any

import mpmath as mp
import scipy.special as reference

from tests.sweeps.activations import normal, normal_density
from tests.sweeps.elementary import row
from tests.sweeps.sweep import Sweep
from xlamini.scipy import special


def of_scipy(name: str, exact: Any, slope: Any = None, *domain: float) -> Sweep:
    """A row of a function that SciPy has under the same name."""
    return row(f"scipy.special.{name}", getattr(special, name), exact, getattr(reference, name), slope, *domain)


def log_normal(x: Any) -> Any:
    return mp.log(normal(x)) if x < 0 else mp.log1p(-normal(-x))


SPECIAL = [
    of_scipy("erf", mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), -1e6, 1e6),
    of_scipy("erfc", mp.erfc, lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x), -1e6, 1e6),
    of_scipy("erfinv", mp.erfinv, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2), -1, 1),
    of_scipy("ndtr", normal, normal_density, -1e4, 1e4),
    of_scipy("log_ndtr", log_normal, lambda x: normal_density(x) / normal(x), -1e4, 1e4),
    of_scipy("gammaln", lambda x: mp.re(mp.loggamma(x)), mp.digamma, 1e-30, 1e30),
    of_scipy("gamma", mp.gamma, lambda x: mp.gamma(x) * mp.digamma(x), 1e-30, 170),
    of_scipy("digamma", mp.digamma, lambda x: mp.polygamma(1, x), 1e-18, 1e18),
    of_scipy("i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), None, -1e4, 1e4),
    of_scipy("i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), None, -1e4, 1e4),
    of_scipy("entr", lambda x: -x * mp.log(x), lambda x: -1 - mp.log(x), 0, 1e30),
    of_scipy("logit", lambda x: mp.log(x / (1 - x)), lambda x: 1 / (x * (1 - x)), 0, 0.999999),
    of_scipy("exp1", mp.e1, lambda x: -mp.exp(-x) / x, 1e-30, 700),
    of_scipy("expi", mp.ei, lambda x: mp.exp(x) / x, -80, 80),
]
