"""The results as a bar chart: one bar per row, with the ratio of xlamini's time to JAX's."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib

from benchmarks.records import Record

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator


def save_plot(path: str, records: Sequence[Record], count: str = "time") -> None:
    """Write the ratios and their targets to the image file `path`; `count` is what was measured."""
    shown = [(each, ratio) for each in records if (ratio := each.ratio()) is not None]
    if not shown:
        raise ValueError("there is nothing to plot: no row has a value for both libraries")
    figure, axes = plt.subplots(figsize=(9, 1 + 0.24 * len(shown)), layout="constrained")
    labels, ratios = [each.row for each, _ in shown], [ratio for _, ratio in shown]
    colors = ["tab:green" if ratio <= 1 else "tab:orange" for ratio in ratios]
    axes.barh(labels, [ratio - 1 for ratio in ratios], left=1, color=colors)
    for y, (each, ratio) in enumerate(shown):
        side = "left" if ratio > 1 else "right"
        axes.text(ratio, y, f" {ratio:.2f} " if ratio >= 0.01 else f" {ratio:.1g} ", va="center", ha=side, fontsize=7)
        if each.target is not None:
            axes.plot([each.target] * 2, [y - 0.45, y + 0.45], color="black", linewidth=1.5)
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set(xscale="log", xlabel=f"{count} of xlamini / {count} of JAX (black: target)")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.invert_yaxis()
    axes.margins(x=0.1, y=0.01)
    axes.tick_params(axis="y", labelsize=8)
    figure.savefig(path, dpi=100)
