"""The equations around one: what its operands come from, and what its results go to."""
from __future__ import annotations

from xlamini.core.flags.environment_variables import near
from xlamini.inspection.equations import Report, final_rows, rows_of, users

MOST_NODES = 60
"""A picture of more nodes than this says nothing."""


def around(report: Report, row: int, most: int = MOST_NODES) -> list[int]:
    """At most so many rows around a row of its stage, the nearest first: of each its operands, then its users."""
    columns = report["equations"]
    using = users(report, rows_of(report, columns["stage"][row]))
    found, edge = {row: None}, [row]
    while edge and len(found) < most:
        near_rows = [n for r in edge for n in (*columns["operands"][r], *using.get(r, ()))]
        edge = [n for n in dict.fromkeys(near_rows) if n not in found]
        found.update(dict.fromkeys(edge))
    return [*found][:most]


def chosen_row(report: Report, row: int | str | None) -> int | None:
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
