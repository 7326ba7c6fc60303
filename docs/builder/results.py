"""The last results of the benchmarks, read from the tables of `benchmarks/RESULTS.md`, for the pictures of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Row
from benchmarks.table import SCALES

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "RESULTS.md"
RATIOS = ("xlamini / jax", "ratio", "/ jax")
"""What the column of ratios may be called."""

COUNTS = {"tpu": "estimated cycles", "gpu": "kernels"}
"""What the pictures show that show no time."""

GROUPS = {
    "tpu": r".*, v5e$",
    "gpu": r".*, h200$",
    "layers": r"(ResN|MobileN|ConvN|ViT|WaveN|U-N|Speech|Transformer|matmul|sort,|FFT|random normal)",
    "kernels": r"(kernel|1M float32)",
    "eager": r"(eager|jit|the same grad)",
    "models": r"(12 layers|24 layers|48 layers|plain|nan checks|linen|nnx|neural ODE|NUTS|import|peak)",
    "programs": r"(\d+ |chain|RNN|sharded)",
}
"""The pictures: each with the rows whose names begin so. A row belongs to the first that fits."""


def last_results(text: str) -> list[Row]:
    """The newest row of each name, with its ratio to JAX as the value; the newest section is the first."""
    found: dict[str, Row] = {}
    for head, cells in _lines_of_tables(text):
        row = _row(head, cells)
        if row is not None:
            found.setdefault(row.what, row)
    return list(found.values())


def of_group(rows: list[Row], group: str) -> list[Row]:
    """The rows of a picture."""
    return [row for row in rows if next((g for g, name in GROUPS.items() if re.match(name, row.what)), "") == group]


def summary(rows: list[Row]) -> str:
    """How many are not slower than JAX, and which are, as a paragraph of Markdown."""
    slower = [(row, ratio) for row in rows if (ratio := row.ratio("xlamini", "jax")) is not None and ratio > 1.02]
    worst = sorted(slower, key=lambda pair: -pair[1])
    worse = "; ".join(f"{row.what} {ratio:.2f}" for row, ratio in worst) or "none"
    return f"{len(rows) - len(slower)} of {len(rows)} are at most 1.02 of JAX. Above it: {worse}."


def _lines_of_tables(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """The heads and the cells of each line of a table."""
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            head = []
        elif not head:
            head = [cell.lower() for cell in cells]
        else:
            yield head, cells


def _row(head: list[str], cells: list[str]) -> Row | None:
    """A line that compares xlamini with JAX, whose column is the next; None for any other."""
    by_head = dict(zip(head, cells, strict=False))
    text = next((by_head[name] for name in RATIOS if name in by_head), "")
    if "jax" not in head or not re.match(r"[\d.]+( MISSED)?$", text):
        return None
    theirs = head.index("jax")
    ratio = float(text.split()[0]) or _seconds(cells[theirs - 1]) / _seconds(cells[theirs])
    target = re.match(r"<= ([\d.]+)", by_head.get("target", ""))
    what = f"{cells[0]}, {cells[1]}" if "count" in by_head else cells[0]
    return Row("", what, target=float(target[1]) if target else None, values={"xlamini": [ratio], "jax": [1.0]})


def _seconds(cell: str) -> float:
    """The first number of a cell, by its unit: `35.9 ms [33.8 ms - 37.1 ms]`; without one it is milliseconds."""
    number, unit = re.match(r"([\d.e+]+) ?(s|ms|µs|ns)?", cell).groups("ms")
    return float(number) * dict(map(reversed, SCALES))[unit]
