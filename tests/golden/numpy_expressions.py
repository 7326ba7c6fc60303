"""Expressions of jax.numpy and jax.nn whose values, shapes and dtypes must be JAX's: numpy_expressions.txt.

`x` is float32[2,3], `xs` has special floats, `i3` is int32[3].
"""
from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


def expressions() -> list[tuple[str, str]]:
    """Every expression of numpy_expressions.txt with its family, which a line with # names."""
    found, family = [], ""
    for line in filter(None, Path(__file__).with_suffix(".txt").read_text().splitlines()):
        if line.startswith("# "):
            family = line[2:]
        else:
            found.append((family, line))
    return found


def names(jax: ModuleType) -> dict[str, Any]:
    """What expressions may name, from any library that has JAX's names."""
    jnp = jax.numpy
    inf = math.inf
    return {
        "np": np,
        "math": math,
        "jnp": jnp,
        "nn": jax.nn,
        "grad": jax.grad,
        "vmap": jax.vmap,
        "x": jnp.arange(6.0).reshape(2, 3),
        "i3": jnp.arange(3),
        "xs": jnp.array([-inf, -100.0, -1.0, -0.0, 0.0, 1.0, 100.0, inf, math.nan]),
        "finite": jnp.array([-100.0, -1.0, -0.5, 0.0, 0.5, 2.0, 100.0]),
    }


def described(value: Any) -> Any:
    """A result as JSON: dtype, weak type, shape and elements of each array in it."""
    if isinstance(value, list | tuple):
        return [described(v) for v in value]
    if isinstance(value, bool | int | float):
        return value
    array = np.asarray(value)
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64).ravel()
    elements = [[v.real, v.imag] for v in wide] if wide.dtype.kind == "c" else wide.tolist()
    return {"dtype": str(value.dtype), "weak": bool(value.weak_type), "shape": list(array.shape), "elements": elements}
