"""The way out: a program of xlamini's in JAX's form.

One loop over the equations: those of a library function that JAX jits become one `jit` equation (names.py), one that
JAX does not have becomes several (expansions.py), and each gets JAX's params (params.py).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.as_jax.jaxprs.expansions import as_custom_jvp, expansion
from xlamini.as_jax.jaxprs.forms import Jaxpr
from xlamini.as_jax.jaxprs.literals import typed_const, typed_literal
from xlamini.as_jax.jaxprs.names import with_calls
from xlamini.as_jax.jaxprs.params import NAMED_IN_JAX, OPEN, TABLE
from xlamini.core.program.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr as CoreJaxpr, Literal, once


def handed_out(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A closed program in JAX's form, its captured values in the dtypes that it states."""
    variables = closed.jaxpr.constvars
    consts = [typed_const(c, v.aval) for c, v in zip(closed.consts, variables, strict=True)]
    return ClosedJaxpr(in_jax_form(closed.jaxpr), consts)


@once
def in_jax_form(jaxpr: CoreJaxpr) -> Jaxpr:
    """A program in JAX's form; it has the variables of the original, and knows it."""
    eqns, outvars = _Translation().run(with_calls(jaxpr))
    return Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, eqns, source=jaxpr)


class _Translation:
    """The equations so far, and the atoms in place of the results of those that were expanded."""

    def __init__(self) -> None:
        self.env: dict[Any, Atom] = {}

    def run(self, jaxpr: CoreJaxpr) -> tuple[list[Equation], list[Atom]]:
        eqns = [new for eqn in jaxpr.eqns for new in self.equation(eqn)]
        return eqns, self.atoms(jaxpr.outvars)

    def atoms(self, atoms: Sequence[Atom]) -> list[Atom]:
        return [typed_literal(a) if isinstance(a, Literal) else self.env.get(a, a) for a in atoms]

    def equation(self, eqn: Equation) -> list[Equation]:
        program = expansion(eqn)
        if program is None:
            return [self.translated(eqn)]
        consts = [Literal(value, v.aval) for value, v in zip(program.consts, program.constvars, strict=True)]
        self.env.update(zip(program.constvars, self.atoms(consts), strict=True))
        self.env.update(zip(program.invars, self.atoms(eqn.invars), strict=True))
        eqns, outvars = self.run(with_calls(program))
        self.env.update(zip(eqn.outvars, outvars, strict=True))
        return eqns

    def translated(self, eqn: Equation) -> Equation:
        name, call = eqn.primitive.name, as_custom_jvp(eqn)
        primitive, params = call or (NAMED_IN_JAX.get(name, eqn.primitive), eqn.params)
        row = TABLE.get(name) if call is None else None
        if row is not None and not row.is_jax(params):  # a library may have put an equation handed out into another
            params = row.out(params, [a.aval for a in eqn.invars])
        shown = {key: _program(value, name in OPEN) for key, value in params.items()}
        return Equation(primitive, self.atoms(eqn.invars), eqn.outvars, shown, eqn.effects, eqn.provenance, eqn.id)


def _program(value: Any, is_open: bool) -> Any:
    """A param with its programs in JAX's form."""
    if isinstance(value, CoreJaxpr):
        found = in_jax_form(value)
        return found if is_open else ClosedJaxpr(found, [])
    if isinstance(value, tuple) and any(isinstance(v, CoreJaxpr) for v in value):
        make: Any = getattr(value, "_make", tuple)
        return make([_program(v, is_open) for v in value])
    return value
