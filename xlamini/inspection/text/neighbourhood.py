"""One equation, with two steps to each side: what its operands come from, and what its results go to."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from xlamini.core.flags.environment_variables import near
from xlamini.inspection.equations import Report, final_rows, rows_of, users
from xlamini.inspection.text.view import Item, View

_STEPS = 2
_MOST_OF_A_SIDE = 30


def lines(view: View) -> Iterator[str]:
    row = _chosen_row(view.report, view.row)
    yield ""
    if row is None:
        yield "not available: the report has no equations"
        return
    columns = view.report["equations"]
    using = users(view.report, rows_of(view.report, columns["stage"][row]))
    above = [*islice(_tree(row, lambda r: columns["operands"][r]), _MOST_OF_A_SIDE)]
    below = [*islice(_tree(row, lambda r: using.get(r, ())), _MOST_OF_A_SIDE)]
    items = [_item(view, depth, r) for depth, r in [*reversed(above), (0, row), *below]]
    yield from view._replace(limit=len(items)).table("equations", items)


def _chosen_row(report: Report, row: int | str | None) -> int | None:
    """The row of a number or of a label of the final program; by default the one with most FLOPs and bytes.

    None if the report has no final program. ValueError for a row or label that is not there.
    """
    columns, rows = report["equations"], final_rows(report)
    if row is None:
        return max(rows, key=lambda r: columns["flops"][r] + columns["bytes"][r], default=None)
    if isinstance(row, int):
        if not 0 <= row < len(columns["stage"]):
            raise ValueError(f"row: the report has rows 0 to {len(columns['stage']) - 1}, got {row}")
        return row
    labels = {columns["label"][r]: r for r in rows}
    if row not in labels:
        raise ValueError(f"row: the final program has no equation {row!r}{near(row, labels)}")
    return labels[row]


def _tree(row: int, step: Callable[[int], Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Depth and row of what is reached, each row once, a row before what is beyond it."""
    seen, edge = {row}, [row]
    for depth in range(1, _STEPS + 1):
        edge = [r for r in dict.fromkeys(n for e in edge for n in step(e)) if r not in seen]
        seen.update(edge)
        yield from ((depth, r) for r in edge)


def _item(view: View, depth: int, row: int) -> Item:
    columns = view.report["equations"]
    mark = "  " * (_STEPS + 1 - depth) if depth else "> "
    text = f"{mark}{columns['label'][row]}  {columns['text'][row]}"
    return {"row": row, "text": text, "flops": columns["flops"][row], "bytes": columns["bytes"][row]}
