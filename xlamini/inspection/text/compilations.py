"""The compilations of this function in the process, why each was needed, and what they took."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from xlamini.inspection.text.view import View
from xlamini.inspection.units import shown

ABOUT = "Compilations: how often this function was compiled in the process, why, how long it took, and what to change."


def lines(view: View) -> Iterator[str]:
    found = view.report["compilations"]
    yield ""
    if not found:
        yield "This process had not compiled the function before."
        return
    rows, lost = [], defaultdict[tuple[str, str], list[float]](list)
    for entry in found:
        cause = entry["cause"] or {"kind": "", "text": "", "edit": ""}
        seconds = sum(s or 0 for s in (entry["seconds"] or {}).values())
        rows.append([entry["function"], entry["site"] or "", shown(seconds, "seconds"), cause["text"]])
        lost[cause["kind"], cause["edit"] or ""].append(seconds)
    yield from view.table(("function", "called at", "took", "cause"), rows, right=(2,))
    yield ""
    for (kind, edit), seconds in sorted(lost.items(), key=lambda item: -sum(item[1])):
        advice, cause = f": {edit}" if edit else "", kind or "an unknown cause"
        yield from view.say(f"{len(seconds)} for {cause}, {shown(sum(seconds), 'seconds')}{advice}")
