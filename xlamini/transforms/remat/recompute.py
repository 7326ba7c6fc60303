"""The rewrite behind checkpoint: store fewer residuals between two programs, and recompute the others in the second.

    first: inputs -> (outputs, residuals)   second: (residuals, own inputs) -> its outputs

are the two programs of linearize or partial evaluation. After the rewrite only inputs, and values that the policy
allows, are stored; the second program recomputes the residuals from them. Dead equations are removed from both. A value
that the policy offloads is stored in another memory: the first program moves it there, the second one back.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Jaxpr, Values, rewrite
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import builder
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.residuals import gather_residuals
from xlamini.primitives import in_space
from xlamini.staging import chosen
from xlamini.transforms.remat.policies import Policy
from xlamini.transforms.remat.saving import Saved, Saving, saving


class ForwardAndRecompute(NamedTuple):
    """`first` returns `count` outputs and then the saved values; `second` takes the stored values first.

    Stored values are the `saved` values that `first` computes, followed by inputs of `first`. `sources` are their
    positions among the inputs and results of `first`.
    """

    first: Jaxpr
    second: Jaxpr
    count: int
    saved: int
    sources: tuple[int, ...]

    def outs_and_stored(self, inputs: Values, results: Values) -> tuple[list[Any], list[Any]]:
        """The outputs and the stored values, from the inputs and results of `first`."""
        return list(results[: self.count]), gather_residuals(self.sources, inputs, results)


@rewrite
def cut(
    first: Jaxpr, second: Jaxpr, count: int, sources: tuple[int, ...], policy: Policy | None
) -> ForwardAndRecompute:
    """Rewrite both programs; `first` has `count` outputs, and `sources` are the positions of the residuals."""
    opened = saving(first, policy)
    recomputing, used = _recomputing(opened, sources, second)
    number = len(opened.saved)
    saved = chosen(opened.saved, used[:number])
    whole = _returning(opened.jaxpr, count, saved)
    outputs, stored, inputs = whole.outvars[:count], whole.outvars[count:], chosen(whole.invars, used[number:])
    new = [v for v in stored if v not in outputs]
    pruned, _ = dce(whole.replace(outvars=[*outputs, *new]), (True,) * (count + len(new)), True)
    places = {v: i for i, v in reversed(list(enumerate([*pruned.invars, *pruned.outvars])))}
    return ForwardAndRecompute(pruned, recomputing, count, len(saved), tuple(places[v] for v in (*stored, *inputs)))


def _returning(first: Jaxpr, count: int, saved: Sequence[Saved]) -> Jaxpr:
    """`first` with its first `count` outputs, and then the saved values, each in its memory."""
    whole = first.replace(outvars=[*first.outvars[:count], *(s.var for s in saved)])
    if all(s.stays for s in saved):
        return whole

    origins = {v: eqn.provenance for eqn in first.eqns for v in eqn.outvars}

    def moved(x: Any, place: Saved) -> Any:
        builder().provenance = origins[place.var]
        return in_space(x, place.space)

    def move(*operands: Any) -> list[Any]:
        outs = evaluate(whole, operands)
        return [*outs[:count], *map(moved, outs[count:], saved)]

    return build(move, whole.in_avals, whole.name)[0]


def _recomputing(first: Saving, sources: Sequence[int], second: Jaxpr) -> tuple[Jaxpr, tuple[bool, ...]]:
    """`second` as a program of (saveable values, inputs of `first`, own inputs), and a mask of those that it uses."""
    variables = [s.var for s in first.saved]
    stored = [*(s.var.aval.in_space(s.space) for s in first.saved), *first.jaxpr.in_avals]
    own = second.in_avals[len(sources) :]

    def recompute_first(*operands: Any) -> list[Any]:
        back = [in_space(x, v.aval.memory_space) for x, v in zip(operands, variables, strict=False)]
        values = first.recompute(back, operands[len(back) : len(stored)])
        return evaluate(second, [*[values[i] for i in sources], *operands[len(stored) :]])

    whole, _ = build(recompute_first, [*stored, *own], second.name)
    with_own = whole.replace(outvars=[*whole.outvars, *whole.invars[len(stored) :]])  # dce must not drop own inputs
    pruned, used = dce(with_own, (True,) * len(with_own.outvars))
    return pruned.replace(outvars=pruned.outvars[: len(whole.outvars)]), used[: len(stored)]
