"""A deep program compiled in segments: an executable for each kind of row of blocks, and for what lies between rows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Jaxpr
from xlamini.core.flags.config import under
from xlamini.interpreters.outline.chunks import Chunks
from xlamini.runtime.execution.chunked_program import ChunkStep, SegmentedExecutable
from xlamini.runtime.meshes.program_placement import input_shardings
from xlamini.staging.compile.compile_request import CompileRequest


def compile_segments(program: CompileRequest, compiled: Callable[[CompileRequest], Any]) -> SegmentedExecutable:
    """The program as executables that run one after another; `compiled` makes that of a segment."""
    made = {jaxpr: compiled(segment) for jaxpr, segment in lowered_segments(program).items()}
    segments = segments_of(program)
    steps = [ChunkStep(made[s.jaxpr], s.operands, s.dead) for s in segments.in_order]
    avals = program.pruned.in_avals
    shardings = input_shardings(program.device, avals)
    return SegmentedExecutable(steps, segments.outputs, avals, shardings, frozenset(program.donated))


def segments_of(program: CompileRequest) -> Chunks:
    """The segments of a program that has some."""
    found = program.segments
    assert found is not None
    return found


def lowered_segments(program: CompileRequest) -> dict[Jaxpr, CompileRequest]:
    """Each different segment of a program as a program of its own."""
    reused = _reused(segments_of(program), len(program.pruned.invars), {*program.donated})
    lowered = {}
    with under(program.flags):
        for jaxpr, flags in reused.items():
            segment = CompileRequest(jaxpr, program.name, program.device, flags, keep_unused=True, outline=False)
            segment.segment_count = len(reused)
            lowered[jaxpr] = segment
    return lowered


def _reused(segments: Chunks, inputs: int, donated: set[int]) -> dict[Jaxpr, list[bool]]:
    """For each jaxpr, whether its results may take an operand's memory: in each segment with it, no later one reads it.

    Arguments are the caller's, but for those that it donates.
    """
    reused: dict[Jaxpr, list[bool]] = {}
    for jaxpr, operands, dead in segments.in_order:
        own = [i in dead and (i >= inputs or i in donated) and operands.count(i) == 1 for i in operands]
        reused[jaxpr] = [a and b for a, b in zip(reused.get(jaxpr, own), own, strict=True)]
    return reused
