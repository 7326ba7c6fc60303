"""What a policy saves of a program, also from inside its calls, loops and branches, and the program that takes it.

A call of which the policy saves only a part is inlined. A loop returns the values saved in its body as stacks, a branch
fills the slots of those of the other branches with zeros, a shard_map returns those of all devices. Where the program
runs again with the saved values given, a second loop, branch or shard_map takes them, and computes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, Values, Var
from xlamini.core.program.jaxpr import rewrites
from xlamini.core.program.memory_space import Space
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read
from xlamini.staging.call.call import jit_p
from xlamini.transforms.cond.primitive import cond_p
from xlamini.transforms.cond.residuals import Slot, share_slots
from xlamini.transforms.remat.checkpoint_name import name_p
from xlamini.transforms.remat.policies import Policy, decision
from xlamini.transforms.scan.primitive import scan_p
from xlamini.transforms.scan.rules import stack_of
from xlamini.transforms.shard_map.manual_axes import manual_axes
from xlamini.transforms.shard_map.primitive import shard_map_p, taking_residuals, with_residuals

Rerun = Callable[[Values, Values], Sequence[Any]]
"""The results of an equation but the saved ones, which follow them, from its operands and the saved ones."""


class Saved(NamedTuple):
    """A variable to store, and the memory space to store it in."""

    var: Var
    space: Space

    @property
    def stays(self) -> bool:
        """Whether it is stored where it is."""
        return self.space is self.var.aval.memory_space


class Opened(NamedTuple):
    """A loop or branch that returns what is saved inside of it, after its own results."""

    eqn: Equation
    saved: list[Saved]
    rerun: Rerun


class Saving(NamedTuple):
    """A program that has the values to save as variables; `opened` are its loops and branches, by the last result."""

    jaxpr: Jaxpr
    saved: list[Saved]
    opened: Mapping[Var, Opened]

    @property
    def returning(self) -> Jaxpr:
        """The program with the saved values as further results."""
        return self.jaxpr.replace(outvars=[*self.jaxpr.outvars, *(s.var for s in self.saved)])

    def recompute(self, saved: Values, inputs: Values) -> list[Any]:
        """The inputs and results of the program, computed from the saved values and the inputs."""
        env = bound(self.jaxpr, inputs)
        env.update(zip((s.var for s in self.saved), saved, strict=True))
        for eqn in reversed(self.jaxpr.eqns):
            if eqn.primitive is name_p and eqn.outvars[0] in env and type(eqn.invars[0]) is Var:
                env.setdefault(eqn.invars[0], env[eqn.outvars[0]])  # the operand of a saved name is the same value
        for eqn in self.jaxpr.eqns:
            if eqn.effects or any(v not in env for v in eqn.outvars):
                for var, out in zip(eqn.outvars, self._run(eqn, env), strict=False):
                    env.setdefault(var, out)
        return read(env, [*self.jaxpr.invars, *self.jaxpr.outvars])

    def _run(self, eqn: Equation, env: dict[Var, Any]) -> Sequence[Any]:
        opened = self.opened.get(eqn.outvars[-1])
        operands = read(env, eqn.invars)
        if opened is None:
            return builder().replay(eqn, operands)
        return opened.rerun(operands, read(env, [s.var for s in opened.saved]))

    def rerun(self) -> Jaxpr:
        """The program as one of its inputs and then the saved values."""
        jaxpr, count = self.jaxpr, len(self.jaxpr.invars)

        def run(*operands: Any) -> list[Any]:
            return self.recompute(operands[count:], operands[:count])[count:]

        return build(run, [*jaxpr.in_avals, *(s.var.aval for s in self.saved)], jaxpr.name)[0]


def saving(jaxpr: Jaxpr, policy: Policy | None) -> Saving:
    """The program with what the policy saves of it; a value and its name are saved once, as the named value."""
    if policy is None:
        return Saving(jaxpr, [], {})
    inlined = _inline_mixed(jaxpr, policy)
    verdicts = [_verdict(eqn, policy) for eqn in inlined.eqns]
    kept = [(eqn, *v) for eqn, v in zip(inlined.eqns, verdicts, strict=True) if len(v) == 1 and v != {False}]
    named = {eqn.invars[0] for eqn, _ in kept if eqn.primitive is name_p}
    saved = [_saved(v, verdict) for eqn, verdict in kept for v in eqn.outvars if v not in named]
    opened = {e: _OPENERS[e.primitive](e, policy) for e, v in zip(inlined.eqns, verdicts, strict=True) if len(v) > 1}
    saved += [inside for each in opened.values() for inside in each.saved]
    eqns = [opened[eqn].eqn if eqn in opened else eqn for eqn in inlined.eqns]
    return Saving(inlined.replace(eqns=eqns), saved, {each.eqn.outvars[-1]: each for each in opened.values()})


def _saved(var: Var, verdict: bool | Space) -> Saved:
    return Saved(var, verdict if isinstance(verdict, Space) else var.aval.memory_space)


# --- the policy's answers


def _verdict(eqn: Equation, policy: Policy) -> set[bool | Space]:
    """The policy's answers for an equation: for a call those for its body, so for a loop that it does not save."""
    inside = _bodies(eqn)
    own = set() if eqn.primitive is jit_p else {_answer(eqn, policy)}
    return own if own - {False} else own.union(*(_verdicts(jaxpr, policy) for jaxpr in inside))


