"""What the equations computed in a run: ranges, NaN and infinity, zeros, the distance to float64."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xlamini.inspection.equations import place_of
from xlamini.inspection.text.view import View
from xlamini.inspection.units import UNKNOWN

ABOUT = (
    "Values: what each equation computed when your program ran equation by equation on your arguments, and how many "
    "units in the last place its result is from that of the same equation in float64."
)


def lines(view: View) -> Iterator[str]:
    values = view.report["values"]
    yield ""
    if values is None:
        yield from view.say("not available: the program was not run; values=True (--values) runs it on the arguments")
        return
    bad = next((v for v in values if v["nan"] or v["inf"]), None)
    if bad is None:
        yield "All values are finite."
    else:
        place = place_of(view.report, bad["row"])
        at = f", iteration {_iteration(bad)}" if bad["iteration"] else ""
        text = "no equation" if bad["row"] is None else view.report["equations"]["text"][bad["row"]]
        yield from view.say(f"First NaN or infinity: {place}{at}: {text}")
    head = ("line", "iteration", "equation", "min", "max", "mean", "NaN", "inf", "zeros", "ulps")
    yield from view.table(head, [_row(view, v) for v in values], right=range(3, 10))


def _iteration(value: Any) -> str:
    return ", ".join(map(str, value["iteration"]))


def _row(view: View, value: Any) -> list[str]:
    label = UNKNOWN if value["row"] is None else view.report["equations"]["label"][value["row"]]
    numbers = [_number(value[name]) for name in ("min", "max", "mean", "nan", "inf")]
    zeros = UNKNOWN if value["zeros"] is None else f"{100 * value['zeros']:.0f} %"
    place = str(place_of(view.report, value["row"]))
    return [place, _iteration(value), label, *numbers, zeros, _number(value["ulps"])]


def _number(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:.4g}"
