"""The table of contents of the compiler: the passes from a traced program to the one that StableHLO is written of.

    FRONT = expand, unreduced, physical, dce       the program that is counted, planned, and looked up on disk
    BACK  = outline, chunk, specialize, cut        the program for one platform, or for several

Each pass maps a jaxpr to a jaxpr; under `enable_checks` each result is checked, and `inspect` shows each. A deep
program that `chunk` made into calls of segments ends there: each segment is a program of its own, and goes its own way.
Whoever needs the program as it is compiled asks here: a call, `lower`, an export, the cost, the memory plan, the disk
cache.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import Holder, Jaxpr, ShapedArray, Values, close_over, float0, rewrite
from xlamini.core.program.form import Platform
from xlamini.core.program.hi_types import HiAval, lowered
from xlamini.core.program.jaxpr import is_expanded
from xlamini.core.program.ref_types import AbstractRef
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.dce import dce
from xlamini.interpreters.discharge import discharge
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.expand import expand
from xlamini.interpreters.physical import physical
from xlamini.lowering.fusion_cuts import cut
from xlamini.lowering.specialize import specialize
from xlamini.primitives.placement.sharding_constraint import moved_to
from xlamini.runtime import key_words
from xlamini.staging.compile.outlining import Outline, chunked, outlined
from xlamini.staging.trace.tracing import Trace


class PipelineOptions(NamedTuple):
    """What the passes depend on besides the program."""

    name: str = ""
    platforms: tuple[Platform, ...] = ()
    outs: Sequence[Any] = ()
    """The shardings of the results on a mesh; None for any."""
    keep_unused: bool = False
    outline: bool = False
    in_segments: bool = False
    """Whether it may run as several executables, one after another."""


class PipelineStage(NamedTuple):
    """A program between two passes: which inputs it still has, how it was outlined, and what each pass gave."""

    jaxpr: Jaxpr
    used_inputs: Sequence[bool] = ()
    outline: Outline | None = None
    passed: Mapping[str, Jaxpr] = {}

    @property
    def in_segments(self) -> bool:
        """Whether each equation is the call of a segment, which is compiled as a program of its own."""
        return self.outline is not None and self.outline.lengths is not None


Passes = Mapping[str, Callable[[PipelineStage, PipelineOptions], PipelineStage]]
"""Passes by their names, in their order."""
_PLAIN = PipelineOptions()


def front(jaxpr: Jaxpr, options: PipelineOptions = _PLAIN) -> PipelineStage:
    """The program after the passes that no platform has a say in."""
    return _through(FRONT, PipelineStage(jaxpr), options)


def back(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    """The program as it is lowered for the platforms; one that runs in segments is left to those."""
    return _through(BACK, stage, options)


def _through(passes: Passes, stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    for name, run in passes.items():
        stage = run(stage, options)
        stage = stage._replace(passed={**stage.passed, name: stage.jaxpr})
    return stage


# --- the passes


def _expand(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    return stage if is_expanded(stage.jaxpr) else stage._replace(jaxpr=close_over(expand(stage.jaxpr)))


def _unreduced(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    moves = any(map(_moves_terms, stage.jaxpr.out_avals, options.outs))
    return stage._replace(jaxpr=_with_terms(stage.jaxpr, options.outs)) if moves else stage


def _moves_terms(aval: ShapedArray, there: Any) -> bool:
    """Whether an output with this sharding is unreduced, or has a sum to take."""
    return there is not None and bool(there.spec.unreduced or sums_of(aval).unreduced)


@rewrite
def _with_terms(jaxpr: Jaxpr, outs: Sequence[Any]) -> Jaxpr:
    """The jaxpr with those outputs resharded; Shardy would take any value for a term, and refuse to return a sum."""

    def resharded(*operands: Any) -> list[Any]:
        found = zip(evaluate(jaxpr, operands), jaxpr.out_avals, outs, strict=True)
        return [moved_to(x, there) if _moves_terms(aval, there) else x for x, aval, there in found]

    return build(resharded, jaxpr.in_avals, jaxpr.name)[0]


def _physical(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    """The program with random keys as the words that they are, after they have been checked."""
    on_words = physical(stage.jaxpr)
    if on_words is not stage.jaxpr and options.name:
        from xlamini.staging.compile.key_reuse import check_keys  # for programs with keys

        check_keys(options.name, stage.jaxpr)
    return stage._replace(jaxpr=on_words)


def _dce(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    """The program without unused equations and inputs, and without results of dtype float0, which hold nothing."""
    computed = tuple(a.dtype != float0 for a in stage.jaxpr.out_avals)
    pruned, used = dce(stage.jaxpr, computed, options.keep_unused)
    return stage._replace(jaxpr=pruned, used_inputs=used)


def _outline(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    platform, *others = options.platforms
    in_segments = options.in_segments and not stage.jaxpr.effects
    found = outlined(stage.jaxpr, platform.name, options.outline and not others, in_segments)
    return stage._replace(jaxpr=found.jaxpr, outline=found)


def _chunk(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    lengths = stage.outline and stage.outline.lengths
    return stage._replace(jaxpr=chunked(stage.jaxpr, lengths)) if lengths else stage


def _specialize(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    if stage.in_segments:
        return stage
    return stage._replace(jaxpr=specialize(stage.jaxpr, options.platforms))


def _cut(stage: PipelineStage, options: PipelineOptions) -> PipelineStage:
    """The program with the fusion cuts of the CPU; other platforms ignore them."""
    has_forms = stage.jaxpr is not stage.passed["chunk"]
    if not has_forms or "cpu" not in [platform.name for platform in options.platforms]:
        return stage
    return stage._replace(jaxpr=cut(stage.jaxpr))


FRONT: Passes = {"expand": _expand, "unreduced": _unreduced, "physical": _physical, "dce": _dce}
BACK: Passes = {"outline": _outline, "chunk": _chunk, "specialize": _specialize, "cut": _cut}


# --- single passes, for programs that are not lowered as a whole


def in_arrays(jaxpr: Jaxpr, inputs: Values) -> tuple[Jaxpr, list[Any]]:
    """The program in terms of primitives that are lowered, and its first inputs, of which `inputs` are given.

    What the expand rules captured comes before these, and a value of a user's type becomes arrays.
    """
    whole = expand(jaxpr)
    return close_over(whole), [*whole.consts, *lowered(jaxpr.in_avals[: len(inputs)], inputs)]


def needed(jaxpr: Jaxpr, keep_unused: bool = False) -> PipelineStage:
    """The program without unused equations: some of these cannot be run, such as an undefined derivative."""
    return PipelineStage(*dce(jaxpr, (True,) * len(jaxpr.outvars), keep_unused))


# --- traces


def for_platform(traced: Trace, platform: str) -> Trace:
    """The trace of the program that is lowered for one device of a platform, without outlining; no input is dropped."""
    whole = expanded(traced)
    options = PipelineOptions(whole.jaxpr.name, (Platform(platform, kernels=True),), keep_unused=True)
    jaxpr = back(front(whole.jaxpr, options), options).jaxpr
    return whole._replace(jaxpr=jaxpr, captured=list(map(key_words, whole.captured)))


def discharged(traced: Trace) -> Trace:
    """The trace of the values of refs, those that it captured included; it itself if it has no refs."""
    if AbstractRef not in map(type, traced.jaxpr.in_avals):
        return traced
    captured = [x.cell.read() if isinstance(x, Holder) else x for x in traced.captured]
    return traced._replace(jaxpr=discharge(traced.jaxpr), captured=captured)


def expanded(traced: Trace) -> Trace:
    """The trace in terms of primitives that are lowered; what their rules captured joins the captured values."""
    traced = discharged(traced)
    if is_expanded(traced.jaxpr):
        return traced
    _refuse_users_types(traced.jaxpr)
    jaxpr, captured = in_arrays(traced.jaxpr, traced.captured)
    return traced._replace(jaxpr=jaxpr, captured=captured)


def _refuse_users_types(jaxpr: Jaxpr) -> None:
    """TypeError for a program that takes or returns values that are no arrays, as an exported one would."""
    found = [a for a in (*jaxpr.in_avals, *jaxpr.out_avals) if type(a) is HiAval]
    if found:
        raise TypeError(
            f"{jaxpr.name} takes or returns a value of the type {found[0]}, but an exported program takes and returns "
            "arrays, as who calls it may not have the type; export a function of arrays that makes the value inside"
        )
