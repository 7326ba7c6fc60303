"""The newest rows of the case `scale` as curves: the cost of one equation, leaf or device over their number.

    python -m benchmarks --only scale --record "two quiet cores"
    python -m benchmarks.growth docs/scale.svg
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import matplotlib

from benchmarks.records import Record, newest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

REACH = 20.0
"""How far a panel reaches above and below the middle of its costs."""
COLORS = {"xlamini": "tab:blue", "jax": "tab:gray"}
_NAME = re.compile(r"(?P<work>.*), (?P<size>[\d,]+) (?P<things>\w+): (?P<unit>.*)")

Curve = list[tuple[int, float]]


def curves(records: Iterable[Record]) -> dict[str, dict[str, Curve]]:
    """For each panel's title, the points of each library: size, and microseconds per unit."""
    found: dict[str, dict[str, Curve]] = {}
    for each in records:
        name = _NAME.fullmatch(each.row)
        if each.case != "scale" or name is None:
            continue
        size = int(name["size"].replace(",", ""))
        for library, numbers in each.numbers.items():
            panel = found.setdefault(f"{name['work']}: {name['unit']}|{name['things']}", {})
            panel.setdefault(library, []).append((size, numbers["least"] * 1e6))
    return found


def save(path: str, records: Iterable[Record]) -> None:
    """Draw one panel for each kind of work, with a curve for each library."""
    panels = curves(records)
    figure, grid = plt.subplots(2, (len(panels) + 1) // 2, figsize=(13, 6), layout="constrained", squeeze=False)
    for axes, (title, found) in zip(grid.flat, panels.items(), strict=False):
        name, things = title.split("|")
        for library, points in found.items():
            axes.plot(*zip(*points, strict=True), marker="o", color=COLORS[library], label=library)
        costs = [cost for points in found.values() for _, cost in points]
        middle = (min(costs) * max(costs)) ** 0.5
        limits = middle / REACH, middle * REACH  # alike in all panels, so that slopes are
        axes.set(xscale="log", yscale="log", ylim=limits, title=name, xlabel=things, ylabel="µs")
        axes.yaxis.set_major_formatter("{x:g}")
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    grid[0, 0].legend(loc="upper left")
    plt.rcParams["svg.hashsalt"] = "scale"  # the same ids in every run
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    save(sys.argv[1], newest())
