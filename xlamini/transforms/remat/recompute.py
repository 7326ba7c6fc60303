"""Cut a parted program: what its first half keeps, what its second half computes again.

    first: inputs -> (outputs, residuals)   second: (residuals, own inputs) -> its outputs

become halves between which less is kept. Of what the first half computes, only values cross that the policy lets be
saved; the second half makes the residuals again, from these and from the inputs. What neither half needs is in none.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Equation, Jaxpr, Var, rewrites
from xlamini.core.rewriting import rewrite
from xlamini.core.tracer import build
from xlamini.interpreters.dce import dce
from xlamini.interpreters.environment import bound, builder, read
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.residuals import gather_residuals
from xlamini.staging.call.call import jit_p
from xlamini.staging.call.higher_order import chosen
from xlamini.transforms.remat.checkpoint_name import name_p
from xlamini.transforms.remat.policies import Policy, answered


class Cut(NamedTuple):
    """`first` returns the `count` outputs and then what is saved besides; `second` takes the kept values first.

    `sources` says for each kept value where it stands among the inputs and results of `first`. Values that were
    computed, not given, come first; there are `saved` of them.
    """

    first: Jaxpr
    second: Jaxpr
    count: int
    saved: int
    sources: tuple[int, ...]

    def parted(self, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs and the kept values, from the inputs and results of `first`."""
        return list(results[: self.count]), gather_residuals(self.sources, inputs, results)


@rewrite
def cut(first: Jaxpr, second: Jaxpr, count: int, sources: tuple[int, ...], policy: Policy | None) -> Cut:
    """The halves cut anew; `first` has `count` outputs, and `sources` says where the residuals stand."""
    opened = first if policy is None else _opened(first, policy)
    saveable = [] if policy is None else _saveable(opened, policy)
    again, used = _again(opened, saveable, sources, second)
    saved, inputs = chosen(saveable, used[: len(saveable)]), chosen(opened.invars, used[len(saveable) :])
    outputs = opened.outvars[:count]
    new = [v for v in saved if v not in outputs]
    slim, _ = dce(opened.replace(outvars=[*outputs, *new]), (True,) * (count + len(new)), True)
    places = {v: i for i, v in reversed(list(enumerate([*slim.invars, *slim.outvars])))}
    return Cut(slim, again, count, len(saved), tuple(places[v] for v in (*saved, *inputs)))


def _again(
    first: Jaxpr, saveable: Sequence[Var], sources: Sequence[int], second: Jaxpr
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The second half as a program of (saved values, inputs, own inputs), and which of the former it takes."""
    given = [*saveable, *first.invars]
    own = second.in_avals[len(sources) :]

    def recomputed(*operands: Any) -> list[Any]:
        known = _recompute(first, saveable, operands[: len(given)])
        return evaluate(second, [*[known[i] for i in sources], *operands[len(given) :]])

    whole, _ = build(recomputed, [*(v.aval for v in given), *own], second.name)
    kept = whole.replace(outvars=[*whole.outvars, *whole.invars[len(given) :]])  # all its own inputs stay inputs
    slim, used = dce(kept, (True,) * len(kept.outvars))
    return slim.replace(outvars=slim.outvars[: len(whole.outvars)]), used[: len(given)]


def _recompute(first: Jaxpr, saveable: Sequence[Var], values: Sequence[Any]) -> list[Any]:
    """The inputs and results of `first`, by the equations whose results are not given."""
    env = bound(first, values[len(saveable) :])
    env.update(zip(saveable, values, strict=False))
    for eqn in reversed(first.eqns):
        if eqn.primitive is name_p and eqn.outvars[0] in env and type(eqn.invars[0]) is Var:
            env.setdefault(eqn.invars[0], env[eqn.outvars[0]])  # what was saved under a name is known without it too
    for eqn in first.eqns:
        if eqn.effects or any(v not in env for v in eqn.outvars):
            outs = builder().replay(eqn, read(env, eqn.invars))
            for var, out in zip(eqn.outvars, outs, strict=True):
                env.setdefault(var, out)
    return read(env, [*first.invars, *first.outvars])


def _saveable(jaxpr: Jaxpr, policy: Policy) -> list[Var]:
    """The results that may be saved; what has a name too is saved under that."""
    eqns = [eqn for eqn in jaxpr.eqns if _verdict(eqn, policy) == {True}]
    named = {eqn.invars[0] for eqn in eqns if eqn.primitive is name_p}
    return [v for eqn in eqns for v in eqn.outvars if v not in named]


def _verdict(eqn: Equation, policy: Policy) -> set[bool]:
    """The policy's answer about an equation; about a call all its answers about what is inside."""
    if eqn.primitive is not jit_p:
        answer = policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)
        return {answered(answer, policy, eqn.primitive)}
    jaxpr = eqn.params["jaxpr"]
    verdict = jaxpr.memo.get((_verdict, policy))
    if verdict is None:
        verdict = rewrites.keep(jaxpr, (_verdict, policy), set().union(*[_verdict(e, policy) for e in jaxpr.eqns]))
    return verdict


def _opened(jaxpr: Jaxpr, policy: Policy) -> Jaxpr:
    """The program with the insides of those calls in the open of which only a part may be saved."""
    if all(eqn.primitive is not jit_p or len(_verdict(eqn, policy)) < 2 for eqn in jaxpr.eqns):
        return jaxpr
    return build(lambda *operands: _open(jaxpr, operands, policy), jaxpr.in_avals, jaxpr.name)[0]


def _open(jaxpr: Jaxpr, operands: Sequence[Any], policy: Policy) -> list[Any]:
    env = bound(jaxpr, operands)
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        apart = eqn.primitive is jit_p and len(_verdict(eqn, policy)) == 2
        outs = _open(eqn.params["jaxpr"], inputs, policy) if apart else builder().replay(eqn, inputs)
        env.update(zip(eqn.outvars, outs, strict=True))
    return read(env, jaxpr.outvars)
