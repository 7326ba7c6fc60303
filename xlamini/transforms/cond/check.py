"""Branches of a checked cond: each returns the error of the whole, in which the other branches have not failed."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import Jaxpr, Values, aval_of
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.check import Checked, Errors, check
from xlamini.interpreters.error_values import (
    NOTHING,
    ErrorPart,
    depth_of,
    empty_error,
    gated,
    merged,
    of_active,
    padded,
    with_common_types,
)
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.reductions.reductions import reduce_or
from xlamini.transforms.control_flow.predicated_lanes import replace_idle


class CheckedBranches(NamedTuple):
    """Branches whose last results are the error."""

    branches: tuple[Jaxpr, ...]
    error: ErrorPart

    def split_outputs(self, outs: Sequence[Any]) -> tuple[list[Any], ErrorPart]:
        """The results and the error, of a run."""
        count = len(outs) - len(self.error.values)
        return list(outs[:count]), self.error.rebuilt(outs[count:])


def checked_branches(branches: tuple[Jaxpr, ...], errors: Errors) -> CheckedBranches:
    """All branches, checked."""
    made = [check(branch, errors) for branch in branches]
    found = [_with_error_of_all(i, made) for i in range(len(made))]
    return CheckedBranches(tuple(jaxpr for jaxpr, _ in found), found[0][1])


def checked_branch(
    bind: Callable[..., list[Any]], errors: Errors, operands: Values, jaxpr: Jaxpr, lanes: Sequence[bool]
) -> Any:
    """The results and the error of one branch that is run for all lanes, of which the active ones alone may fail."""
    made, active = check(jaxpr, errors), operands[0]
    if not made.error.sites:
        return bind(*operands, jaxpr=made.jaxpr, lanes=lanes), made.error
    inputs = [replace_idle(active, x) if marked else x for x, marked in zip(operands, lanes, strict=True)]
    outs, error = made.split_outputs(bind(*inputs, jaxpr=made.jaxpr, lanes=lanes))
    return outs, gated(of_active(error, active), reduce_or(active, range(aval_of(active).ndim)))


def _with_error_of_all(number: int, made: Sequence[Checked]) -> tuple[Jaxpr, ErrorPart]:
    if not any(m.error.sites for m in made):
        return made[number].jaxpr, NOTHING
    own, error = made[number], NOTHING

    def branch(*operands: Any) -> list[Any]:
        nonlocal error
        outs, found = own.split_outputs(evaluate(own.jaxpr, operands))
        depth = depth_of([m.error for m in made])
        parts = [_padded(found if i == number else empty_error(m.error), depth) for i, m in enumerate(made)]
        error = with_common_types(merged(parts))
        return [*outs, *error.values]

    result, _ = build(branch, own.jaxpr.in_avals, own.jaxpr.name)
    return result, error.of_types(result.out_avals[len(own.jaxpr.outvars) - len(own.error.values) :])


def _padded(part: ErrorPart, depth: int) -> ErrorPart:
    return part._replace(trips=padded(part, depth)) if part.sites else part
