"""The values of a run, equation by equation: their range, their NaN and zeros, their distance to float64."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from xlamini.analysis.unroll import straightened
from xlamini.core import Jaxpr, Values, enable_x64, flatten, unflatten
from xlamini.inspection.table import Table
from xlamini.staging.aot.stages import Traced

Results = list[tuple[Any, tuple[int, ...], list[np.ndarray]]]
"""Each equation of a run, the iterations of the loops around it, and its results."""


def values_of(traced: Traced, args: Values, kwargs: dict[str, Any], again: Any, table: Table) -> list[dict[str, Any]]:
    """The section of a run with these arguments; `again(*args, **kwargs)` traces the function for others."""
    precise = _precise(again, args, kwargs)
    found = _results(traced, flatten((args, kwargs))[0])
    exact = precise if precise is not None and len(precise) == len(found) else [None] * len(found)
    rows = _rows(found, table)
    return [
        {"row": row, "iteration": list(loops), **_facts(values[0], other and other[2][0])}
        for row, (_, loops, values), other in zip(rows, found, exact, strict=True)
        if values
    ]


def _rows(results: Results, table: Table) -> Iterator[int | None]:
    """The row of each equation of a run; those of one origin are told apart by their order in an iteration."""
    met = Counter[Any]()
    for eqn, loops, _ in results:
        key = id(eqn.provenance), eqn.primitive.name, loops
        yield table.parent_of(eqn, met[key])
        met[key] += 1


def _results(traced: Traced, leaves: Values) -> Results:
    call = traced._call
    jaxpr: Jaxpr = call.trace.jaxpr
    straight, values = straightened(jaxpr, [*call.trace.captured, *leaves]), dict[Any, Any]()
    return [(eqn, loops, [np.asarray(values[v]) for v in eqn.outvars]) for eqn, loops in straight.steps(values)]


def _precise(again: Any, args: Values, kwargs: dict[str, Any]) -> Results | None:
    """The run in 64 bits; None for a function that fails there."""
    leaves, tree = flatten((args, kwargs))
    with enable_x64(True):
        wide = [_widened(np.asarray(x)) for x in leaves]
        wide_args, wide_kwargs = unflatten(tree, wide)
        try:
            return _results(again(*wide_args, **wide_kwargs), wide)
        except (TypeError, ValueError):
            return None


def _widened(x: np.ndarray) -> np.ndarray:
    return x.astype(np.result_type(x.dtype, np.float64)) if x.dtype.kind in "fc" else x


def _facts(value: np.ndarray, exact: np.ndarray | None) -> dict[str, Any]:
    numbers = value.astype(np.float64) if value.dtype.kind not in "cOV" else np.abs(value).astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    least, most, mean = (float(f(finite)) if finite.size else None for f in (np.min, np.max, np.mean))
    return {
        "min": least,
        "max": most,
        "mean": mean,
        "nan": int(np.isnan(numbers).sum()),
        "inf": int(np.isinf(numbers).sum()),
        "zeros": float(np.mean(numbers == 0)) if numbers.size else 0.0,
        "ulps": None if exact is None else _distance(value, exact),
    }


def _distance(value: np.ndarray, exact: np.ndarray) -> float | None:
    """The largest distance to the precise value, in units in the last place of the largest magnitude."""
    if value.shape != exact.shape or value.dtype.kind != "f" or not value.size:
        return None
    scale = np.spacing(np.max(np.abs(value), initial=0).astype(value.dtype))
    if not (np.isfinite(value).all() and np.isfinite(exact).all() and scale > 0):
        return None
    return float(np.max(np.abs(value.astype(np.float64) - exact)) / scale)
