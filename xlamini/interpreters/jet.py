"""Taylor mode (jet): the higher derivatives of a program's outputs along a curve through its inputs.

    push_jet(jaxpr, primals, series)  ->  outputs, and their first n derivatives along the curve

The inputs are x(t), given by the value and n derivatives at t = 0. Order after order, every equation adds one
derivative of its results. No primitive needs a rule for this, since the jvp of an equation is the first derivative of
its result as a program of x and x', which has derivatives itself:

    y = f(x)  ->  y' = tangent(x, x', y), of which order k - 1 follows from orders below k of x and y, and order k of x

Two cases cost less. An equation whose tangent does not read its varying operands is linear, and the tangent maps each
derivative. An equation that is linear in each of two varying operands follows Leibniz' rule. A primitive may also state
the next derivative of its results itself (`Primitive.next_derivative`).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import comb
from typing import Any, NamedTuple

from xlamini.core import CallLike, Equation, Jaxpr, Values, Var, aval_of, is_differentiable
from xlamini.core.program.equation_kind import as_jaxpr
from xlamini.core.program.jaxpr import Provenance, derived
from xlamini.interpreters.bindings import bound, builder, read
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import jvp, scatter_where
from xlamini.interpreters.rule_cache import rewrite_once_per_kind
from xlamini.primitives import mul, zeros
from xlamini.primitives.base.tangent_ops import add_tangents, of_type

Curve = list[Any]
"""The derivatives of a value from order 0 on, as far as they are known."""
Rule = Callable[[int], Sequence[Any]]
"""A function from an order, 1 or more, to the derivatives of an equation's results; None for one that is constant."""


def push_jet(
    jaxpr: Jaxpr, primals: Values, series: Sequence[Sequence[Any] | None], order: int
) -> tuple[list[Any], list[list[Any]]]:
    """The outputs and their derivatives up to `order`; an input with the series None is constant."""
    steps = JetSteps(jaxpr, [terms is not None for terms in series])
    outs = steps.next_order(primals)
    found = [steps.next_order([terms and terms[k] for terms in series]) for k in range(order)]
    return outs, [[_dense(derivatives[i], a.aval) for derivatives in found] for i, a in enumerate(jaxpr.outvars)]


class JetSteps:
    """A program whose equations are differentiated one order at a time."""

    jaxpr: Jaxpr
    provenance: Provenance | None

    def __init__(self, jaxpr: Jaxpr, varying: Sequence[bool], provenance: Provenance | None = None):
        self.jaxpr, self.provenance = jaxpr, provenance
        self.order: int = 0
        self.env: dict[Var, Any] = {}
        self.curves: dict[Any, Curve] = {v: [] for v, moves in zip(jaxpr.invars, varying, strict=True) if moves}
        self.rules: list[tuple[Equation, Rule]] = []

    def next_order(self, inputs: Values) -> list[Any]:
        """The derivatives of the outputs, of the next order; None from order 1 on for an output that is constant.

        `inputs` are those of the inputs; constant ones are read at order 0 only.
        """
        for var, value in zip(self.jaxpr.invars, inputs, strict=True):
            if var in self.curves:
                self.curves[var].append(of_type(var.aval, value))
        if self.order == 0:
            self._start(inputs)
        else:
            for eqn, rule in self.rules:
                self._write(eqn, rule(self.order))
        self.order += 1
        if self.order == 1:
            return read(self.env, self.jaxpr.outvars)
        return [self.curves[a][-1] if a in self.curves else None for a in self.jaxpr.outvars]

    def _start(self, inputs: Values) -> None:
        target = builder()
        before, self.env = target.environment, bound(self.jaxpr, inputs)
        target.environment = self.env
        for eqn in self.jaxpr.eqns:
            found = _rule(self, eqn) if any(a in self.curves for a in eqn.invars) else None
            outs = self.applied(eqn, read(self.env, eqn.invars)) if found is None else found.outs
            self.env.update(zip(eqn.outvars, outs, strict=True))
            if found is not None:
                self._add(eqn, found)
        target.environment = before

    def _add(self, eqn: Equation, found: VaryingResults) -> None:
        for var, out, moves in zip(eqn.outvars, found.outs, found.varying, strict=True):
            if moves:
                self.curves[var] = [out]
        if any(found.varying):
            self.rules.append((eqn, found.rule))

    def _write(self, eqn: Equation, values: Values) -> None:
        for var, value in zip(eqn.outvars, values, strict=True):
            if var in self.curves:
                self.curves[var].append(_dense(value, var.aval))

    def applied(self, eqn: Equation, operands: Values) -> Values:
        """The results of an equation on other operands."""
        target = builder()
        if self.provenance is None:
            return target.replay(eqn, operands)
        target.provenance = self.provenance
        outs = eqn.primitive.bind(*operands, **eqn.params)
        target.provenance = None
        return outs if eqn.primitive.multiple_results else [outs]


