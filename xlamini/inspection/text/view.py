"""What a screen is given: the report, and what of it is to be shown how."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.inspection.equations import Report
from xlamini.inspection.layout import columns, wrapped
from xlamini.inspection.quantities import Target, why_unknown


class View(NamedTuple):
    """A report with the choices of a reader."""

    report: Report
    width: int
    limit: int
    targets: Sequence[Target]
    row: int | str | None = None
    stage: int | None = None
    against: Report | None = None

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
        """A table with at most `limit` rows, and a line that says how many more there are."""
        lines = columns(head, rows[: self.limit], right, self.width)
        more = len(rows) - self.limit
        return [*lines, f"… and {more} more; limit={len(rows)} shows all"] if more > 0 else lines

    def say(self, sentence: str, indent: str = "") -> list[str]:
        """A sentence, wrapped."""
        return wrapped(sentence, self.width, indent)

    def by_target(self, lines: Callable[[View, Target], Iterator[str]], *parts: str) -> Iterator[str]:
        """A section for each target; in its place one line for a target that lacks one of the parts."""
        for target in self.targets:
            yield ""
            reason = self.missing(target, *parts)
            if reason is not None:
                yield from self.say(unavailable(target, reason))
                continue
            yield f"{target['name']} ({target['device']})"
            yield from lines(self, target)

    def missing(self, target: Target, *parts: str) -> str | None:
        """Why a target has not all of these parts; None if it has."""
        reasons = target["unavailable"] or {}
        if target["error"] or (self.report["failure"] and target["hlo"] is None):
            return why_unknown(self.report, target)
        named = next((reasons[part] for part in parts if part in reasons), None)
        lacks = next((part for part in parts if target.get(part) is None), None)
        return named or (lacks and f"the report does not have its {lacks}")


def unavailable(target: Mapping[str, Any], reason: str) -> str:
    return f"not available for {target['name']}: {reason}"
