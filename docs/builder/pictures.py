"""Pictures that a page draws: a fence `{picture} WHAT IT SHOWS` around a session of Python that draws with matplotlib.

The page shows the session, and below it the picture, in two versions of which the reader's mode chooses one. Before the
session, all earlier sessions of the page run, in a process of its own, because a page may set flags that must be set
before anything else runs:

    python -m docs.builder.pictures docs/tutorials/memory.md 0 FOLDER    # the page's first picture: light.svg, dark.svg
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib import pyplot as plt

from docs.builder.sessions import FLAGS, Checker

matplotlib.use("Agg")

FENCE = re.compile(r"^```\{picture\} *([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MODES = {
    "light": ("#333333", "#dddddd", ("#1f77b4", "#e8710a", "#2ca02c", "#c2255c")),
    "dark": ("#cccccc", "#444444", ("#6cb0f0", "#ffa94d", "#69db7c", "#ff8787")),
}
"""Of each mode the colors of text, of the grid and of lines. The background is the page's."""


def draw(page: Path, number: int, folder: Path) -> None:
    """Run the page up to its picture of this number, and draw it for both modes.

    Raises:
      RuntimeError: a session of the page does not give what the page shows.
    """
    text = page.read_text()
    found = [*FENCE.finditer(text)][number]
    names: dict[str, Any] = {}
    _run(text[: found.start()], names, page)
    folder.mkdir(parents=True, exist_ok=True)
    for mode in MODES:
        _save(found[2], names, page, folder / f"{mode}.svg", _style(*MODES[mode]))


def _run(text: str, names: dict[str, Any], page: Path) -> None:
    session = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(session, names, page.name, str(page), 0)
    if doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(test, clear_globs=False).failed:
        raise RuntimeError(f"{page}: a session does not give what the page shows; see the lines above")
    names.update(test.globs)


def _save(session: str, names: dict[str, Any], page: Path, path: Path, style: dict[str, Any]) -> None:
    with plt.rc_context(style):
        _run(session, names, page)
        plt.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
        plt.close("all")


def _style(ink: str, grid: str, lines: tuple[str, ...]) -> dict[str, Any]:
    marks = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink)
    size = {"figure.figsize": (6.4, 3.2), "figure.constrained_layout.use": True, "font.size": 9}
    colors = {"grid.color": grid, "axes.prop_cycle": cycler(color=lines), "legend.framealpha": 0.0}
    return marks | size | colors | {"axes.grid": True, "axes.axisbelow": True, "svg.hashsalt": "xlamini"}


if __name__ == "__main__":
    draw(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
