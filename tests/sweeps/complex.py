"""Sweeps of the elementary functions of complex numbers, whose parts are tiny, ordinary and large."""
from __future__ import annotations

from typing import Any

import mpmath as mp

import xlamini.numpy as jnp
from tests.sweeps.sweep import Sweep, complexes, exactly


def row(name: str, reference: Any, slope: Any, *sizes: float, by_parts: bool = False) -> Sweep:
    """A row of one complex operand."""
    return Sweep(
        f"numpy.{name}: complex", getattr(jnp, name), exactly(reference), complexes(*sizes), exactly(slope),
        ("complex64", "complex128"), by_parts,
    )


TINY_TO_LARGE = 1e-30, 1e-10, 1e-5, 0.3, 1.0, 2.5, 10.0, 95.0, 1e5, 1e20

COMPLEX = [
    row("sin", mp.sin, mp.cos, *TINY_TO_LARGE, by_parts=True),
    row("cos", mp.cos, lambda z: -mp.sin(z), *TINY_TO_LARGE, by_parts=True),
    row("sinh", mp.sinh, mp.cosh, *TINY_TO_LARGE, by_parts=True),
    row("cosh", mp.cosh, mp.sinh, *TINY_TO_LARGE, by_parts=True),
    row("tan", mp.tan, lambda z: 1 / mp.cos(z) ** 2),
    row("tanh", mp.tanh, lambda z: 1 / mp.cosh(z) ** 2),
    row("exp", mp.exp, mp.exp, by_parts=True),
    row("log", mp.log, lambda z: 1 / z, *TINY_TO_LARGE),
    row("log1p", lambda z: mp.log(1 + z), lambda z: 1 / (1 + z), *TINY_TO_LARGE),
    row("expm1", lambda z: mp.exp(z) - 1, mp.exp),
    row("sqrt", mp.sqrt, lambda z: 1 / (2 * mp.sqrt(z)), *TINY_TO_LARGE, by_parts=True),
    row("arcsin", mp.asin, lambda z: 1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z)), *TINY_TO_LARGE),
    row("arccos", mp.acos, lambda z: -1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z)), *TINY_TO_LARGE),
    row("arctan", mp.atan, lambda z: 1 / (1 + z * z), 1e-30, 1e-10, 1e-5, 0.3, 1.0, 2.5, 10.0, 1e5),
    row("arcsinh", mp.asinh, lambda z: 1 / (mp.sqrt(1 + 1j * z) * mp.sqrt(1 - 1j * z)), *TINY_TO_LARGE),
    row("arccosh", mp.acosh, lambda z: 1 / (mp.sqrt(z - 1) * mp.sqrt(z + 1)), *TINY_TO_LARGE),
    row("arctanh", mp.atanh, lambda z: 1 / (1 - z * z), 1e-30, 1e-10, 1e-5, 0.3, 1.0, 2.5, 10.0, 1e5),
]
