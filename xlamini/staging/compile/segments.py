"""A deep program compiled in segments: an executable for each kind of block, and for what lies between blocks."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Jaxpr
from xlamini.core.config import under
from xlamini.interpreters.outline.segments import Segments
from xlamini.runtime.meshes.program_placement import input_shardings
from xlamini.runtime.segments import SegmentedExecutable, Step
from xlamini.staging.compile.lowered_program import LoweredProgram


def in_segments(program: LoweredProgram, compiled: Callable[[LoweredProgram], Any]) -> SegmentedExecutable:
    """The program as executables that run one after another; `compiled` makes the executable of a segment."""
    segments: Segments = program.segments
    donated = {i for i, alias in enumerate(program.aliases) if alias is not None}
    reused = _reused(segments, len(program.pruned.invars), donated)
    made: dict[Jaxpr, Any] = {}
    for jaxpr, flags in reused.items():
        with under(program.flags):
            part = LoweredProgram(jaxpr, program.name, program.device, flags, keep_unused=True, outline=False)
        part.parts = len(reused)
        made[jaxpr] = compiled(part)
    steps = [Step(made[s.jaxpr], s.operands, s.freed) for s in segments.each]
    ins = program.pruned.in_avals
    shardings = input_shardings(program.device, ins)
    return SegmentedExecutable(steps, segments.outputs, ins, shardings, frozenset(donated))


def _reused(segments: Segments, inputs: int, donated: set[int]) -> dict[Jaxpr, list[bool]]:
    """For each segment's jaxpr, which operands' memory its results may take: what no later segment of any call reads.

    Arguments are the caller's, but for those that it donates.
    """
    reused: dict[Jaxpr, list[bool]] = {}
    for jaxpr, operands, freed in segments.each:
        own = [i in freed and (i >= inputs or i in donated) and operands.count(i) == 1 for i in operands]
        reused[jaxpr] = [a and b for a, b in zip(reused.get(jaxpr, own), own, strict=True)]
    return reused
