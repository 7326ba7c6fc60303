"""All targets side by side."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.inspection.layout import columns
from xlamini.inspection.quantities import side_by_side
from xlamini.inspection.text.view import View


def lines(view: View) -> Iterator[str]:
    here = [side_by_side(view.report, target) for target in view.targets if view.missing(target) is None]
    yield ""
    if here:
        head, *rows = map(list, zip(*view.cells("targets", here), strict=True))
        yield from columns(head, rows, width=view.width)
    for target in view.targets:
        yield from view.part(target)
    if not view.targets:
        yield from view.table("targets", ())
