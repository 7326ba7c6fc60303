"""The screens whose texts are tests/snapshots/inspect_NAME.txt: a report, a screen and a reader's choices."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.inspection import reports
from xlamini.inspection.text import SCREENS

Shown = tuple[Callable[[], dict[str, Any]], str, dict[str, Any]]

SHOWN: dict[str, Shown] = {
    **{screen: (reports.report, screen, {}) for screen in SCREENS},
    "sharding_on_a_mesh": (reports.sharded, "sharding", {}),
    "values_of_a_run": (reports.with_values, "values", {}),
    "summary_of_a_failure": (reports.failed, "summary", {}),
    "rewrites_linearize": (reports.report, "rewrites", {"stage": 2}),
    "rewrites_pass": (reports.changed, "rewrites", {"stage": 7}),
    "diff_of_an_edit": (reports.changed, "diff", {"against": reports.report()}),
    "neighbourhood_of_tanh": (reports.report, "neighbourhood", {"row": "tanh#e1"}),
    "source_measured": (reports.measured, "source", {}),
    "kernels_measured": (reports.measured, "kernels", {"target": "here"}),
    "roofline_measured": (reports.measured, "roofline", {"target": "here"}),
    "summary_measured": (reports.measured, "summary", {}),
    "diff_of_measured_times": (reports.slower, "diff", {"against": reports.measured()}),
    "kernels_narrow": (reports.report, "kernels", {"width": 60, "target": "here", "limit": 2}),
}
