"""The parts that the measured time of a call consists of: lines, what XLA put in, and where no kernel ran."""
from __future__ import annotations

from typing import Any

from xlamini.inspection.equations import Report, place_of
from xlamini.inspection.line_costs import row_measured
from xlamini.inspection.quantities import Target


def wall_time(report: Report, target: Target) -> list[dict[str, Any]]:
    """The parts of a call, each with its seconds and its share; they add up to the call."""
    call, rows = target["measured"], row_measured(target)
    own = sum(seconds for row, seconds in rows.items() if _is_own(report, row))
    put_in = sum(k["measured"]["seconds"] for k in target["kernels"] if k["inserted"] and k.get("measured"))
    parts = {
        "your lines": own,
        "kernels without a line of yours": max(call["kernels"] - own - put_in, 0.0),
        "put in by XLA": put_in,
        "between kernels": call["between"],
        "before the first kernel and after the last": call["around"],
    }
    whole = sum(parts.values())
    return [
        {"part": part, "seconds": seconds, "share": seconds / whole}
        for part, seconds in parts.items()
        if seconds > 1e-9
    ]


def _is_own(report: Report, row: int) -> bool:
    source = report["equations"]["source"][row]
    return bool(place_of(report, row).file) and not report["sources"][source]["library"]
