"""The report of an inspection: a value that shows itself in a terminal and a notebook, and is written to a file."""
from __future__ import annotations

import os
from typing import Any

from xlamini.inspection.diff import diff
from xlamini.inspection.limits import Check, check
from xlamini.inspection.page import framed, page, save
from xlamini.inspection.schema import read_report


class Report:
    """The way of a function from the user's lines to kernels; see `xlamini.inspect`.

    It prints as its summary, and is a page in a notebook.
    """

    def __init__(self, content: dict[str, Any]):
        self._content = content

    def json(self) -> dict[str, Any]:
        """The report as dicts, lists, numbers and text; docs/inspect-schema.md describes them."""
        return self._content

    def text(self, screen: str = "summary", *, against: Any = None, **options: Any) -> str:
        """One screen for a terminal; ValueError for a screen that there is not.

        The screens are summary, source, rewrites, kernels, roofline, memory, sharding, targets, compilations, diff,
        values and neighbourhood. Options are `width`, `target`, `limit` (rows of a table), `stage` of the rewrites,
        `row` of the neighbourhood, and `against`, the earlier report of a diff.
        """
        from xlamini.inspection.text import text as shown  # for those who read it in a terminal

        return shown(self._content, screen, against=_content_of(against), **options)

    def save(self, path: str | os.PathLike[str], *, against: Any = None) -> None:
        """Write a page that opens in any browser (`.html`), or the report as JSON (`.json`); ValueError otherwise.

        The page's screen Diff compares with `against`, an earlier report, its JSON, or the path of a saved one.
        """
        content, other = self._content, _content_of(against)
        save(path, content, lambda: page(content, other))

    def check(self, *, against: Any = None, **limits: str) -> Check:
        """Compare with limits, such as `peak="<14GiB"`, or `flops="+5%"` beside the report `against`; false if one is
        broken. `against` is a report, its JSON, or the path of a saved one."""
        return check(self._content, _content_of(against), **limits)

    def diff(self, before: Any) -> dict[str, Any]:
        """What differs from an earlier report, the largest change of cost first."""
        return diff(_content_of(before) or {}, self._content)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return framed(page(self._content))


def _content_of(report: Any) -> dict[str, Any] | None:
    """The content of a report that is given as such, as JSON, or as a path."""
    if isinstance(report, Report):
        return report.json()
    return None if report is None else read_report(report)
