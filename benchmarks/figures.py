"""Three figures beside JAX, on the first page of the site and in README.

They are the newest records of these rows. `python -m benchmarks.page` writes them between two marks on each page.
"""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Sequence

from benchmarks.harness import ROOT
from benchmarks.records import Record
from benchmarks.table import aligned, format_value

PAGES = {ROOT / "README.md": "docs/inside/benchmarks.md", ROOT / "docs/index.md": "inside/benchmarks.md"}
"""Where they are shown, and from there the page with all rows."""
START, END = "<!-- figures: python -m benchmarks.page -->", "<!-- end of figures -->"
ROWS = {
    ("first_call", "24 layers: first call"): "first call",
    ("first_call", "24 layers: later calls"): "later calls",
    ("memory", "peak memory after a call of 24 layers"): "peak memory after a call",
}
"""Of each case and row what it is called here."""
HEAD = "a training step of 24 layers"


def update(text: str, records: Sequence[Record], every_row: str) -> str:
    """The text of a page, with the figures of these records between its marks."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{figures(records, every_row)}\n\n{END}{after}"


def figures(records: Sequence[Record], every_row: str) -> str:
    """The table, and where its numbers come from; `every_row` is the address of the page with all of them."""
    found = {(each.case, each.row): each for each in records if each.platform == "cpu"}
    shown = {name: found[key] for key, name in ROWS.items()}
    table = aligned([(HEAD, "xlamini", "JAX", ""), *((name, *_cells(each)) for name, each in shown.items())])
    return "\n".join([*table, "", textwrap.fill(_source([*shown.values()], every_row), 120, break_on_hyphens=False)])


def _cells(each: Record) -> tuple[str, str, str]:
    ours, theirs = (format_value(each.number(library) or 0, each.unit) for library in ("xlamini", "jax"))
    return ours, theirs, f"**{1 / (each.ratio() or 1):.2g}×**"


def _source(shown: Sequence[Record], every_row: str) -> str:
    days = sorted({datetime.date.fromisoformat(each.date) for each in shown})
    machines = "; ".join(sorted({each.machine for each in shown}))
    versions = " and ".join(sorted({_versions(each) for each in shown}))
    command = "python -m benchmarks " + " ".join(f"--only {case}" for case in dict.fromkeys(e.case for e in shown))
    dates = " and ".join(f"{day:%B} {day.day}" for day in days)
    return (
        f"`{command}` repeats them. Measured on {dates}, {days[-1].year}, on a CPU ({machines}), with {versions}. "
        f"[Every row]({every_row}), also where xlamini is slower."
    )


def _versions(each: Record) -> str:
    return ", ".join(f"{name} {each.versions[key]}" for key, name in (("jaxlib", "jaxlib"), ("jax", "JAX")))
