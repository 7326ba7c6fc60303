"""What XLA's TPU compiler expects a program to cost in cycles: it writes its estimate beside each instruction.

Loops count as often as they run where that can be seen; of branches the longest counts; what XLA has no estimate for
counts nothing.
"""
from __future__ import annotations

import re

from xlamini.runtime.hlo.computations import ENTRY, Computations, computations_of
from xlamini.runtime.hlo.loops import steps

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_INSIDE = re.compile(r"\b(?:body|to_apply)=%?([\w.\-]+)")
_NO_ESTIMATE = 2**62
"""From here on numbers are no estimates: XLA writes the largest of all where it has none."""


def estimated_cycles(text: str) -> int:
    """The cycles that a program takes, from its optimised HLO; 0 where the compiler writes none."""
    return _cycles(computations_of(text), ENTRY, {})


def _cycles(program: Computations, name: str, known: dict[str, int]) -> int:
    if name not in known:
        known[name] = sum(_of_instruction(program, name, line, known) for line in program.lines.get(name, ()))
    return known[name]


def _of_instruction(program: Computations, around: str, line: str, known: dict[str, int]) -> int:
    """The cycles of one instruction and of what it calls; a fusion's are written beside the fusion."""
    own = sum(n for n in map(int, _CYCLES.findall(line)) if n < _NO_ESTIMATE)
    inside = sum(_cycles(program, called, known) for called in _INSIDE.findall(line))
    longest = max((_cycles(program, branch, known) for branch in program.branches(line)), default=0)
    return own + steps(program.lines, around, line) * inside + longest
