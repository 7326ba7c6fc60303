"""Literal lifting: literals become inputs, so that programs that differ only in their numbers share an executable.

A Python number in a function is a constant of its program, which is best for a number that never changes. A number that
changes from call to call, such as a step size in an un-jitted gradient, would otherwise compile a program each time.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core import Atom, Equation, Jaxpr, Literal, Var, once


class LiftedLiterals(NamedTuple):
    """A jaxpr whose literals are further inputs, after its own; and their values."""

    jaxpr: Jaxpr
    numbers: list[Any]


@once
def lift_literals(jaxpr: Jaxpr) -> LiftedLiterals:
    """Lift the literals of a jaxpr's own equations; those in nested jaxprs stay."""
    taken: list[Var] = []
    numbers: list[Any] = []

    def variable(atom: Atom) -> Atom:
        if type(atom) is not Literal:
            return atom
        taken.append(Var(atom.aval))
        numbers.append(atom.val)
        return taken[-1]

    eqns = [_with_operands(eqn, list(map(variable, eqn.invars))) for eqn in jaxpr.eqns]
    return LiftedLiterals(jaxpr.replace(eqns=eqns, invars=[*jaxpr.invars, *taken]), numbers)


def _with_operands(eqn: Equation, invars: list[Atom]) -> Equation:
    if invars == list(eqn.invars):
        return eqn
    return Equation(eqn.primitive, invars, eqn.outvars, eqn.params, eqn.effects, eqn.provenance, eqn.id)
