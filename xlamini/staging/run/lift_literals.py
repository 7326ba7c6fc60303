"""A program with its numbers taken out, so that programs that differ in their numbers alone can be run as one.

A Python number that a function uses is a constant of its program: the best there is for a number that stays. One that
changes from call to call, as a step size in an un-jitted gradient may, would make a new program of each call.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, once


class NumbersApart(NamedTuple):
    """A jaxpr that takes the numbers in its equations after its other inputs; and the numbers."""

    jaxpr: Jaxpr
    numbers: list[Any]


@once
def numbers_apart(jaxpr: Jaxpr) -> NumbersApart:
    """The jaxpr without numbers in its own equations; those in jaxprs inside stay."""
    taken: list[Var] = []
    numbers: list[Any] = []

    def variable(atom: Atom) -> Atom:
        if type(atom) is not Literal:
            return atom
        taken.append(Var(atom.aval))
        numbers.append(atom.val)
        return taken[-1]

    eqns = [_with_operands(eqn, list(map(variable, eqn.invars))) for eqn in jaxpr.eqns]
    return NumbersApart(jaxpr.replace(eqns=eqns, invars=[*jaxpr.invars, *taken]), numbers)


def _with_operands(eqn: Equation, invars: list[Atom]) -> Equation:
    if invars == list(eqn.invars):
        return eqn
    return Equation(eqn.primitive, invars, eqn.outvars, eqn.params, eqn.effects, eqn.provenance, eqn.id)
