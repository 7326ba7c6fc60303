"""A sweep: a function, a reference of more digits, and the inputs for each dtype.

    Sweep("numpy.sinh", jnp.sinh, exactly(mpmath.sinh, np.sinh), reals(), slope=exactly(mpmath.cosh))

Functions of whole arrays (of linear algebra, statistics) are sweeps as well: `inputs` then gives lists of operands, and
`reference` is the function on the same operands in longdouble, or with numbers of mpmath. How many ulp each may be off
is in budgets.json, which `python -m tests.sweeps.report --record` writes for sweeps that are not there yet.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

Operands = Sequence[np.ndarray]


@dataclass(frozen=True)
class Sweep:
    """One row of the table; `name` is the public path below xlamini, with what is special about it after a colon."""

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    """`reference(*operands)`, elements exact or of more digits: mpmath's numbers, or floats of a wider dtype."""
    inputs: Callable[[str], Sequence[Operands]]
    """`inputs(dtype)`: lists of operands, each list one call."""
    slope: Callable[..., Any] | None = None
    """The derivative in the first operand, as `reference` is; elementwise functions only."""
    dtypes: Sequence[str] = ("float16", "bfloat16", "float32", "float64")
    by_parts: bool = False
    """Whether each part of a complex result is measured in its own ulp, and not in those of the larger part."""

    def __repr__(self) -> str:
        return self.name


def errors(found: np.ndarray, exact: np.ndarray, *, by_parts: bool = False) -> np.ndarray:
    """The error of each element in ulp of the exact result; infinite for a wrong infinity or NaN.

    Subnormal results may be 0 or the smallest normal number, as XLA lets the CPU flush them.
    """
    if found.dtype.kind != "c":
        return _of_reals(found, exact)
    parts = [(found.real, _each(exact, lambda v: v.real)), (found.imag, _each(exact, lambda v: v.imag))]
    if by_parts:
        return np.maximum(*(_of_reals(f, e) for f, e in parts))
    size = _each(exact, abs)
    return np.maximum(*(_of_reals(f, e, size) for f, e in parts))


def _of_reals(found: np.ndarray, exact: np.ndarray, size: np.ndarray | None = None) -> np.ndarray:
    limits = ml_dtypes.finfo(found.dtype)
    size = exact if size is None else size
    each = [_error(*v, limits) for v in zip(found.ravel(), exact.ravel(), size.ravel(), strict=True)]
    return np.array(each).reshape(found.shape)


def _error(found: Any, exact: Any, size: Any, limits: Any) -> float:
    if exact is None or size is None:
        return 0.0
    number, exact, size = float(found), mpmath.mpf(exact), abs(mpmath.mpf(size))
    largest, tiny = float(limits.max), float(limits.tiny)
    if mpmath.isnan(exact) or np.isnan(number):
        return 0.0 if mpmath.isnan(exact) and np.isnan(number) else np.inf
    if abs(exact) > largest:
        return 0.0 if np.sign(number) == mpmath.sign(exact) and abs(number) >= largest else np.inf
    if np.isinf(number):
        return np.inf
    if max(abs(number), abs(exact)) <= 2 * tiny:
        return 0.0
    unit = mpmath.ldexp(float(limits.eps), int(mpmath.floor(mpmath.log(max(min(size, largest), tiny), 2))))
    return float(abs(number - exact) / unit)


def _each(values: np.ndarray, function: Callable[[Any], Any]) -> np.ndarray:
    out = np.empty(values.shape, object)
    out.ravel()[:] = [None if v is None else function(mpmath.mpmathify(v)) for v in values.ravel()]
    return out


# --- references


def exactly(function: Callable[..., Any], limits: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The reference that takes numbers of mpmath one by one; `limits` is NumPy's function for infinities and zeros.

    None where mpmath has no number, for a pole or one that it cannot compute: any result will do.
    """

    def one(*numbers: Any) -> Any:
        if any(v == 0 or not np.isfinite(v) for v in numbers):
            if limits is None:
                return None
            with np.errstate(all="ignore"):
                return mpmath.mpmathify(limits(*(np.complex128(v) if isinstance(v, complex) else v for v in numbers)))
        try:
            found = function(*(mpmath.mpmathify(v) for v in numbers))
        except (ZeroDivisionError, ValueError, OverflowError, mpmath.libmp.NoConvergence):
            return None
        return None if mpmath.isnan(found) else found

    def reference(*operands: np.ndarray) -> np.ndarray:
        out = np.empty(operands[0].shape, object)
        with mpmath.workdps(60):
            out.ravel()[:] = [one(*v) for v in zip(*(wide(x).ravel().tolist() for x in operands), strict=True)]
        return out

    return reference


def wide(x: np.ndarray) -> np.ndarray:
    """The same numbers as Python's, in float64 or complex128."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# --- inputs

_MARKS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.14159265, 4.7123889, 6.0, 8.5, 10.0, 13.0, 17.3, 20.0, 30.0)
_MARKS += (40.0, 60.0, 80.0, 87.0, 88.5, 90.0, 100.0, 103.0, 300.0, 700.0, 709.5, 712.0, 744.0, 1000.0)


def reals(low: float = -np.inf, high: float = np.inf, *, step: int = 2) -> Callable[[str], list[list[np.ndarray]]]:
    """Inputs of one operand between `low` and `high`: zeros, infinities, powers of ten, the dtype's ends, and marks."""
    return lambda dtype: [[axis(dtype, low, high, step)]]


def axis(dtype: str, low: float = -np.inf, high: float = np.inf, step: int = 2) -> np.ndarray:
    """The real numbers of `reals`."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    limits = ml_dtypes.finfo(kind)
    decades = [10.0**k * m for k in range(-30, 31, step) for m in (1, 3.7)]
    near_one = [1 - float(limits.eps) / 2, 1 + float(limits.eps), 1 - 2.0**-6, 1 + 2.0**-6, 0.9, 1.1]
    ends = [0.0, float(limits.tiny), float(limits.max), float(limits.eps), np.inf]
    with np.errstate(over="ignore"):
        sizes = np.array([*decades, *_MARKS, *near_one, *ends]).astype(kind)
    sizes = sizes[(sizes == 0) | (np.abs(sizes) >= limits.tiny)]
    values = np.unique(np.concatenate([sizes, -sizes]))
    values = np.append(values, np.asarray(-0.0, kind)) if low <= 0 <= high else values
    return values[(wide(values) >= low) & (wide(values) <= high)]


def complexes(*sizes: float) -> Callable[[str], list[list[np.ndarray]]]:
    """Inputs of one complex operand, whose parts have these sizes and both signs."""
    parts = sizes or (1e-30, 1e-10, 1e-5, 0.3, 1.0, 2.5, 10.0)

    def inputs(dtype: str) -> list[list[np.ndarray]]:
        line = np.array([*parts, *(-v for v in parts)])
        x, y = np.meshgrid(line, line)
        return [[(x + 1j * y).ravel().astype(dtype)]]

    return inputs
