"""What the equations computed in a run: ranges, NaN and infinity, zeros, the distance to float64."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.inspection.equations import place_of
from xlamini.inspection.text.view import View


def lines(view: View) -> Iterator[str]:
    values = view.report["values"] or ()
    bad = next((v for v in values if v["nan"] or v["inf"]), None)
    yield ""
    if bad is not None:
        at = f", iteration {', '.join(map(str, bad['iteration']))}" if bad["iteration"] else ""
        text = "no equation" if bad["row"] is None else view.report["equations"]["text"][bad["row"]]
        yield from view.say(f"First NaN or infinity: {place_of(view.report, bad['row'])}{at}: {text}")
    elif values:
        yield "All values are finite."
    yield from view.table("values", values)
