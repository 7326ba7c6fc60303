"""The rewrite behind checkpoint: store fewer residuals between two programs, and recompute the others in the second.

    first: inputs -> (outputs, residuals)   second: (residuals, own inputs) -> its outputs

are the two programs of linearize or partial evaluation. After the rewrite only inputs, and values that the policy
allows, are stored; the second program recomputes the residuals from them. Dead equations are removed from both. A value
that the policy offloads is stored in another memory: the first program moves it there, the second one back.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, Values, Var, rewrite
from xlamini.core.jaxpr import rewrites
from xlamini.core.memory_space import Space
from xlamini.core.tracer import build
from xlamini.interpreters.dce import dce
from xlamini.interpreters.environment import bound, builder, read
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.residuals import gather_residuals
from xlamini.primitives import in_space
from xlamini.staging import chosen
from xlamini.staging.call.call import jit_p
from xlamini.transforms.remat.checkpoint_name import name_p
from xlamini.transforms.remat.policies import Policy, decision


class Cut(NamedTuple):
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
def cut(first: Jaxpr, second: Jaxpr, count: int, sources: tuple[int, ...], policy: Policy | None) -> Cut:
    """Rewrite both programs; `first` has `count` outputs, and `sources` are the positions of the residuals."""
    opened = first if policy is None else _inline_mixed(first, policy)
    saveable = [] if policy is None else _saveable(opened, policy)
    recomputing, used = _recomputing(opened, saveable, sources, second)
    saved = chosen(saveable, used[: len(saveable)])
    whole = _returning(opened, count, saved)
    outputs, stored, inputs = whole.outvars[:count], whole.outvars[count:], chosen(whole.invars, used[len(saveable) :])
    new = [v for v in stored if v not in outputs]
    pruned, _ = dce(whole.replace(outvars=[*outputs, *new]), (True,) * (count + len(new)), True)
    places = {v: i for i, v in reversed(list(enumerate([*pruned.invars, *pruned.outvars])))}
    return Cut(pruned, recomputing, count, len(saved), tuple(places[v] for v in (*stored, *inputs)))


class Saved(NamedTuple):
    """A variable to store, and the memory space to store it in."""

    var: Var
    space: Space

    @property
    def stays(self) -> bool:
        """Whether it is stored where it is."""
        return self.space is self.var.aval.memory_space


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


def _recomputing(
    first: Jaxpr, saveable: Sequence[Saved], sources: Sequence[int], second: Jaxpr
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """`second` as a program of (saveable values, inputs of `first`, own inputs), and a mask of those that it uses."""
    variables = [s.var for s in saveable]
    stored = [*(s.var.aval.in_space(s.space) for s in saveable), *first.in_avals]
    own = second.in_avals[len(sources) :]

    def recompute_first(*operands: Any) -> list[Any]:
        back = [in_space(x, v.aval.memory_space) for x, v in zip(operands, variables, strict=False)]
        values = _recompute(first, variables, [*back, *operands[len(back) : len(stored)]])
        return evaluate(second, [*[values[i] for i in sources], *operands[len(stored) :]])

    whole, _ = build(recompute_first, [*stored, *own], second.name)
    with_own = whole.replace(outvars=[*whole.outvars, *whole.invars[len(stored) :]])  # dce must not drop own inputs
    pruned, used = dce(with_own, (True,) * len(with_own.outvars))
    return pruned.replace(outvars=pruned.outvars[: len(whole.outvars)]), used[: len(stored)]


def _recompute(first: Jaxpr, saveable: Sequence[Var], values: Values) -> list[Any]:
    """The inputs and results of `first`, recomputed from the saved values and the inputs."""
    env = bound(first, values[len(saveable) :])
    env.update(zip(saveable, values, strict=False))
    for eqn in reversed(first.eqns):
        if eqn.primitive is name_p and eqn.outvars[0] in env and type(eqn.invars[0]) is Var:
            env.setdefault(eqn.invars[0], env[eqn.outvars[0]])  # the operand of a saved name is the same value
    for eqn in first.eqns:
        if eqn.effects or any(v not in env for v in eqn.outvars):
            outs = builder().replay(eqn, read(env, eqn.invars))
            for var, out in zip(eqn.outvars, outs, strict=True):
                env.setdefault(var, out)
    return read(env, [*first.invars, *first.outvars])


def _saveable(jaxpr: Jaxpr, policy: Policy) -> list[Saved]:
    """The results that the policy allows to save; a value and its name are saved once, as the named value."""
    verdicts = [(eqn, *_verdict(eqn, policy)) for eqn in jaxpr.eqns if len(_verdict(eqn, policy)) == 1]
    found = [(eqn, verdict) for eqn, verdict in verdicts if verdict is not False]
    named = {eqn.invars[0] for eqn, _ in found if eqn.primitive is name_p}
    pairs = [(v, verdict) for eqn, verdict in found for v in eqn.outvars if v not in named]
    return [Saved(v, verdict if isinstance(verdict, Space) else v.aval.memory_space) for v, verdict in pairs]


def _verdict(eqn: Equation, policy: Policy) -> set[bool | Space]:
    """The policy's answer for an equation; for a call, the set of answers for the equations of its body."""
    if eqn.primitive is not jit_p:
        answer = policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)
        return {decision(answer, policy, eqn.primitive)}
    jaxpr = eqn.params["jaxpr"]
    answers = jaxpr.memo.get((_verdict, policy))
    if answers is None:
        answers = rewrites.keep(jaxpr, (_verdict, policy), set().union(*[_verdict(e, policy) for e in jaxpr.eqns]))
    return answers


def _inline_mixed(jaxpr: Jaxpr, policy: Policy) -> Jaxpr:
    """Inline the calls of which the policy saves only some equations."""
    if all(eqn.primitive is not jit_p or len(_verdict(eqn, policy)) < 2 for eqn in jaxpr.eqns):
        return jaxpr
    return build(lambda *operands: _evaluate_inline(jaxpr, operands, policy), jaxpr.in_avals, jaxpr.name)[0]


def _evaluate_inline(jaxpr: Jaxpr, operands: Values, policy: Policy) -> list[Any]:
    env = bound(jaxpr, operands)
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        mixed = eqn.primitive is jit_p and len(_verdict(eqn, policy)) > 1
        outs = _evaluate_inline(eqn.params["jaxpr"], inputs, policy) if mixed else builder().replay(eqn, inputs)
        env.update(zip(eqn.outvars, outs, strict=True))
    return read(env, jaxpr.outvars)
