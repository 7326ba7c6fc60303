"""The results as a Markdown table with aligned columns."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness import Row
from benchmarks.timing import BYTES, PER_SECOND, SECONDS

COLUMNS = ("what", "xlamini", "JAX", "xlamini / JAX", "target")
SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def table(rows: Sequence[Row]) -> str:
    """Return all rows, one line each, followed by the errors of missing values."""
    return "\n".join([*aligned([COLUMNS, *(_cells(row) for row in rows)]), *_reasons(rows)])


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table of these cells, of which the first are the heads."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    head, *body = (_line(line, widths) for line in cells)
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [head, rule, *body]


def format_value(value: float, unit: str) -> str:
    """Three significant digits in a suitable unit: `12.3 µs`, `1.23 s`, `20,300 /s`; all digits of a count."""
    if unit == PER_SECOND:
        return f"{float(f'{value:.3g}'):,.0f} /s"
    if unit == BYTES:
        return f"{value / 1e6:.0f} MB"
    if unit != SECONDS:
        return f"{value:,.0f}"
    if value >= 1000:
        return f"{value:.0f} s"
    scale, name = next((s for s in SCALES if value >= s[0]), SCALES[-1])
    return f"{value / scale:.3g} {name}"


def _cells(row: Row) -> tuple[str, ...]:
    ratio = row.ratio("xlamini", "jax")
    shown = "-" if ratio is None else f"{ratio:.2f}"
    return row.what, _spread(row, "xlamini"), _spread(row, "jax"), shown, _verdict(row, ratio)


def _spread(row: Row, library: str) -> str:
    median = row.median(library)
    if median is None:
        return "failed" if library in row.errors else "-"
    values = row.values[library]
    low, high = (format_value(v, row.unit) for v in (min(values), max(values)))
    return f"{format_value(median, row.unit)} [{low} - {high}]"


def _verdict(row: Row, ratio: float | None) -> str:
    if row.target is None:
        return ""
    if ratio is None:
        return f"<= {row.target}"
    return f"<= {row.target} {'met' if ratio <= row.target else 'MISSED'}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"


def _reasons(rows: Sequence[Row]) -> list[str]:
    reasons = [
        f"{row.what} failed with {library}: {error}"
        for row in rows
        for library, error in row.errors.items()
    ]
    return ["", *reasons] if reasons else []
