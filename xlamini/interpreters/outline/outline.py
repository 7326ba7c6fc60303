"""The outlining rewrite: a function for each family of blocks, and a call for each block."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Atom, Equation, Jaxpr, Literal, Var, config
from xlamini.core.rewriting import check_result
from xlamini.interpreters.dce import dce
from xlamini.interpreters.outline.blocks import Family, find_families, symbols_of
from xlamini.interpreters.outline.boundary import Boundary, Given, Origin

MakeCall = Callable[[Jaxpr, list[Atom], list[Var], Equation], Equation]
"""A function that makes a call equation with these operands and results, for a block that starts with an equation."""


class Outlined:
    """A family as a function: `body`, with the operands and results of each block's call."""

    def __init__(self, family: Family, boundary: Boundary):
        self.family, self.boundary = family, boundary
        self.params = list(boundary.params)
        self.results: list[tuple[int, int]] = []
        self.body: Any = None

    def finish(self, used: set[Any], name: str) -> None:
        """Build the function, whose results are the values used outside any of the blocks."""
        self.results = [
            (i, o)
            for i, eqn in enumerate(self.boundary.template)
            for o in range(len(eqn.outvars))
            if any(member[i].outvars[o] in used for member in self.family.members)
        ]
        body = _Body(self.boundary).jaxpr(self.params, self.results, name)
        self.body = dce(body, (True,) * len(self.results), True)[0]

    def call(self, j: int, make_call: MakeCall) -> Equation:
        """The call equation that replaces block j."""
        member = self.family.members[j]
        results = [member[i].outvars[o] for i, o in self.results]
        return make_call(self.body, [p[j] for p in self.params], results, member[0])


def outline(
    jaxpr: Jaxpr, worth: Callable[[Boundary], bool], make_call: MakeCall
) -> tuple[Jaxpr, list[Outlined]]:
    """The outlined program, with functions for the families for which `worth` holds, and these functions."""
    symbols = symbols_of(jaxpr.eqns)
    families = find_families(jaxpr, symbols)
    if not families:
        return jaxpr, []
    origins = _origins(jaxpr, symbols, families)
    found = [Outlined(f, boundary) for f in families if worth(boundary := Boundary(f, origins))]
    result = _rewritten(jaxpr, found, make_call)
    if config.enable_checks.value:  # not through `rewrite`, whose memo would keep every outlined program alive
        check_result(result)
    return result, found


def _origins(jaxpr: Jaxpr, symbols: Sequence[int], families: Sequence[Family]) -> dict[Var, Origin]:
    blocks = {start + i: start for each in families for start in each.starts for i in range(each.length)}
    return {
        v: Origin(eqn, symbol, blocks.get(i))
        for i, (eqn, symbol) in enumerate(zip(jaxpr.eqns, symbols, strict=True))
        for v in eqn.outvars
    }


def _rewritten(jaxpr: Jaxpr, found: Sequence[Outlined], make_call: MakeCall) -> Jaxpr:
    """The program with each block replaced with a call."""
    calls = {start: (each, j) for each in found for j, start in enumerate(each.family.starts)}
    inside = {start + i for each in found for start in each.family.starts for i in range(each.family.length)}
    used: set[Any] = {a for i, eqn in enumerate(jaxpr.eqns) if i not in inside for a in eqn.invars}
    used.update(jaxpr.outvars, (v for each in found for given in each.params for v in given))
    for number, each in enumerate(found):
        each.finish(used, f"{jaxpr.name}_block_{number}")
    eqns = []
    for i, eqn in enumerate(jaxpr.eqns):
        if i in calls:
            each, j = calls[i]
            eqns.append(each.call(j, make_call))
        elif i not in inside:
            eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


class _Body:
    """The function of a family under construction, copied from its first block."""

    def __init__(self, boundary: Boundary):
        self.boundary = boundary
        self.eqns: list[Equation] = []
        self.values: dict[Given, Var] = {}

    def jaxpr(self, params: Sequence[Given], results: Sequence[tuple[int, int]], name: str) -> Jaxpr:
        self.values = {p: Var(p[0].aval) for p in params}
        invars = list(self.values.values())
        made: list[list[Var]] = []
        source = self.boundary
        for eqn, places, operands in zip(source.template, source.wiring, source.operands, strict=True):
            pairs = zip(places, operands, strict=True)
            made.append(self._append(eqn, [self._outside(x) if p is None else made[p[0]][p[1]] for p, x in pairs]))
        return Jaxpr([], invars, [made[i][o] for i, o in results], self.eqns, name)

    def _outside(self, x: Any) -> Atom:
        """An outside value: a parameter, or recomputed from parameters."""
        if type(x) is Literal:
            return x
        if x not in self.values:
            eqn = self.boundary.computed_by(x)
            assert eqn is not None
            operands = [self._outside(a) for a in self.boundary.operands_of(x)]
            self.values.update(zip(self.boundary.results_with(x), self._append(eqn, operands), strict=True))
        return self.values[x]

    def _append(self, eqn: Equation, invars: list[Atom]) -> list[Var]:
        self.eqns.append(eqn.copied(invars, len(self.eqns)))
        return list(self.eqns[-1].outvars)
