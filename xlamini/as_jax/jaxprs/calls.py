"""A run of equations as one `jit` equation, as JAX has of a library function's call."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.program.avals import ShapedArray
from xlamini.core.program.effects import no_effects
from xlamini.core.program.jaxpr import Atom, Equation, Jaxpr, Literal, Provenance, Var
from xlamini.primitives.elementwise.convert_element_type import convert_element_type_p
from xlamini.staging.call.call import jit_p


def as_call(
    name: str, given: Sequence[Atom], results: list[Var], eqns: Sequence[Equation], places: Sequence[Provenance]
) -> Equation:
    """The equation, whose operands are in the order of what the function was given; `places` are those in its body."""
    first = eqns[0].provenance
    plain = Provenance(first.source, first.scope)
    numbers = _Numbers([a for a in given if type(a) is Literal])
    body = [
        eqn.replace(invars=list(map(numbers.atom, eqn.invars)), provenance=place)
        for eqn, place in zip(eqns, places, strict=True)
    ]
    operands = [a for a in dict.fromkeys(given) if type(a) is Var or a in numbers.operands]
    invars = [a if type(a) is Var else numbers.operands[a] for a in operands]
    inside = Jaxpr([], invars, results, [*numbers.converted(plain), *body], name)
    params = {"jaxpr": with_new_variables(inside), "name": name}
    return Equation(jit_p, operands, results, params, inside.effects, plain, eqns[0].id)


class _Numbers:
    """The Python numbers that a call was given: operands in JAX's programs, converted to the dtypes that are used.

    Here they have their dtypes at once: a literal of a number's value is taken for that number.
    """

    def __init__(self, numbers: Sequence[Literal]):
        self.numbers, self.operands = numbers, dict[Atom, Var]()
        self.made: dict[tuple[Var, ShapedArray], Var] = {}

    def atom(self, a: Atom) -> Atom:
        """The variable of the body that a literal was replaced by; any other atom unchanged."""
        number = next((x for x in self.numbers if _is_equal(x, a)), None) if type(a) is Literal else None
        if number is None or number.aval == a.aval:
            return a
        operand = self.operands.setdefault(number, Var(number.aval))
        return self.made.setdefault((operand, a.aval), Var(a.aval))

    def converted(self, place: Provenance) -> list[Equation]:
        """The conversions."""
        return [_conversion(operand, made, place) for (operand, _), made in self.made.items()]


def _is_equal(number: Literal, a: Literal) -> bool:
    with np.errstate(all="ignore"):  # a number may be beyond the dtype
        return not a.aval.ndim and isinstance(a.val, np.generic) and np.asarray(number.val).astype(a.val.dtype) == a.val


def _conversion(x: Var, made: Var, place: Provenance) -> Equation:
    params = {"new_dtype": made.aval.dtype, "weak_type": made.aval.weak_type}
    return Equation(convert_element_type_p, [x], [made], params, no_effects, place, 0)


def with_new_variables(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with variables of its own."""
    env: dict[Any, Any] = {v: Var(v.aval) for v in jaxpr.invars}
    eqns = []
    for eqn in jaxpr.eqns:
        env.update({v: Var(v.aval) for v in eqn.outvars})
        invars = [a if type(a) is Literal else env[a] for a in eqn.invars]
        eqns.append(eqn.replace(invars=invars, outvars=[env[v] for v in eqn.outvars]))
    return Jaxpr([], [env[v] for v in jaxpr.invars], [env[v] for v in jaxpr.outvars], eqns, jaxpr.name)