class VaryingResults(NamedTuple):
    """The results of an equation, which of them vary, and the rule of their derivatives."""

    outs: Values
    varying: Sequence[bool]
    rule: Rule


def _dense(value: Any, aval: Any) -> Any:
    """A derivative as an array; None means zeros."""
    return zeros(aval) if value is None and is_differentiable(aval) else value


# --- the rules of equations


def _rule(steps: JetSteps, eqn: Equation) -> VaryingResults:
    primitive = eqn.primitive
    if isinstance(primitive, CallLike) and not primitive.has_own_jvp(eqn.params):
        return _call(steps, eqn, eqn.params[primitive.called])
    tangent = _tangent(eqn, [a in steps.curves for a in eqn.invars if type(a) is Var])
    operands = read(steps.env, [a for a in eqn.invars if type(a) is Var])
    outs = _inlined(tangent.primal, operands, steps.provenance or eqn.provenance)
    needed = _needed(steps, eqn, tangent)
    if all(n.shift for n in needed if n.varies):
        rule = _by_map(steps, eqn, tangent.program, needed)
    elif primitive.written("next_derivative"):
        rule = _stated(steps, eqn)
    elif _is_bilinear(steps, eqn):
        rule = _by_leibniz(steps, eqn)
    else:
        rule = _by_tangent(steps, eqn, tangent.program, needed)
    return VaryingResults(outs, tangent.nonzero_out, lambda order: scatter_where(tangent.nonzero_out, rule(order)))


def _call(steps: JetSteps, eqn: Equation, jaxpr: Jaxpr) -> VaryingResults:
    """A call: the called program, in place."""
    inner = JetSteps(jaxpr, [a in steps.curves for a in eqn.invars], derived("jet", eqn))
    outs = inner.next_order(read(steps.env, eqn.invars))
    varying = [a in inner.curves for a in jaxpr.outvars]
    return VaryingResults(outs, varying, lambda order: inner.next_order(_at(steps, eqn.invars, order)))


def _at(steps: JetSteps, atoms: Sequence[Any], order: int) -> list[Any]:
    """The derivatives of values, of one order; None for a constant."""
    return [steps.curves[a][order] if a in steps.curves else None for a in atoms]


def _stated(steps: JetSteps, eqn: Equation) -> Rule:
    """The rule that the primitive states."""

    def rule(order: int) -> Values:
        operands = [steps.curves.get(a) or read(steps.env, [a]) for a in eqn.invars]
        builder().provenance = derived("jet", eqn)
        out = eqn.primitive.next_derivative(operands, steps.curves[eqn.outvars[0]], **eqn.params)
        builder().provenance = None
        return [out]

    return rule


class Tangent(NamedTuple):
    """The results of an equation by its jvp, and their derivative.

    The derivative is a program of the operands, tangents and results that `used` marks. `primal` gives the results that
    it reads, which may have zeros where the primitive's own have anything (above the diagonal of a triangular matrix).
    """

    primal: Jaxpr
    program: Jaxpr
    used: Sequence[bool]
    nonzero_out: Sequence[bool]


def _tangent(eqn: Equation, varying: Sequence[bool]) -> Tangent:
    given = iter(varying)
    notes = [next(given) if type(a) is Var else a for a in eqn.invars]
    program, nonzero_out = rewrite_once_per_kind(jvp, eqn, notes) or jvp(as_jaxpr(eqn), tuple(varying))
    outs, tangents = program.outvars[: len(nonzero_out)], program.outvars[len(nonzero_out) :]
    producer = {v: e for e in program.eqns for v in e.outvars}
    apart = {v for v in outs if v in producer and set(producer[v].outvars) <= {*outs}}
    kept = [e for e in program.eqns if apart.isdisjoint(e.outvars)]
    places = [v if v in apart and v not in outs[:i] else Var(v.aval) for i, v in enumerate(outs)]
    whole = program.replace(invars=[*program.invars, *places], outvars=tangents, eqns=kept)
    slim, used = dce(whole, (True,) * len(tangents))
    primal = dce(program.replace(invars=program.invars[: len(varying)], outvars=outs), (True,) * len(outs), True)[0]
    return Tangent(primal, slim, used, nonzero_out)


