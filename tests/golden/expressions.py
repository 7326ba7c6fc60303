"""Expressions whose values, shapes, dtypes and weak types must be JAX's: expressions/*.txt, JAX's results in *.json.

A file of expressions has, line by line:

    # linalg                      a family of expressions
    # linalg ~ 1e-4               the same, with a relative and absolute tolerance for what is not float64
    A = jnp.eye(3) * 2            a name for the rest of the file
    jnp.linalg.det(A)             an expression

`x` is float32[2,3], `xs` has special floats, `i3` is int32[3]. With `#x64` as its first line a file has 64-bit dtypes.
"""
from __future__ import annotations

import importlib
import math
import re
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).with_suffix("")
FILES = sorted(path.stem for path in FOLDER.glob("*.txt"))
MODULES = {
    "jnp": "numpy",
    "lax": "lax",
    "nn": "nn",
    "random": "random",
    "image": "image",
    "ops": "ops",
    "tree": "tree",
    "dlpack": "dlpack",
    "flatten_util": "flatten_util",
    "lax_linalg": "lax.linalg",
    "initializers": "nn.initializers",
    **{name: f"scipy.{name}" for name in ("special", "stats", "signal", "ndimage", "interpolate", "integrate")},
    **{f"scipy_{name}": f"scipy.{name}" for name in ("linalg", "fft", "optimize")},
    "sparse": "scipy.sparse.linalg",
    "transform": "scipy.spatial.transform",
    "vq": "scipy.cluster.vq",
}


class Expression(NamedTuple):
    """An expression, its family, and the tolerance of that family."""

    family: str
    text: str
    tolerance: float | None


def needs_x64(file: str) -> bool:
    """Whether the expressions of a file are computed with 64-bit dtypes on."""
    return _lines(file)[0] == "#x64"


def expressions(file: str) -> list[Expression]:
    """Every expression of a file, in order."""
    found, family, tolerance = [], file, None
    for line in _lines(file):
        if line.startswith("# "):
            family, _, number = line[2:].partition(" ~ ")
            tolerance = float(number) if number else None
        elif not line.startswith("#") and not _definition(line):
            found.append(Expression(family, line, tolerance))
    return found


def names(jax: ModuleType, file: str) -> dict[str, Any]:
    """What the expressions of a file may name, from any library that has JAX's names."""
    known: dict[str, Any] = {"np": np, "math": math, "jax": jax, "grad": jax.grad, "vmap": jax.vmap, "jit": jax.jit}
    known.update(_samples(jax))
    for name, module in MODULES.items():
        if any(re.search(rf"\b{name}\.", line) for line in _lines(file)):
            known[name] = importlib.import_module(f"{jax.__name__}.{module}")
    for name, text in filter(None, map(_definition, _lines(file))):
        known[name] = eval(text, known)
    return known


def _samples(jax: ModuleType) -> dict[str, Any]:
    jnp, inf = jax.numpy, math.inf
    return {
        "x": jnp.arange(6.0).reshape(2, 3),
        "i3": jnp.arange(3),
        "xs": jnp.array([-inf, -100.0, -1.0, -0.0, 0.0, 1.0, 100.0, inf, math.nan]),
        "finite": jnp.array([-100.0, -1.0, -0.5, 0.0, 0.5, 2.0, 100.0]),
    }


def described(value: Any) -> Any:
    """A result as JSON: dtype, weak type, shape and elements of each array in it."""
    if isinstance(value, list | tuple):
        return [described(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.dtype | type):
        return str(np.dtype(value))
    array = np.asarray(value)
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64).ravel()
    elements = [[v.real, v.imag] for v in wide] if wide.dtype.kind == "c" else wide.tolist()
    weak = bool(getattr(value, "weak_type", False))
    return {"dtype": str(value.dtype), "weak": weak, "shape": list(array.shape), "elements": elements}


def _lines(file: str) -> list[str]:
    return [line for line in (FOLDER / f"{file}.txt").read_text().splitlines() if line]


def _definition(line: str) -> tuple[str, str] | None:
    found = re.match(r"(\w+) = (.*)", line)
    return (found[1], found[2]) if found else None
