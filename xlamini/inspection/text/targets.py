"""All targets side by side."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.inspection.quantities import QUANTITIES, Target, value_of
from xlamini.inspection.text.view import View, unavailable
from xlamini.inspection.units import UNKNOWN, shown

ABOUT = "Targets: the same program on each machine, whether it fits there, what it costs, and what takes longest."
_TOP = 3


def lines(view: View) -> Iterator[str]:
    here = [t for t in view.targets if view.missing(t) is None]
    yield ""
    if here:
        names = ["device", "fits", *QUANTITIES, "compiled in", *(f"kernel {i + 1}" for i in range(_TOP))]
        cells = [_column(view, target) for target in here]
        rows = list(map(list, zip(names, *cells, strict=True)))
        wide = View(view.report, view.width, len(rows), view.targets)
        yield from wide.table(("", *(t["name"] for t in here)), rows)
    for target in view.targets:
        reason = view.missing(target)
        if reason is not None:
            yield from view.say(unavailable(target, reason))
    if not view.targets:
        yield "not available: the report has no targets"


def _column(view: View, target: Target) -> list[str]:
    """The cells of a target, in the order of the names."""
    costs = [shown(value_of(view.report, target, name), q.family) for name, q in QUANTITIES.items()]
    device = f"{target['devices'] or 1} {target['device']}"
    compiled = shown((target["seconds"] or {}).get("compile"), "seconds")
    return [device, _fits(target), *costs, compiled, *_top(target)]


def _fits(target: Target) -> str:
    memory = target["memory"]
    if memory is None or memory["capacity"] is None:
        return UNKNOWN
    share = f"{100 * memory['peak'] / memory['capacity']:.0f} % of {shown(memory['capacity'], 'bytes')}"
    return f"{'yes' if memory['peak'] <= memory['capacity'] else 'NO'}, {share}"


def _top(target: Target) -> list[str]:
    longest = sorted(target["kernels"] or (), key=lambda k: -(k["seconds"] or 0))[:_TOP]
    found = [f"{k['name']} {shown(k['seconds'], 'seconds')}" for k in longest]
    return [*found, *[""] * (_TOP - len(found))]