class Needed(NamedTuple):
    """An input of a tangent program: a derivative of this variable, `shift` orders above the program's own order."""

    var: Var
    shift: int
    varies: bool


def _needed(steps: JetSteps, eqn: Equation, tangent: Tangent) -> list[Needed]:
    """The inputs of the tangent program: operands, tangents, results."""
    operands = [Needed(a, 0, a in steps.curves) for a in eqn.invars if type(a) is Var]
    tangents = [Needed(n.var, 1, True) for n in operands if n.varies]
    results = [Needed(v, 0, nz) for v, nz in zip(eqn.outvars, tangent.nonzero_out, strict=True)]
    return [n for n, used in zip([*operands, *tangents, *results], tangent.used, strict=True) if used]


def _by_tangent(steps: JetSteps, eqn: Equation, program: Jaxpr, needed: Sequence[Needed]) -> Rule:
    """The derivatives of the tangent program, one order lower."""
    inner = JetSteps(program, [n.varies for n in needed], derived("jet", eqn))

    def rule(order: int) -> Values:
        curves = steps.curves
        return inner.next_order([curves[n.var][order - 1 + n.shift] if n.varies else steps.env[n.var] for n in needed])

    return rule


def _by_map(steps: JetSteps, eqn: Equation, program: Jaxpr, needed: Sequence[Needed]) -> Rule:
    """The tangent program of an equation that is linear in all that varies."""
    provenance = derived("jet", eqn)

    def rule(order: int) -> Values:
        values = [steps.curves[n.var][order] if n.varies else steps.env[n.var] for n in needed]
        return _inlined(program, values, provenance)

    return rule


def _inlined(program: Jaxpr, values: Values, provenance: Provenance) -> list[Any]:
    typed = [of_type(v.aval, x) for v, x in zip(program.invars, values, strict=True)]
    return builder().inline(program, typed, provenance)


def _is_bilinear(steps: JetSteps, eqn: Equation) -> bool:
    """Whether exactly two operands vary, and the derivative in each is the equation with the tangent in its place."""
    moving = [a for a in eqn.invars if type(a) is Var]
    varying = [i for i, a in enumerate(moving) if a in steps.curves]
    return len(varying) == 2 and len(eqn.outvars) == 1 and all(_maps_as_it_is(eqn, moving, i) for i in varying)


def _maps_as_it_is(eqn: Equation, moving: Sequence[Var], position: int) -> bool:
    tangent = _tangent(eqn, [i == position for i in range(len(moving))])
    eqns, inputs = tangent.program.eqns, tangent.program.invars
    if len(eqns) != 1 or eqns[0].primitive is not eqn.primitive or eqns[0].params != eqn.params:
        return False
    others = [i != position for i in range(len(moving))]
    reads_others_and_tangent = [*others, True, False] == [*tangent.used]
    read_once = sorted(map(id, inputs)) == sorted(id(a) for a in eqns[0].invars if type(a) is Var)
    return reads_others_and_tangent and read_once and tangent.program.outvars == eqns[0].outvars


def _by_leibniz(steps: JetSteps, eqn: Equation) -> Rule:
    """The sum over i of comb(n, i) f(derivative i of one operand, derivative n - i of the other one)."""

    def rule(order: int) -> Values:
        terms = [times(comb(order, i), _product(steps, eqn, i, order - i)) for i in range(order + 1)]
        return [reduce(add_tangents, terms)]

    return rule


def _product(steps: JetSteps, eqn: Equation, first: int, second: int) -> Any:
    orders = iter((first, second))
    operands = [steps.curves[a][next(orders)] if a in steps.curves else read(steps.env, [a])[0] for a in eqn.invars]
    target = builder()
    target.provenance = derived("jet", eqn)
    out = eqn.primitive.bind(*operands, **eqn.params)
    target.provenance = None
    return out


def times(count: int, x: Any) -> Any:
    """A derivative times a binomial coefficient."""
    return x if count == 1 else of_type(aval_of(x), mul(x, float(count)))
