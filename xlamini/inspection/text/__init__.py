"""The screens of a report as plain text, each in a file; the page shows the same."""
from __future__ import annotations

import json
from importlib.resources import files

from xlamini.core.console import printable
from xlamini.core.flags.environment_variables import near
from xlamini.inspection.equations import Report
from xlamini.inspection.layout import cut
from xlamini.inspection.quantities import find_target
from xlamini.inspection.text import (
    compilations,
    diff,
    kernels,
    memory,
    neighbourhood,
    rewrites,
    roofline,
    sharding,
    source,
    summary,
    targets,
    values,
)
from xlamini.inspection.text.view import View

SCREENS = {
    "summary": summary, "source": source, "rewrites": rewrites, "kernels": kernels, "roofline": roofline,
    "memory": memory, "sharding": sharding, "targets": targets, "compilations": compilations, "diff": diff,
    "values": values, "neighbourhood": neighbourhood,
}  # fmt: skip

LEAST_WIDTH = 40
DESCRIPTIONS = json.loads(files("xlamini.inspection").joinpath("assets/screens.json").read_text("utf-8"))
"""What the screens are about, and the columns of their tables, for the page and the texts."""


def text(
    report: Report,
    screen: str = "summary",
    *,
    width: int = 100,
    target: str | None = None,
    limit: int = 20,
    row: int | str | None = None,
    stage: int | None = None,
    against: Report | None = None,
) -> str:
    """A screen of a report as text.

    Args:
      report: the report, as its dict.
      screen: summary, source, rewrites, kernels, roofline, memory, sharding, targets, compilations, diff, values or
        neighbourhood.
      width: the most characters of a line.
      target: the one target to show; all of them by default.
      limit: the most rows of a table.
      row: for `neighbourhood`, the number of an equation in the table, or its label in the final program.
      stage: for `rewrites`, the stage to show beside the one that it was made from.
      against: for `diff`, the earlier report.

    Raises:
      ValueError: for a screen, target, row or stage that is not there, or a line too short for a table.
    """
    if screen not in SCREENS:
        raise ValueError(f"text: there is no screen {screen!r} (known: {', '.join(SCREENS)}){near(screen, SCREENS)}")
    if width < LEAST_WIDTH or limit < 1:
        raise ValueError(f"text: width must be at least {LEAST_WIDTH} and limit at least 1, got {width} and {limit}")
    chosen = report["targets"] if target is None else [find_target(report, target)]
    described = DESCRIPTIONS[screen]
    view = View(report, described, width, limit, chosen, row, stage, against)
    failure = report["failure"]
    failed = view.say(f"The report is incomplete, as {failure['stage']} failed: {failure['error']}") if failure else []
    about = described["about"][0].lower() + described["about"][1:]
    head = view.say(f"{screen.capitalize()}: {about} {described.get('text', '')}")
    lines = [*head, *failed, *SCREENS[screen].lines(view)]
    return printable("\n".join(cut(line, width) for line in lines).rstrip())
