"""The compilations of this function in the process, why each was needed, and what they took."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from xlamini.inspection.text.view import View
from xlamini.inspection.units import shown


def lines(view: View) -> Iterator[str]:
    found = view.report["compilations"]
    yield ""
    yield from view.table("compilations", found)
    yield ""
    lost = defaultdict[tuple[str | None, str | None], list[float]](list)
    for entry in found:
        cause, seconds = entry["cause"] or {}, entry["seconds"] or {}
        lost[cause.get("kind"), cause.get("edit")].append(sum(s or 0 for s in seconds.values()))
    for (kind, edit), seconds in sorted(lost.items(), key=lambda item: -sum(item[1])):
        took, advice = shown(sum(seconds), "seconds"), f": {edit}" if edit else ""
        yield from view.say(f"{len(seconds)} for {kind or 'an unknown cause'}, {took}{advice}")
