"""Limits that a report must keep, for continuous integration: `report.check(peak="<14GiB", flops="+5%")`.

A limit compares a quantity with a number (`<14GiB`, `<=12`, `==3`), or with the same quantity of an earlier report
(`+5%`: at most 5 % more; `-10%`: at least 10 % less; `+0`: no more; `+64MiB`). What is not known keeps no limit.

A measured time, `time`, varies from run to run, so a limit on it is broken only if it does not hold for any time in the
middle half of the calls: `<300ms` if three quarters of the calls took longer, `+5%` if the lower quartile of the calls
is more than 5 % above the upper quartile of the earlier ones.
"""
from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

from xlamini.core.flags.environment_variables import near
from xlamini.inspection.equations import Report, without_texts
from xlamini.inspection.layout import columns
from xlamini.inspection.line_costs import Mover, amounts, movers
from xlamini.inspection.quantities import QUANTITIES, Target, find_target, spread_of, value_of, why_unknown
from xlamini.inspection.schema import read_report
from xlamini.inspection.units import FAMILIES, change, parsed, shown

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class Limit(NamedTuple):
    """A limit as it was written and its parts; a relative one has a share and an addend in place of a comparison."""

    quantity: str
    text: str
    compare: Callable[[float, float], bool] | None
    number: float
    percent: float = 0

    def __str__(self) -> str:
        return f"{self.quantity} {self.text.strip()}"

    @property
    def relative(self) -> bool:
        return self.compare is None

    def holds(self, value: float, before: float | None) -> bool:
        if self.compare is not None:
            return self.compare(value, self.number)
        return before is not None and 100 * value <= before * (100 + self.percent) + 100 * self.number

    def within(self, value: float, spread: tuple[float, float] | None) -> Sequence[float]:
        """The numbers of a spread by which it is decided: both ends, and what is nearest to the limit."""
        return (value,) if spread is None else (*spread, sorted((*spread, self.number))[1])


class Outcome(NamedTuple):
    """A limit and what became of it for a target: `why` is "" where it holds."""

    limit: Limit
    target: str
    value: float | None
    before: float | None
    why: str
    mover: Mover | None


