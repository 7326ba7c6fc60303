"""Central finite differences on flat lists of NumPy arrays, with a step and a tolerance for each dtype."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapedArray, Values, float0, is_differentiable

Flat = Callable[[list[Any]], Sequence[Any]]

_STEPS = {8: 1e-5, 4: 1e-2, 2: 0.1, 1: 0.5}
_TOLERANCES = {8: 1e-5, 4: 1e-2, 2: 0.1, 1: 0.5}


def random_like(rng: np.random.RandomState, aval: ShapedArray) -> np.ndarray:
    """Random values of a type: normally distributed floats, small integers."""
    shape, dtype = aval.shape, aval.dtype
    if dtype.kind == "b":
        return np.asarray(rng.rand(*shape) < 0.5)
    if not is_differentiable(aval):
        return np.asarray(rng.randint(0, 4, shape), dtype)
    real = rng.randn(*shape)
    return np.asarray(real + 1j * rng.randn(*shape) if dtype.kind == "c" else real).astype(dtype)


def random_tangent(rng: np.random.RandomState, aval: ShapedArray) -> np.ndarray:
    """A random tangent for a value of this type."""
    return random_like(rng, aval) if is_differentiable(aval) else np.zeros(aval.shape, float0)


def _width(dtype: Any) -> int:
    """Bytes of a real number of this dtype."""
    return np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1)


def step_of(dtypes: Sequence[Any]) -> float:
    """The step of central differences that balances truncation and rounding errors in these dtypes."""
    return _STEPS[min(map(_width, dtypes), default=8)]


def tolerance_of(*dtypes: Any) -> float:
    """The tolerance for a derivative compared with central differences in these dtypes."""
    return _TOLERANCES[min(map(_width, dtypes))]


def directional(fun: Flat, primals: Values, tangents: Values, eps: float) -> list[Any]:
    """The derivative of each output along the tangents, by central differences; float0 for integers."""
    ahead, behind = (fun(_moved(primals, tangents, step)) for step in (eps, -eps))
    return [_slope(np.asarray(x), np.asarray(y), eps) for x, y in zip(ahead, behind, strict=True)]


def _moved(primals: Values, tangents: Values, step: float) -> list[Any]:
    return [
        x if t.dtype == float0 else (np.asarray(x) + step * t).astype(x.dtype)
        for x, t in zip(map(np.asarray, primals), tangents, strict=True)
    ]


def _slope(ahead: np.ndarray, behind: np.ndarray, eps: float) -> np.ndarray:
    if not is_differentiable(ShapedArray(ahead.shape, ahead.dtype)):
        return np.zeros(ahead.shape, float0)
    wide = np.result_type(ahead.dtype, np.float64) if ahead.dtype.kind in "fc" else np.dtype("float64")
    return (ahead.astype(wide) - behind.astype(wide)) / (2 * eps)


def pairing(xs: Values, ys: Values) -> float:
    """The real pairing of cotangents with tangents; float0 pairs to zero."""
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(xs, ys, strict=True)]
    return float(sum(np.sum(_wide(x) * _wide(y)).real for x, y in pairs if float0 not in (x.dtype, y.dtype)))


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")