def _answer(eqn: Equation, policy: Policy) -> bool | Space:
    answer = policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)
    return decision(answer, policy, eqn.primitive)


def _bodies(eqn: Equation) -> Sequence[Jaxpr]:
    """The programs inside of which values can be saved."""
    if eqn.primitive is cond_p:
        return eqn.params["branches"]
    return [eqn.params["jaxpr"]] if eqn.primitive in (jit_p, scan_p, shard_map_p) else []


def _verdicts(jaxpr: Jaxpr, policy: Policy) -> set[bool | Space]:
    answers = jaxpr.memo.get((_verdict, policy))
    if answers is None:
        answers = rewrites.keep(jaxpr, (_verdict, policy), set().union(*[_verdict(e, policy) for e in jaxpr.eqns]))
    return answers


# --- calls, loops, branches


def _inline_mixed(jaxpr: Jaxpr, policy: Policy) -> Jaxpr:
    """Inline the calls of which the policy saves only some equations."""
    if not any(_is_mixed(eqn, policy) for eqn in jaxpr.eqns):
        return jaxpr
    return build(lambda *operands: _evaluate_inline(jaxpr, operands, policy), jaxpr.in_avals, jaxpr.name)[0]


def _is_mixed(eqn: Equation, policy: Policy) -> bool:
    return eqn.primitive is jit_p and len(_verdict(eqn, policy)) > 1


def _evaluate_inline(jaxpr: Jaxpr, operands: Values, policy: Policy) -> list[Any]:
    env = bound(jaxpr, operands)
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        mixed = _is_mixed(eqn, policy)
        outs = _evaluate_inline(eqn.params["jaxpr"], inputs, policy) if mixed else builder().replay(eqn, inputs)
        env.update(zip(eqn.outvars, outs, strict=True))
    return read(env, jaxpr.outvars)


def _open_scan(eqn: Equation, policy: Policy) -> Opened:
    inside = saving(eqn.params["jaxpr"], policy)
    stacks = [Saved(Var(stack_of(s.var.aval, eqn.params["length"])), s.space) for s in inside.saved]
    again = {**eqn.params, "jaxpr": inside.rerun()}
    opened = _returning_more(eqn, stacks, {**eqn.params, "jaxpr": inside.returning})
    return Opened(opened, stacks, lambda operands, saved: scan_p.bind(*operands, *saved, **again))


def _open_cond(eqn: Equation, policy: Policy) -> Opened:
    inside = [saving(branch, policy) for branch in eqn.params["branches"]]
    shared = share_slots([s.returning for s in inside], len(eqn.outvars))
    pairs = [pair for s, own in zip(inside, shared.own, strict=True) for pair in zip(own, s.saved, strict=True)]
    spaces = {slot: saved.space for slot, saved in pairs}
    saved = [Saved(Var(slot[0]), spaces[slot]) for slot in shared.slots]
    branches = tuple(_of_slots(s, shared.slots, own) for s, own in zip(inside, shared.own, strict=True))
    again = {**eqn.params, "branches": branches}
    opened = _returning_more(eqn, saved, {**eqn.params, "branches": shared.padded})
    return Opened(opened, saved, lambda operands, values: cond_p.bind(*operands, *values, **again))


def _open_shard_map(eqn: Equation, policy: Policy) -> Opened:
    params, count = eqn.params, len(eqn.outvars)
    with manual_axes(params):
        inside = saving(params["jaxpr"], policy)
        giving, specs = with_residuals(inside.returning, count, params)
        new = [False] * len(eqn.invars) + [True] * len(specs)
        taking = taking_residuals(inside.rerun(), new, True, params["manual"])
    of_giving = shard_map_p.params_of(giving, params["in_specs"], (*params["out_specs"], *specs), params)
    avals = shard_map_p.shape_rule(**of_giving)[count:]
    saved = [Saved(Var(aval), s.space) for aval, s in zip(avals, inside.saved, strict=True)]
    of_taking = shard_map_p.params_of(taking, (*params["in_specs"], *specs), params["out_specs"], params)
    opened = _returning_more(eqn, saved, of_giving)
    return Opened(opened, saved, lambda operands, values: shard_map_p.bind(*operands, *values, **of_taking))


def _of_slots(inside: Saving, slots: Sequence[Slot], own: Sequence[Slot]) -> Jaxpr:
    """The branch as a program of its inputs and all slots; its saved values are in its own."""
    rerun, count = inside.rerun(), len(inside.jaxpr.invars)
    found = dict(zip(own, rerun.invars[count:], strict=True))
    return rerun.replace(invars=[*rerun.invars[:count], *(found.get(slot) or Var(slot[0]) for slot in slots)])


def _returning_more(eqn: Equation, saved: Sequence[Saved], params: Mapping[str, Any]) -> Equation:
    outvars = [*eqn.outvars, *(s.var for s in saved)]
    return Equation(eqn.primitive, eqn.invars, outvars, dict(params), eqn.effects, eqn.provenance, eqn.id)


_OPENERS = {scan_p: _open_scan, cond_p: _open_cond, shard_map_p: _open_shard_map}
