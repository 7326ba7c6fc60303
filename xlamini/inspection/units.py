"""Quantities as people write them: `14GiB`, `3.2M`, `1.5ms`. Numbers of reports are bytes, counts and seconds."""
from __future__ import annotations

import re
from typing import Any

from xlamini.core.flags.environment_variables import near
from xlamini.runtime.execution.host_memory import shown_bytes

BYTES = {"B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, "TB": 10**12}
BYTES["TiB"] = 2**40
COUNT = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
FAMILIES: dict[str, dict[str, Any]] = {"bytes": BYTES, "count": COUNT, "seconds": SECONDS}

UNKNOWN = "-"
"""What stands in a table where the report does not have a number."""


def parsed(text: str, family: str) -> float:
    """The number that a text such as `14GiB` means; ValueError says what is wrong with it.

    >>> parsed("1.5GiB", "bytes"), parsed("12", "count"), parsed("2ms", "seconds")
    (1610612736, 12, 0.002)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None:
        raise ValueError(f"{text.strip()!r} is no number")
    unit, units = match[2], FAMILIES[family]
    if unit and unit not in units:
        raise ValueError(f"{unit!r} is no unit of {family}, which are {', '.join(units)}{near(unit, units)}")
    number = float(match[1]) * units.get(unit, 1)
    return int(number) if number.is_integer() and family != "seconds" else number


def shown(number: float | None, family: str) -> str:
    """A quantity with the unit that suits it; `-` for None.

    >>> shown(1536, "bytes"), shown(3_200_000, "count"), shown(0.0015, "seconds"), shown(None, "bytes")
    ('1.5 KiB', '3.2 M', '1.5 ms', '-')
    """
    if number is None:
        return UNKNOWN
    if family == "bytes":
        return f"-{shown_bytes(-number)}" if number < 0 else shown_bytes(number)
    return _shown_seconds(number) if family == "seconds" else _shown_count(number)


def _shown_count(number: float) -> str:
    for unit, size in reversed(COUNT.items()):
        if abs(number) >= size:
            return f"{_digits(number / size)} {unit}"
    return _digits(number)


def _shown_seconds(number: float) -> str:
    if number == 0:
        return "0 s"
    unit, size = next(((u, size) for u, size in SECONDS.items() if abs(number) >= size), ("ns", SECONDS["ns"]))
    return f"{_digits(number / size)} {unit}"


def _digits(number: float) -> str:
    """At most four digits, and never an exponent below a million."""
    return f"{number:.0f}" if 1000 <= abs(number) < 1e6 else f"{number:.4g}"


def change(before: float | None, after: float | None) -> str:
    """How much a quantity has changed: `+5 %`, `same`, `new`; `-` where one of the two is None."""
    if before is None or after is None:
        return UNKNOWN
    if before == after:
        return "same"
    if not before:
        return "new"
    percent = 100 * (after - before) / before
    return f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.2g} %"
