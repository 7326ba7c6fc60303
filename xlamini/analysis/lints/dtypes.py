"""Rules about dtypes: what spreads, what overflows, what loses digits."""
from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from xlamini.analysis.lints.finding import Finding, finding
from xlamini.analysis.lints.program import LintedProgram, apart, is_written
from xlamini.analysis.lints.registry import lint_rule
from xlamini.core import Var

_WIDE = {np.dtype("float64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("complex64")}
_EXACT = {"bfloat16": 2**8, "float16": 2**11}
"""Up to which integer the dtype has all integers."""


@lint_rule
def float64_spreads(program: LintedProgram) -> Iterator[Finding]:
    """An operand of 64 bits makes another one of 32 bits, and the result, as wide as itself."""
    for body, eqn in program.equations("convert_element_type"):
        given, made = eqn.invars[0].aval, eqn.outvars[0].aval
        if _WIDE.get(made.dtype) != given.dtype or not given.ndim or not is_written(eqn):
            continue
        if any(not apart(eqn, reader) for reader in body.readers[eqn.outvars[0]]):
            message = f"the other operand is {made.dtype.name}, so that this one ({given.str_short()}) becomes it too"
            yield finding(eqn, message, f"Convert the other one: .astype('{given.dtype.name}').", 2)


@lint_rule
def weak_result(program: LintedProgram) -> Iterator[Finding]:
    """A result is an array of weak type, which takes on the dtype of what it meets, and is another type to `jit`."""
    for atom in program.jaxpr.outvars:
        eqn = program.body.maker(atom)
        if eqn is not None and atom.aval.weak_type and atom.aval.ndim:
            dtype = atom.aval.dtype.name
            message = f"a result ({atom.aval.str_short()}) has a weak type, as it is made of Python numbers only"
            fix = f"Give it a dtype: .astype('{dtype}'), or start from jnp.{dtype}(...)."
            yield finding(eqn, message, fix)


@lint_rule
def narrow_integer_dot(program: LintedProgram) -> Iterator[Finding]:
    """A product of matrices of narrow integers is summed up in the same dtype, which overflows."""
    for _, eqn in program.equations("dot_general"):
        out, (contracted, _) = eqn.outvars[0].aval.dtype, eqn.params["dimension_numbers"][0]
        if not np.issubdtype(out, np.integer) or out.itemsize > 2:
            continue
        terms = prod(eqn.invars[0].aval.shape[d] for d in contracted)
        message = f"{terms} products of {out.name} are summed up in {out.name}, whose largest number is "
        fix = "Ask for a wider result: preferred_element_type=jnp.int32."
        yield finding(eqn, message + str(np.iinfo(out).max), fix)


@lint_rule
def running_sum_stops(program: LintedProgram) -> Iterator[Finding]:
    """A carry of low precision is added to so often that addends are lost."""
    for _, eqn in program.equations("scan"):
        body, first, trips = eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["length"]
        makers = {v: e for e in body.eqns for v in e.outvars}
        for i in range(eqn.params["num_carry"]):
            carry, after = body.invars[first + i], body.outvars[i]
            limit = _EXACT.get(carry.aval.dtype.name, trips + 1)
            made = makers.get(after) if type(after) is Var else None
            if made is not None and made.primitive.name == "add" and carry in made.invars and trips >= limit:
                dtype = carry.aval.dtype.name
                message = f"a sum of {trips} terms in {dtype}: beyond {limit} equal terms it does not grow"
                yield finding(made, message, "Carry it in float32, and convert the total.", trips / limit)


@lint_rule
def division_by_zero(program: LintedProgram) -> Iterator[Finding]:
    """The divisor is the constant 0."""
    for body, eqn in program.equations("div", "rem"):
        divisor = body.root(eqn.invars[1])
        if type(divisor) is not Var and divisor.val == 0 and is_written(eqn):
            yield finding(eqn, "the divisor is the constant 0", "Divide by something else.")
