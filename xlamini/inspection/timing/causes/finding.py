"""One finding, and what the causes have in common."""
from __future__ import annotations

from typing import NamedTuple

from xlamini.core.errors.frames import own_files
from xlamini.staging.compile.ledger import Compilation, Function

LEAST_SHARE = 0.05
"""The share of the time from which on something is a finding."""


class TimeFinding(NamedTuple):
    """Something that takes a share of the time, in words, with a fix; `line` is `file:line`, or "" if none is known."""

    share: float
    text: str
    line: str = ""

    def __str__(self) -> str:
        return f"{self.share:4.0%}  {self.text}"


def place(line: str) -> str:
    """`file:line` of `file:line (function)`."""
    return line.partition(" (")[0]


def known_as(function: Function, entry: Compilation) -> tuple[str, str]:
    """The name and line by which the user knows a function: of the library's own, the line that called it."""
    if own_files[function.file]:
        return f"{function.name} ({place(entry.where)})", place(entry.where)
    return str(function), f"{function.file}:{function.line}"
