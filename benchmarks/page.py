"""RESULTS.md, made of the newest record of each row: `python -m benchmarks.page` writes it, and `figures.py`'s tables.

The cases of few rows are in tables, the others are lists of ratios. What misses its bar is marked in both.
"""

from __future__ import annotations

import itertools
import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence

from benchmarks import figures
from benchmarks.harness import ROOT
from benchmarks.records import Record, newest
from benchmarks.table import aligned, format_value

PAGE = ROOT / "benchmarks" / "RESULTS.md"
GROUPS = {
    "models": (
        *("import_time", "memory", "first_call", "transformer", "transformer_24", "transformer_48"),
        *("second_process", "second_process_unasked", "checks", "inspect_report"),
        *("ecosystem_linen", "ecosystem_nnx", "ecosystem_ode", "ecosystem_nuts"),
    ),
    "programs": ("chain", "rewrites", "scan", "control_flow", "sharded", "half_precision", "programs"),
    "eager": ("dispatch", "eager_ops", "eager_transforms"),
    "kernels": ("kernels", "cpu_ops"),
    "layers": ("networks",),
    "tpu": ("targets",),
    "gpu": ("targets",),
}
"""By name the cases of a part of the page, and of a picture of the site. Others are in the data only."""

TITLES = {
    "models": "Whole models",
    "programs": "Long programs, loops, many devices",
    "eager": "Calls outside of jit",
    "kernels": "Single operations and kernels",
    "layers": "Layers of networks",
    "tpu": "Programs compiled for a TPU v5e, by XLA's estimate of cycles",
    "gpu": "Programs compiled for an H200, by the number of kernels",
}
FEW = 6
"""A case of at most so many rows is in a table."""
EVEN = 0.02
"""Rows no further from 1 are as fast; in a list they are counted only."""

HEADS = ("date", "what", "xlamini", "JAX", "ratio", "bar")
RELATIVE = "JAX"
"""The unit of a number of which only the ratio is known."""

HEAD = """# Results

The newest row of each case beside JAX, made of `results/*.jsonl` by `python -m benchmarks.page`; do not edit it. The
data has medians, ranges, versions, machines and older rows, also of `scale` (docs/scale.md), `rewrite_costs`, and of
measurements that no command repeats (`by_hand`). A ratio is xlamini's time, cycles or kernels by JAX's, so below 1 is
better. README.md says what the cases are, [notes.md](notes.md) what bounds them and what was tried."""


def group(records: Iterable[Record], name: str) -> list[Record]:
    """The records of a part, in the order of its cases; those that ran on an accelerator are apart."""
    places = {case: place for place, case in enumerate(GROUPS[name])}
    platform = name if name in ("tpu", "gpu") else "cpu"
    found = [each for each in records if each.case in places and each.platform.startswith(platform)]
    return sorted(found, key=lambda each: places[each.case])


def summary(records: Iterable[Record]) -> str:
    """How many rows are not slower than JAX, and which are, as a paragraph of Markdown."""
    ratios = [(ratio, each.row) for each in records if (ratio := each.ratio()) is not None]
    slower = sorted((pair for pair in ratios if pair[0] > 1 + EVEN), reverse=True)
    worst = "; ".join(f"{row} {ratio:.2f}" for ratio, row in slower) or "none"
    return f"{len(ratios) - len(slower)} of {len(ratios)} are at most {1 + EVEN} of JAX. Above it: {worst}."


def page(records: Sequence[Record]) -> str:
    """The text of RESULTS.md."""
    compared = [each for each in records if each.ratio() is not None]
    parts = {TITLES[name]: group(compared, name) for name in GROUPS}
    parts["On a GPU"] = [each for each in compared if each.platform == "cuda"]
    shown = [each for rows in parts.values() for each in rows]
    return "\n\n".join([HEAD, _runs(shown), *(_part(title, rows) for title, rows in parts.items() if rows)]) + "\n"


def _runs(records: Sequence[Record]) -> str:
    """A table of the machines: when each was used, and with which versions."""
    found: dict[tuple[str, str], set[str]] = {}
    for each in records:
        versions = ", ".join(f"{name} {each.versions[name]}" for name in ("python", "jaxlib", "jax"))
        found.setdefault((each.machine, versions), set()).add(each.date)
    lines = sorted(((_days(dates), *key) for key, dates in found.items()), reverse=True)
    return "\n".join(aligned([("dates", "machine", "versions"), *lines]))


def _part(title: str, records: Sequence[Record]) -> str:
    """A part: how its rows do, a table of the cases of few rows, and a list for each other case."""
    ratios = [ratio for each in records if 0 < (ratio := each.ratio() or 0) < math.inf]
    missed, mean = sum(each.missed for each in records), statistics.geometric_mean(ratios)
    head = f"## {title}: {len(records)} rows, {missed} MISSED, geometric mean {mean:.2f}"
    cases = [list(rows) for _, rows in itertools.groupby(records, lambda each: each.case)]
    table = [_cells(each) for rows in cases if len(rows) <= FEW for each in rows]
    lists = [_list(rows) for rows in cases if len(rows) > FEW]
    return "\n\n".join(filter(None, [head, "\n".join(aligned([HEADS, *table]) if table else []), "\n".join(lists)]))


def _cells(each: Record) -> tuple[str, ...]:
    return each.date, each.row, *_times(each), f"{each.ratio():.2f}", _bar(each)


def _times(each: Record) -> tuple[str, str]:
    ours, theirs = (format_value(each.number(library) or 0, each.unit) for library in ("xlamini", "jax"))
    return (ours, theirs) if each.unit != RELATIVE else ("-", "-")


def _bar(each: Record) -> str:
    return "" if each.target is None else f"{each.target:g}{' MISSED' if each.missed else ''}"


def _list(records: Sequence[Record]) -> str:
    """The rows of a case by name, those first that miss the bar; what all names begin with is in front."""
    rows = sorted(records, key=lambda each: (not each.missed, each.row))
    common = _common([each.row for each in rows])
    shown = [each for each in rows if each.missed or abs((each.ratio() or 0) - 1) > EVEN]
    named = [_item(each, each.row.removeprefix(common).strip()) for each in shown]
    rest = [f"{len(rows) - len(named)} more within {EVEN} of 1"] if len(rows) > len(named) else []
    head = f"- **{rows[0].case}**, {_days({each.date for each in rows})}:"
    text = " ".join(filter(None, [head, common, "; ".join([*named, *rest]) + "."]))
    return textwrap.fill(text, 120, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


def _common(names: Sequence[str]) -> str:
    """The words that all names begin with."""
    pairs = zip(min(names).split(), max(names).split(), strict=False)
    return " ".join(word for word, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _item(each: Record, name: str) -> str:
    if not each.missed:
        return f"{name} {each.ratio():.2f}"
    memory = each.ratio("memory")
    more = f", memory {memory:.2f}" if memory else ""
    return f"**{name} {' / '.join(_times(each))} {each.ratio():.2f}{more}, bar {_bar(each)}**"


def _days(dates: set[str]) -> str:
    return " to ".join(dict.fromkeys((min(dates), max(dates))))


if __name__ == "__main__":
    found = newest()
    PAGE.write_text(page(found))
    for path, every_row in figures.PAGES.items():
        path.write_text(figures.update(path.read_text(), found, every_row))
