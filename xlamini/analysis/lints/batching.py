"""Rules about what vmap made of a program."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.analysis.lints.finding import Finding, finding
from xlamini.analysis.lints.program import LintedProgram
from xlamini.analysis.lints.registry import lint_rule
from xlamini.core import Equation


def made_by_vmap(eqn: Equation, name: str) -> Equation | None:
    """The equation of vmap, of another primitive, that it made of one of this name, and that this one derives from."""
    here: Equation | None = eqn
    while here is not None and (origin := here.provenance.origin) is not None:
        if here.provenance.rewrite == "batch" and origin.primitive.name == name != here.primitive.name:
            return here
        here = origin
    return None


def _lanes(eqn: Equation) -> int:
    return eqn.provenance.lanes[0] if eqn.provenance.lanes else 0


@lint_rule
def cond_runs_all_branches(program: LintedProgram) -> Iterator[Finding]:
    """vmap over the predicate of a `cond` runs all branches for all examples."""
    for _, eqn in program.equations("branch"):
        made = made_by_vmap(eqn, "cond")
        cond = made.provenance.origin if made is not None else None
        if made is not None and cond is not None:
            count = len(cond.params["branches"])
            message = f"vmap runs all {count} branches for all {_lanes(made)} examples, as the predicate is mapped"
            fix = "Give the predicate's argument in_axes=None, or loop over the examples with lax.map."
            yield finding(cond, message, fix, count)


@lint_rule
def while_at_the_slowest_pace(program: LintedProgram) -> Iterator[Finding]:
    """vmap over the predicate of a `while_loop` runs the body for all examples until the last one is done."""
    for _, eqn in program.equations("while"):
        mapped = eqn.params["cond_jaxpr"].out_avals[0].shape
        if mapped:
            count = "x".join(map(str, mapped))
            message = f"the body runs for all {count} examples until the slowest is done, as the predicate is mapped"
            fix = "Bound the trips by a number that all examples share, or loop over the examples with lax.map."
            yield finding(eqn, message, fix)


@lint_rule
def gather_made_by_vmap(program: LintedProgram) -> Iterator[Finding]:
    """vmap over the start of a slice makes a gather of it."""
    for _, eqn in program.equations("gather"):
        made = made_by_vmap(eqn, "dynamic_slice")
        if made is not None:
            message = f"vmap makes a gather of {_lanes(made)} slices, as the start of the slice is mapped"
            fix = "If all examples have the same start, give it in_axes=None; it stays a slice then."
            yield finding(made, message, fix)


@lint_rule
def scatter_made_by_vmap(program: LintedProgram) -> Iterator[Finding]:
    """vmap over the start of an update makes a scatter of it."""
    for _, eqn in program.equations("scatter"):
        made = made_by_vmap(eqn, "dynamic_update_slice")
        if made is not None:
            message = f"vmap makes a scatter of {_lanes(made)} updates, as the start of the update is mapped"
            fix = "If all examples have the same start, give it in_axes=None; it stays an update of a slice then."
            yield finding(made, message, fix)
