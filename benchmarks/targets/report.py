"""The comparisons as a Markdown table of ratios, and what of them misses the bar."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.records import Record
from benchmarks.table import aligned
from benchmarks.targets.counts import Comparison, Counts

COLUMNS = ("program", "target", "count", "xlamini", "JAX", "ratio", "bytes", "memory", "operands of products")
WORST, MEAN = 1.02, 0.95
"""The bar: no program above the first in cycles, kernels or memory, and the geometric mean at most the second."""


def report(comparisons: Sequence[Comparison]) -> str:
    """The table, a line for each target that says how its programs do, and the errors."""
    targets = dict.fromkeys(each.target for each in comparisons)
    summaries = [_summary(target, [each for each in comparisons if each.target == target]) for target in targets]
    errors = [
        f"{each.program} for {each.target} failed with {library}: {error}"
        for each in comparisons
        for library, error in each.errors.items()
    ]
    table = aligned([COLUMNS, *map(_cells, comparisons)])
    return "\n".join([*table, "", *summaries, *([""] if errors else []), *errors])


def records_of(comparisons: Sequence[Comparison]) -> list[Record]:
    """The comparisons as rows of results, without those of which both libraries failed."""
    return [
        Record("targets", each.program, numbers, each.speed, WORST, each.target)
        for each in comparisons
        if (numbers := {library: _numbers(each, library) for library in each.counts if library not in each.errors})
    ]


def _numbers(each: Comparison, library: str) -> dict[str, float]:
    return {what: getattr(each.counts[library], what) for what in (each.speed, "bytes", "memory")}


def missed(each: Comparison) -> list[str]:
    """The counts of a program that are above the bar."""
    return [what for what in (each.speed, "memory") if (each.ratio(what) or 0) > WORST]


def _summary(target: str, comparisons: Sequence[Comparison]) -> str:
    ratios = [ratio for each in comparisons if (ratio := each.ratio(each.speed))]
    if not ratios:
        return f"{target}: nothing compiled with both libraries."
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    above = [f"{each.program} ({', '.join(missed(each))})" for each in comparisons if missed(each)]
    verdict = f"above {WORST}: {', '.join(above)}" if above else f"none is above {WORST}"
    return (
        f"{target}: geometric mean of {comparisons[0].speed} {mean:.2f} over {len(ratios)} programs "
        f"(<= {MEAN} {'met' if mean <= MEAN else 'MISSED'}); {verdict}."
    )


def _cells(each: Comparison) -> tuple[str, ...]:
    speeds = (_number(each.counts[library], each.speed) for library in ("xlamini", "jax"))
    ratios = (_ratio(each.ratio(what)) for what in (each.speed, "bytes", "memory"))
    return each.program, each.target, each.speed, *speeds, *ratios, _products(each)


def _number(counts: Counts | str, what: str) -> str:
    return "failed" if isinstance(counts, str) else f"{getattr(counts, what):,}"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _products(each: Comparison) -> str:
    """The operand dtypes, of both libraries where they differ."""
    ours, theirs = (_dtypes(each.counts[library]) for library in ("xlamini", "jax"))
    return ours if ours == theirs or not theirs else f"{ours}; JAX {theirs}"


def _dtypes(counts: Counts | str) -> str:
    if isinstance(counts, str):
        return ""
    return ", ".join(f"{many} {dtypes}" for dtypes, many in sorted(counts.products.items()))
