"""Sweeps of the elementary functions of real numbers."""
from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np

import xlamini.numpy as jnp
from tests.sweeps.sweep import Sweep, exactly, reals
from xlamini import lax


def row(name: str, function: Any, reference: Any, limits: Any, slope: Any = None, *domain: float) -> Sweep:
    """A row of one real operand between two ends."""
    slopes = None if slope is None else exactly(slope)
    return Sweep(name, function, exactly(reference, limits), reals(*domain), slopes)


def of_numpy(name: str, reference: Any, slope: Any, *domain: float) -> Sweep:
    """A row of a function that NumPy has under the same name."""
    return row(f"numpy.{name}", getattr(jnp, name), reference, getattr(np, name), slope, *domain)


def cube_root(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def root_of(x: Any) -> Any:
    """`sqrt(1 - x ** 2)` without its cancellation."""
    return mp.sqrt((1 - x) * (1 + x))


def slope_of_sinc(x: Any) -> Any:
    return -(mp.pi**2) * x / 3 if abs(x) < 1e-15 else (mp.cospi(x) - mp.sincpi(x)) / x


ELEMENTARY = [
    of_numpy("sin", mp.sin, mp.cos),
    of_numpy("cos", mp.cos, lambda x: -mp.sin(x)),
    of_numpy("tan", mp.tan, lambda x: 1 / mp.cos(x) ** 2),
    of_numpy("arcsin", mp.asin, lambda x: 1 / root_of(x), -1, 1),
    of_numpy("arccos", mp.acos, lambda x: -1 / root_of(x), -1, 1),
    of_numpy("arctan", mp.atan, lambda x: 1 / (1 + x * x)),
    of_numpy("sinh", mp.sinh, mp.cosh),
    of_numpy("cosh", mp.cosh, mp.sinh),
    of_numpy("tanh", mp.tanh, lambda x: 1 / mp.cosh(x) ** 2),
    of_numpy("arcsinh", mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x)),
    of_numpy("arccosh", mp.acosh, lambda x: 1 / mp.sqrt((x - 1) * (x + 1)), 1),
    of_numpy("arctanh", mp.atanh, lambda x: 1 / ((1 - x) * (1 + x)), -1, 1),
    of_numpy("exp", mp.exp, mp.exp),
    of_numpy("exp2", lambda x: mp.mpf(2) ** x, lambda x: mp.log(2) * mp.mpf(2) ** x),
    of_numpy("expm1", mp.expm1, mp.exp),
    of_numpy("log", mp.log, lambda x: 1 / x, 0),
    of_numpy("log2", lambda x: mp.log(x, 2), lambda x: 1 / (x * mp.log(2)), 0),
    of_numpy("log10", mp.log10, lambda x: 1 / (x * mp.log(10)), 0),
    of_numpy("log1p", mp.log1p, lambda x: 1 / (1 + x), -1),
    of_numpy("sqrt", mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), 0),
    of_numpy("cbrt", cube_root, lambda x: 1 / (3 * cube_root(x) ** 2)),
    of_numpy("sinc", mp.sincpi, slope_of_sinc, -0.9, 0.9),
    of_numpy("reciprocal", lambda x: 1 / x, lambda x: -1 / x**2),
    of_numpy("square", lambda x: x * x, lambda x: 2 * x),
    row("lax.rsqrt", lax.rsqrt, lambda x: 1 / mp.sqrt(x), lambda x: np.inf if x == 0 else 0, None, 1e-300),
]
