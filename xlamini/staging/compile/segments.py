"""A deep program compiled in segments: an executable for each kind of row of blocks, and for what lies between rows."""
from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from xlamini.core import Equation, Jaxpr
from xlamini.core.flags.config import under
from xlamini.runtime.execution.executable import SegmentPlace
from xlamini.runtime.execution.segmented_program import SegmentedExecutable, SegmentStep
from xlamini.runtime.meshes.program_placement import input_shardings
from xlamini.staging.compile.compile_request import CompileRequest


def compile_segments(program: CompileRequest, compiled: Callable[[CompileRequest], Any]) -> SegmentedExecutable:
    """The program as executables that run one after another; `compiled` makes that of a segment."""
    made = {jaxpr: compiled(segment) for jaxpr, segment in lowered_segments(program).items()}
    jaxpr, avals = program.jaxpr, program.pruned.in_avals
    numbers = {v: i for i, v in enumerate([*jaxpr.invars, *(v for eqn in jaxpr.eqns for v in eqn.outvars)])}

    def numbered(values: Any) -> list[int]:
        return [numbers[v] for v in values]

    steps = [SegmentStep(made[_segment(eqn)], numbered(eqn.invars), numbered(dead)) for eqn, dead in calls(jaxpr)]
    order = tuple(list(made).index(_segment(eqn)) for eqn in jaxpr.eqns)
    for number, executable in enumerate(made.values()):
        executable.segment = SegmentPlace(number, order)
    shardings = input_shardings(program.device, avals)
    return SegmentedExecutable(steps, numbered(jaxpr.outvars), avals, shardings, frozenset(program.donated))


def lowered_segments(program: CompileRequest) -> dict[Jaxpr, CompileRequest]:
    """Each different segment of a program as a program of its own."""
    reused = _reused(program.jaxpr, program.donated)
    lowered = {}
    with under(program.flags):
        for jaxpr, flags in reused.items():
            segment = CompileRequest(jaxpr, program.name, program.device, flags, keep_unused=True, outline=False)
            segment.segment_count = len(reused)
            lowered[jaxpr] = segment
    return lowered


def calls(jaxpr: Jaxpr) -> list[tuple[Equation, list[Any]]]:
    """The calls of segments, each with the values that are dead after it."""
    last = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in (*eqn.outvars, *eqn.invars)}
    last |= dict.fromkeys(jaxpr.outvars, len(jaxpr.eqns))
    return [(eqn, [v for v in (*eqn.invars, *eqn.outvars) if last[v] == i]) for i, eqn in enumerate(jaxpr.eqns)]


def _segment(eqn: Equation) -> Jaxpr:
    return eqn.params["jaxpr"]


def _reused(jaxpr: Jaxpr, donated: Collection[int]) -> dict[Jaxpr, list[bool]]:
    """For each segment, whether its results may take an operand's memory: in each call of it, no later one reads it.

    Arguments are the caller's, but for those that it donates.
    """
    kept = {v for i, v in enumerate(jaxpr.invars) if i not in donated}
    reused: dict[Jaxpr, list[bool]] = {}
    for eqn, dead in calls(jaxpr):
        own = [v in dead and v not in kept for v in eqn.invars]
        reused[_segment(eqn)] = [a and b for a, b in zip(reused.get(_segment(eqn), own), own, strict=True)]
    return reused