class Check:
    """The outcomes of all limits; false if one is broken or could not be decided. Prints as a table."""

    def __init__(self, outcomes: Sequence[Outcome]):
        self.outcomes: tuple[Outcome, ...] = tuple(outcomes)

    def __bool__(self) -> bool:
        return not self.broken

    @property
    def broken(self) -> list[Outcome]:
        """The outcomes of limits that do not hold."""
        return [outcome for outcome in self.outcomes if outcome.why]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for json."""
        return {"ok": bool(self), "outcomes": [_plain(outcome) for outcome in self.outcomes]}

    def __repr__(self) -> str:
        head = ("", "limit", "target", "value", "before", "change", "the line that moved most")
        table = columns(head, [_shown(outcome) for outcome in self.outcomes], right=(3, 4, 5))
        broken = [f"{o.limit} is broken for {o.target}: {o.why}" for o in self.broken]
        return "\n".join([*table, "", *broken] if broken else [*table, "", "all limits hold"])


def check(
    report: Report,
    against: str | PathLike[str] | Report | None = None,
    targets: Sequence[str] | None = None,
    **limits: str,
) -> Check:
    """Whether a report keeps its limits, for all of its targets or for those named.

    Args:
      report: the report, as its dict.
      against: an earlier report, or the file of its JSON; limits such as `+5%` need it.
      targets: names of targets of the report; all by default.
      **limits: a quantity (`peak`, `temporaries`, `flops`, `bytes`, `kernels`, `collectives`, `seconds`, `time`,
        `equations`) and its limit, or several with commas between. Memory and bytes take units B, KB, KiB, … TiB,
        counts K, M, G, T, P, times s, ms, us, ns. `seconds` is the predicted time, that of a CPU from peaks measured
        during inspection, so that it varies with the machine's load; `time` the measured one, of the targets that were
        measured.

    Raises:
      ValueError: for an unknown quantity or target, a malformed limit, no limit, a relative one without `against`, or a
        limit on the time of a report without measurement.
      ReportFormatError: if `against` is no report, or one of a newer version.
    """
    found = [parse_limit(quantity, part) for quantity, text in limits.items() for part in _parts(text)]
    if not found:
        raise ValueError(f"check: there is no limit; give one such as peak='<14GiB' (of: {', '.join(QUANTITIES)})")
    for limit in found:
        if limit.relative and against is None:
            raise ValueError(f"check: {limit.quantity}={limit.text!r} compares with an earlier report; give against=")
    chosen = report["targets"] if targets is None else [find_target(report, name) for name in targets]
    earlier = None if against is None else read_report(against)
    measured = _measured(report, chosen) if any(limit.quantity == "time" for limit in found) else ()
    of = {limit: measured if limit.quantity == "time" and targets is None else chosen for limit in found}
    return Check([o for limit in found for o in _outcomes(report, earlier, limit, of[limit])])


def _measured(report: Report, targets: Sequence[Target]) -> Sequence[Target]:
    """The targets with a measured time, all if measuring failed; ValueError if none was to be measured."""
    found = [target for target in targets if target.get("measured")]
    if not found and not report["failure"]:
        raise ValueError("check: time is the measured time of a call; inspect with measure=True (--measure)")
    return found or targets


def parse_limit(quantity: str, text: str) -> Limit:
    """The limit on a quantity that a text such as `<14GiB` or `+5%` means.

    >>> parse_limit("peak", "<14GiB").number, parse_limit("flops", "+5%").percent
    (15032385536, 5)
    """
    if quantity not in QUANTITIES:
        known = f"(known: {', '.join(QUANTITIES)}){near(quantity, QUANTITIES)}"
        raise ValueError(f"check: there is no quantity {quantity!r} {known}")
    family = QUANTITIES[quantity].family
    match = re.fullmatch(r"\s*(<=|>=|==|<|>|\+|-)\s*(.*?)(%?)\s*", text) if isinstance(text, str) else None
    if match is None or (match[3] and match[1] not in "+-"):
        raise _malformed(quantity, text, "it must begin with < <= > >= == + or -, and % goes with + or - only")
    sign, number, percent = match.groups()
    try:
        size = parsed(number, "count" if percent else family)
    except ValueError as error:
        raise _malformed(quantity, text, str(error)) from None
    if sign in _COMPARISONS:
        return Limit(quantity, text, _COMPARISONS[sign], size)
    signed = -size if sign == "-" else size
    return Limit(quantity, text, None, 0, signed) if percent else Limit(quantity, text, None, signed)


def _parts(text: Any) -> list[Any]:
    """The limits in a text, which commas separate."""
    return text.split(",") if isinstance(text, str) else [text]


def _malformed(quantity: str, text: object, why: str) -> ValueError:
    unit = {"bytes": "14GiB", "count": "12M", "seconds": "5ms"}[QUANTITIES[quantity].family]
    units = ", ".join(FAMILIES[QUANTITIES[quantity].family])
    return ValueError(
        f"check: {quantity}={text!r} is no limit: {why}; write '<{unit}', '<=', '>', '>=' or '==' and a number, or "
        f"'+5%', '-10%', '+0' to compare with an earlier report (units: {units})"
    )


def _outcomes(report: Report, against: Report | None, limit: Limit, targets: Sequence[Target]) -> Iterator[Outcome]:
    """The outcome for each target, or one for all if the quantity is the same for all."""
    if not QUANTITIES[limit.quantity].of_target:
        yield _outcome(report, against, limit, None)
    elif not targets:
        yield Outcome(limit, "-", None, None, "the report has no targets", None)
    for target in targets if QUANTITIES[limit.quantity].of_target else ():
        yield _outcome(report, against, limit, target)


def _outcome(report: Report, against: Report | None, limit: Limit, target: Target | None) -> Outcome:
    name = "all" if target is None else target["name"]
    value, before, unknown = value_of(report, target, limit.quantity), None, ""
    earlier = None if against is None else next((t for t in against["targets"] if t["name"] == name), None)
    if against is not None and (target is None or earlier is not None):
        before = value_of(against, earlier, limit.quantity)
    if value is None:
        unknown = f"not known: {why_unknown(report, target)}"
    elif limit.relative and before is None:
        unknown = f"the earlier report has no {limit.quantity} for {name}"
        unknown += "; inspect it with measure=True" if limit.quantity == "time" else ""
    spreads = spread_of(target, limit.quantity), spread_of(earlier, limit.quantity)
    holds = any(
        limit.holds(now, then)
        for now in limit.within(value or 0, spreads[0])
        for then in ((before,) if before is None else limit.within(before, spreads[1]))
    )
    broken = "" if unknown or holds else f"it is {_amount(limit, value)}{_spread(spreads[0])}"
    if broken and before is not None:
        broken += f", and was {_amount(limit, before)} ({change(before, value)})"
    mover = None if unknown or value == before else _mover(report, against, limit, target, earlier)
    return Outcome(limit, name, value, before, unknown or broken, mover)


def _spread(spread: tuple[float, float] | None) -> str:
    if spread is None:
        return ""
    low, high = (shown(seconds, "seconds") for seconds in spread)
    return f" (half of the calls took {low} to {high})"


def _mover(
    report: Report, against: Report | None, limit: Limit, target: Target | None, earlier: Target | None
) -> Mover | None:
    """The line that moved most in the direction of the quantity as a whole."""
    if against is None:
        return next(iter(movers(None, amounts(report, limit.quantity, target))), None)
    old, new = without_texts(against, report)
    before, after = value_of(old, earlier, limit.quantity), value_of(new, target, limit.quantity)
    falls = before is not None and after is not None and after < before
    found = movers(amounts(old, limit.quantity, earlier), amounts(new, limit.quantity, target))
    return next((m for m in found if (m.gain < 0) == falls), None)


def _amount(limit: Limit, number: float | None) -> str:
    return shown(number, QUANTITIES[limit.quantity].family)


def _shown(outcome: Outcome) -> list[str]:
    limit, mover = outcome.limit, outcome.mover
    moved = "" if mover is None else f"{mover.place}  {_moved(limit, mover)}  {mover.place.text}".rstrip()
    return [
        "FAIL" if outcome.why else "ok", str(limit), outcome.target, _amount(limit, outcome.value),
        _amount(limit, outcome.before), change(outcome.before, outcome.value), moved,
    ]  # fmt: skip


def _moved(limit: Limit, mover: Mover) -> str:
    if mover.before is None:
        return _amount(limit, mover.after)
    sign = "+" if mover.gain > 0 else ""
    return sign + _amount(limit, mover.gain)


def _plain(outcome: Outcome) -> dict[str, Any]:
    limit, mover = outcome.limit, outcome.mover
    line = None if mover is None else {**mover.place._asdict(), "before": mover.before, "after": mover.after}
    return {
        "quantity": limit.quantity, "limit": limit.text, "target": outcome.target, "ok": not outcome.why,
        "value": outcome.value, "before": outcome.before, "why": outcome.why, "line": line,
    }  # fmt: skip
