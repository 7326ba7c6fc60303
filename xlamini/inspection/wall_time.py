"""The parts that the measured time of a call consists of: lines, what XLA put in, and where no kernel ran."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from xlamini.inspection.equations import Report, place_of
from xlamini.inspection.line_costs import TIMES, row_measured
from xlamini.inspection.quantities import Target

LEAST = 1e-9
"""Seconds that rounding may leave over."""


class CallPart(NamedTuple):
    """The seconds of a part of a call; half of the calls took `low` to `high`, which older reports do not say."""

    measured: float
    low: float | None
    high: float | None


def call_parts(report: Report, target: Target) -> dict[str, CallPart]:
    """The parts of a measured call, by what they are; they add up to the call."""
    of_kernels = zip(*(_of_kernels(report, target, time) for time in TIMES), strict=True)
    own, others, put_in = (CallPart(*times) for times in of_kernels)
    return {
        "your lines": own,
        "kernels without a line of yours": others,
        "put in by XLA": put_in,
        "between kernels": _idle(target["measured"], "between"),
        "before the first kernel and after the last": _idle(target["measured"], "around"),
    }


def _of_kernels(report: Report, target: Target, time: str) -> tuple[float, float, float]:
    """How much of a measured time is that of the user's lines, of other kernels, and of those that XLA put in."""
    timed = [kernel for kernel in target["kernels"] if kernel.get("measured")]
    own = sum(seconds for row, seconds in row_measured(target, time).items() if _is_own(report, row))
    put_in = sum(kernel["measured"][time] for kernel in timed if kernel["inserted"])
    return own, max(sum(kernel["measured"][time] for kernel in timed) - own - put_in, 0.0), put_in


def _idle(call: Mapping[str, Any], name: str) -> CallPart:
    return CallPart(call[name], call.get(f"{name}_low"), call.get(f"{name}_high"))


def wall_time(report: Report, target: Target) -> list[dict[str, Any]]:
    """The parts of a call that take time, each with its seconds and its share."""
    parts = {name: part.measured for name, part in call_parts(report, target).items() if part.measured > LEAST}
    whole = sum(parts.values())
    return [{"part": part, "seconds": seconds, "share": seconds / whole} for part, seconds in parts.items()]


def _is_own(report: Report, row: int) -> bool:
    source = report["equations"]["source"][row]
    return bool(place_of(report, row).file) and not report["sources"][source]["library"]
