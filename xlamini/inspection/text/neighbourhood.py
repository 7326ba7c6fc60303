"""One equation, with two steps to each side: what its operands come from, and what its results go to."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from xlamini.inspection import layout
from xlamini.inspection.equations import place_of, rows_of, users
from xlamini.inspection.neighbourhood import MOST_NODES, chosen_row
from xlamini.inspection.text.view import View
from xlamini.inspection.units import shown

ABOUT = (
    "Neighbourhood: one equation, two steps of what its operands come from above, two steps of what its results go to "
    "below. row= takes another one."
)
_STEPS = 2


def lines(view: View) -> Iterator[str]:
    row = chosen_row(view.report, view.row)
    yield ""
    if row is None:
        yield "not available: the report has no equations"
        return
    columns = view.report["equations"]
    using = users(view.report, rows_of(view.report, columns["stage"][row]))
    above = [*islice(_tree(row, lambda r: columns["operands"][r]), MOST_NODES // 2)]
    below = [*islice(_tree(row, lambda r: using.get(r, ())), MOST_NODES // 2)]
    rows = [_row(view, depth, r) for depth, r in [*reversed(above), (0, row), *below]]
    yield from layout.columns(("equation", "line", "FLOPs", "bytes"), rows, (2, 3), view.width)


def _tree(row: int, step: Callable[[int], Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Depth and row of what is reached, each row once, a row before what is beyond it."""
    seen, edge = {row}, [row]
    for depth in range(1, _STEPS + 1):
        edge = [r for r in dict.fromkeys(n for e in edge for n in step(e)) if r not in seen]
        seen.update(edge)
        yield from ((depth, r) for r in edge)


def _row(view: View, depth: int, row: int) -> list[str]:
    columns = view.report["equations"]
    mark = "  " * (_STEPS + 1 - depth) if depth else "> "
    costs = [shown(columns["flops"][row], "count"), shown(columns["bytes"][row], "bytes")]
    return [f"{mark}{columns['label'][row]}  {columns['text'][row]}", str(place_of(view.report, row)), *costs]
