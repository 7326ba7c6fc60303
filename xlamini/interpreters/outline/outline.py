"""The outlining rewrite: a function for each family of blocks, and a call for each block."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Atom, Equation, Jaxpr, Literal, Shape, Var
from xlamini.core.flags import config
from xlamini.core.program.rewriting import check_result
from xlamini.interpreters.dce import dce
from xlamini.interpreters.outline.blocks import Family, find_families, symbols_of
from xlamini.interpreters.outline.boundary import Boundary, Given, Origin
from xlamini.interpreters.outline.views import Views

MakeCall = Callable[[Jaxpr, list[Atom], list[Var], Equation], Equation]
"""A function that makes a call equation with these operands and results, for a block that starts with an equation."""


class Outlined:
    """A family as a function: `body`, with the operands and results of each block's call.

    Operands and results have the shapes in which they are stored (views.py).
    """

    boundary: Boundary
    family: Family
    shape_of: Callable[[Var], Shape]

    def __init__(self, boundary: Boundary, shape_of: Callable[[Var], Shape]):
        self.family, self.boundary, self.shape_of = boundary.family, boundary, shape_of
        self.params: list[Any] = list(boundary.params)
        self.param_shapes: list[Shape] = [shape_of(p[0]) for p in self.params]
        self.results: list[tuple[int, int]] = []
        self.result_shapes: list[Shape] = []
        self.body: Any = None

    def finish(self, used: set[Any], name: str) -> None:
        """Build the function, whose results are the values used outside any of the blocks."""
        self.results = [
            (i, o)
            for i, eqn in enumerate(self.boundary.template)
            for o in range(len(eqn.outvars))
            if any(member[i].outvars[o] in used for member in self.family.members)
        ]
        outvars = [self.boundary.template[i].outvars[o] for i, o in self.results]
        self.result_shapes = [self.shape_of(v) for v in outvars]
        body = _Body(self).jaxpr(name)
        self.body = dce(body, (True,) * len(self.results), True)[0]

    def call(self, j: int, make_call: MakeCall) -> list[Equation]:
        """The call that replaces block j, between views of its operands and results."""
        member = self.family.members[j]
        before, after = Views(member[0]), Views(member[0])
        operands = [before.shaped(p[j], shape) for p, shape in zip(self.params, self.param_shapes, strict=True)]
        outvars = [member[i].outvars[o] for i, o in self.results]
        results = [after.of(v, shape) for v, shape in zip(outvars, self.result_shapes, strict=True)]
        return [*before.eqns, make_call(self.body, operands, results, member[0]), *after.eqns]


def repeated_blocks(jaxpr: Jaxpr, worth: Callable[[Boundary], bool]) -> list[Boundary]:
    """The boundaries of the families of blocks for which `worth` holds."""
    symbols = symbols_of(jaxpr.eqns)
    families = find_families(jaxpr, symbols)
    if not families:
        return []
    origins = _origins(jaxpr, symbols, families)
    return [boundary for family in families if worth(boundary := Boundary(family, origins))]


def outline(
    jaxpr: Jaxpr, boundaries: Sequence[Boundary], make_call: MakeCall, apart: bool
) -> tuple[Jaxpr, list[Outlined]]:
    """The outlined program, with a function for each family, and these functions.

    If they are called `apart`, by several executables, values cross their boundaries in their own shapes: those in
    which XLA stores them would need views between the calls.
    """
    found = [Outlined(each, _own_shape if apart else each.stored_shape) for each in boundaries]
    result = _rewritten(jaxpr, found, make_call)
    if config.enable_checks.value:  # not through `rewrite`, whose memo would keep every outlined program alive
        check_result(result)
    return result, found


def _own_shape(x: Var) -> Shape:
    return x.aval.shape


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
            eqns += each.call(j, make_call)
        elif i not in inside:
            eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


class _Body:
    """The function of a family under construction, copied from its first block."""

    def __init__(self, outlined: Outlined):
        self.outlined, self.boundary = outlined, outlined.boundary
        self.eqns: list[Equation] = []
        self.values: dict[Given, Var] = {}

    def jaxpr(self, name: str) -> Jaxpr:
        source, outlined = self.boundary, self.outlined
        views = Views(source.template[0])
        self.values = {p: Var(p[0].aval) for p in outlined.params}
        invars = [views.of(v, s) for v, s in zip(self.values.values(), outlined.param_shapes, strict=True)]
        self.eqns += views.eqns
        made: list[list[Var]] = []
        for eqn, places, operands in zip(source.template, source.wiring, source.operands, strict=True):
            pairs = zip(places, operands, strict=True)
            made.append(self._append(eqn, [self._outside(x) if p is None else made[p[0]][p[1]] for p, x in pairs]))
        ends = Views(source.template[0])
        outs = [ends.shaped(made[i][o], s) for (i, o), s in zip(outlined.results, outlined.result_shapes, strict=True)]
        return Jaxpr([], invars, outs, [*self.eqns, *ends.eqns], name)

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
