"""One finding: what takes time, in words."""
from __future__ import annotations

from typing import NamedTuple

LEAST_SHARE = 0.05
"""The share of the time from which on something is a finding."""


class TimeFinding(NamedTuple):
    """Something that takes a share of the time, in words, with a fix; `line` is `file:line`, or "" if none is known."""

    share: float
    text: str
    line: str = ""

    def __str__(self) -> str:
        return f"{self.share:4.0%}  {self.text}"
