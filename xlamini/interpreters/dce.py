"""Dead-code elimination: only equations that an output or an effect depends on remain, and the inputs they read."""
from __future__ import annotations

import operator
from collections.abc import Sequence

from xlamini.core import Atom, Equation, Jaxpr, rewrite
from xlamini.core.program.bindable import further


@rewrite
def dce(jaxpr: Jaxpr, used_outputs: tuple[bool, ...], keep_inputs: bool = False) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr of the used outputs only, and a mask of the inputs it still takes (all of them with `keep_inputs`)."""
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Atom] = set(outvars)
    kept: list[Equation] = []
    for eqn in reversed(jaxpr.eqns):
        if live.isdisjoint(eqn.outvars) and not eqn.effects:
            continue
        whole = len(eqn.outvars) == 1 and not eqn.primitive.higher_order
        slim = eqn if whole else _slim(eqn, [v in live for v in eqn.outvars])
        kept.append(slim)
        live.update(slim.invars)
    used = tuple(keep_inputs or v in live for v in jaxpr.invars)
    kept.reverse()
    if all(used) and all(used_outputs) and len(kept) == len(jaxpr.eqns) and all(map(operator.is_, kept, jaxpr.eqns)):
        return jaxpr, used
    return _with(jaxpr, kept, outvars, used), used


def _slim(eqn: Equation, used: Sequence[bool]) -> Equation:
    """The equation without its unused operands, results and sub-jaxpr outputs."""
    if all(used) and not eqn.primitive.higher_order:
        return eqn
    rule = further(eqn.primitive, "dce")
    reduced = None if rule is None else rule(used, eqn.params)
    if reduced is None:
        return eqn
    ins, outs, params = reduced
    if all(ins) and all(outs) and all(params[name] is value for name, value in eqn.params.items()):
        return eqn
    invars = [a for a, keep in zip(eqn.invars, ins, strict=True) if keep]
    outvars = [v for v, keep in zip(eqn.outvars, outs, strict=True) if keep]
    return Equation(eqn.primitive, invars, outvars, params, eqn.effects, eqn.provenance, eqn.id)


def _with(jaxpr: Jaxpr, eqns: list[Equation], outvars: list[Atom], used: Sequence[bool]) -> Jaxpr:
    invars = [v for v, keep in zip(jaxpr.invars, used, strict=True) if keep]
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns)
