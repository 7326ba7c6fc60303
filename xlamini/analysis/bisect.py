"""The first operation at which two programs part: jit and eager, float32 and float64, two settings of a flag.

Both are run operation by operation, a jitted function as one compiled program that returns every intermediate value.
Operations are paired by line, operation, iteration, and their order among those; what has no partner is passed over.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from ml_dtypes import finfo

from xlamini.analysis.places import EquationLocation, place_of
from xlamini.analysis.unroll import Straight, straightened
from xlamini.core import Var
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.staging.run.jit.jit_api import jit
from xlamini.transforms.derivatives.diff_args import DiffArgs

Key = tuple[Any, ...]


class Parting(NamedTuple):
    """Where two programs first differ by more than was allowed: the place, and the element that differs most."""

    place: EquationLocation
    index: tuple[int, ...]
    first: float
    second: float
    ulps: float

    def __str__(self) -> str:
        at = f" at index {self.index}" if self.index else ""
        return (
            f"{self.place}\n    {self.place.primitive}{at}: {self.first!r} and {self.second!r}, "
            f"{self.ulps:.3g} units in the last place apart"
        )

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "place": self.place.as_dict(), "index": list(self.index)}


class Bisection(NamedTuple):
    """The answer of `bisect`: where the programs part, if they do, and of how many operations values were compared."""

    found: Parting | None
    compared: int

    def __repr__(self) -> str:
        return f"no difference in {self.compared} operations" if self.found is None else str(self.found)

    def as_dict(self) -> dict[str, Any]:
        return {"found": None if self.found is None else self.found.as_dict(), "compared": self.compared}


def bisect(f: Callable[..., Any], g: Callable[..., Any], ulps: float = 1.0) -> Callable[..., Bisection]:
    """A function that finds the first operation whose results in `f` and in `g` differ by more than `ulps`.

    The result takes the arguments of both. A difference is measured in units in the last place of the less precise
    dtype, at the larger of both values; NaN beside a number is infinitely far. A jitted function is compiled, with all
    its intermediate values as results; another runs operation by operation.

    >>> def f(x):
    ...     y = x + 1.0
    ...     return y - 1.0
    >>> half = lambda x: f(x.astype(xlamini.numpy.float16))
    >>> found = xlamini.debug.bisect(f, half)(xlamini.numpy.float32(0.0004)).found
    >>> found.place.primitive
    'sub'
    """

    @api_boundary
    def compare(*args: Any, **kwargs: Any) -> Bisection:
        others, compared = dict(_results(g, args, kwargs)), 0
        for key, (place, values) in _results(f, args, kwargs):
            if key not in others:
                continue
            compared += 1
            for mine, other in zip(values, others[key][1], strict=False):
                parting = _parting(place, mine, other, ulps)
                if parting is not None:
                    return Bisection(parting, compared)
        return Bisection(None, compared)

    return compare


def _results(
    f: Callable[..., Any], args: Any, kwargs: Any
) -> Iterator[tuple[Key, tuple[EquationLocation, list[np.ndarray]]]]:
    """The results of each operation, with its key, in order."""
    diff = DiffArgs(f, tuple(range(len(args))), args, kwargs, "bisect")
    traced = diff.trace(has_aux=False)
    straight = straightened(traced.jaxpr, diff.operands(traced))
    values = _compiled(straight) if hasattr(f, "lower") else _eager(straight)
    seen: Counter[Key] = Counter()
    for eqn, loops in zip(straight.jaxpr.eqns, straight.loops, strict=True):
        place = place_of(eqn, loops)
        key = place.file, place.line, place.primitive, loops
        seen[key] += 1
        yield (*key, seen[key]), (place, [np.asarray(values[v]) for v in eqn.outvars])


def _eager(straight: Straight) -> dict[Var, Any]:
    values: dict[Var, Any] = {}
    for _ in straight.steps(values):
        pass
    return values


def _compiled(straight: Straight) -> dict[Var, Any]:
    """All values from one program; what the compiler fuses, it may round otherwise than operation by operation."""
    inputs = list(straight.inputs)
    every = [v for eqn in straight.jaxpr.eqns for v in eqn.outvars]

    def run(*leaves: Any) -> list[Any]:
        values: dict[Var, Any] = {}
        for _ in straight._replace(inputs=dict(zip(inputs, leaves, strict=True))).steps(values):
            pass
        return [values[v] for v in every]

    return dict(zip(every, jit(run)(*straight.inputs.values()), strict=True))


def _parting(place: EquationLocation, mine: np.ndarray, other: np.ndarray, ulps: float) -> Parting | None:
    if mine.shape != other.shape or not mine.size or not np.issubdtype(mine.dtype, np.floating):
        return None
    apart = _ulps_apart(mine, other)
    if not (apart > ulps).any():
        return None
    index = np.unravel_index(int(np.argmax(apart)), mine.shape)
    at = tuple(int(i) for i in index)
    return Parting(place, at, float(mine[at]), float(other[at]), float(apart[at]))


def _ulps_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The distance of each pair of elements in units in the last place of the less precise dtype."""
    coarse = max(a.dtype, b.dtype, key=_spacing_at_one)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    largest = np.maximum(np.abs(wide_a), np.abs(wide_b))
    with np.errstate(all="ignore"):
        unit = np.exp2(np.floor(np.log2(np.maximum(largest, np.finfo(np.float32).tiny)))) * _spacing_at_one(coarse)
        apart = np.abs(wide_a - wide_b) / unit
    same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
    return np.where(same, 0.0, np.where(np.isfinite(apart), apart, np.inf))


def _spacing_at_one(dtype: Any) -> float:
    return float(finfo(dtype).eps)
