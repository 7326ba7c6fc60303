"""The estimated cycles of a TPU program: XLA's TPU compiler annotates each instruction with its estimate.

Loops are multiplied by their trip counts where those are static; of branches the longest counts; an instruction without
an estimate counts zero.
"""
from __future__ import annotations

import re

from xlamini.runtime.hlo.computations import ENTRY, Computations, computations_of
from xlamini.runtime.hlo.loops import trip_count

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_INSIDE = re.compile(r"\b(?:body|to_apply)=%?([\w.\-]+)")
_NO_ESTIMATE = 2**62
"""The threshold of valid estimates: XLA writes the maximum int64 where it has none."""


def estimated_cycles(text: str) -> int:
    """The estimated cycles of a program, from its optimized HLO; 0 if the compiler wrote no estimates."""
    return _cycles(computations_of(text), ENTRY, {})


def _cycles(program: Computations, name: str, memo: dict[str, int]) -> int:
    if name not in memo:
        memo[name] = sum(_of_instruction(program, name, line, memo) for line in program.lines.get(name, ()))
    return memo[name]


def _of_instruction(program: Computations, around: str, line: str, memo: dict[str, int]) -> int:
    """The cycles of one instruction and its callees; a fusion's cycles are annotated on the fusion itself."""
    own = sum(n for n in map(int, _CYCLES.findall(line)) if n < _NO_ESTIMATE)
    inside = sum(_cycles(program, called, memo) for called in _INSIDE.findall(line))
    longest = max((_cycles(program, branch, memo) for branch in program.branches(line)), default=0)
    return own + trip_count(program.lines, around, line) * inside + longest
