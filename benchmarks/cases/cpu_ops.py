"""Operations that XLA's CPU backend compiles to slow code: jitted, on one million float32 values."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cases.kernels import normal
from benchmarks.timing import Measurement, Settings, each_per_call

FAST, SORTED = 0.2, 0.35


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure elementwise functions, scans and searches, then operations that sort."""
    jax = load()
    rows = _measured(jax, _elements(jax), settings, FAST)
    return rows + _measured(jax, _sorts(jax), settings, SORTED)


def _measured(
    jax: ModuleType, functions: dict[str, Callable[..., Any]], settings: Settings, target: float
) -> list[Measurement]:
    x = jax.device_put(normal(1_000_000))
    compiled = {what: jax.jit(fun) for what, fun in functions.items()}
    calls = [(f"1M float32: {what}", lambda f=f: f(x)) for what, f in compiled.items()]
    return each_per_call(jax, calls, settings, target)


def _elements(jax: ModuleType) -> dict[str, Callable[..., Any]]:
    jnp, lax = jax.numpy, jax.lax
    special = importlib.import_module(f"{jax.__name__}.scipy.special")
    return {
        "sin": jnp.sin,
        "cos": jnp.cos,
        "tan": jnp.tan,
        "atan2": lambda x: jnp.arctan2(x, 1 - x),
        "arcsin": lambda x: jnp.arcsin(x / 8),
        "cbrt": jnp.cbrt,
        "cummax": lax.cummax,
        "argmax": jnp.argmax,
        "lgamma": special.gammaln,
        "digamma": special.digamma,
    }


def _sorts(jax: ModuleType) -> dict[str, Callable[..., Any]]:
    jnp = jax.numpy
    return {
        "sort": jnp.sort,
        "argsort": jnp.argsort,
        "median": jnp.median,
        "unique": lambda x: jnp.unique(x, size=1_000_000),
        "cumsum": jnp.cumsum,
        "cumprod": jnp.cumprod,
    }
