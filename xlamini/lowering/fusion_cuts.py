"""Fusion cuts on the CPU: formulas emitted as calls that XLA does not inline, so that each element is computed once.

    cut(jaxpr)  ->  jaxpr whose calls that must not be inlined have the param `noinline`

A formula (primitives/cpu_math) consists of simple operations, which XLA's CPU backend fuses into every consumer and
recomputes for each index they are read at. In `x = sin(x) + x[::-1]` an element of the result needs two elements of
`x`: with twelve such lines in one fusion the first sine is computed 4,096 times for each element. So a formula that one
value reads at several indices is not inlined: in the second line, the first sine. A formula reads its operand many
times, and recomputes it each time unless the read is in place: in `sin(sin(x)[::-1])` the inner sine is not inlined
either.

XLA inlines other calls and fuses through them. A call whose result contains formulas counts as a formula, and is cut as
a whole.

A value remembers all formulas that are fused into it. Of a long chain or sum that would be all of the program, so the
formulas are cut where there are many: a fusion of so many is slow to compile, and gains nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from xlamini.core import ELEMENTWISE, CallLike, Equation, Jaxpr, Var, once, rewrite
from xlamini.core.program.equation_kind import equation_cost
from xlamini.core.program.form_call import NOINLINE, form_p, original
from xlamini.core.program.rewriting import with_jaxprs
from xlamini.core.sizes.expression import SymbolicSize, is_less

_IN_PLACE = -1
_LEAST_ELEMENTS = 64
"""The size below which a formula is not worth a call."""
_MOST_SOURCES = 64
"""The number of formulas and inputs fused into one value, above which they are cut."""

_Source = int
"""A source of reads: a formula, by the id of its equation, or an input of the jaxpr, by `_input(its position)`."""

_Reads = dict[_Source, frozenset[Any]]
"""The sources fused into a value, and the indices each is read at: in place, or as moved by the equation with an id."""


class _Analysis(NamedTuple):
    """The analysis of a jaxpr: sources read at several indices, sources read by formulas, and the results' reads."""

    several: set[_Source]
    by_formulas: set[_Source]
    results: list[_Reads]


@rewrite
def cut(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its noinline calls: formulas, and calls of functions with formulas; `jaxpr` if it has none."""
    eqns = [eqn if eqn.primitive.is_pure else _cut(eqn, jaxpr) for eqn in jaxpr.eqns]
    return jaxpr if all(map(operator.is_, eqns, jaxpr.eqns)) else jaxpr.replace(eqns=eqns)


def _cut(eqn: Equation, jaxpr: Jaxpr) -> Equation:
    if eqn.primitive is not form_p:
        eqn = with_jaxprs(eqn, cut)
    if eqn.params.get(NOINLINE) or not (_is_formula(eqn) or isinstance(eqn.primitive, CallLike)):
        return eqn  # without an analysis
    return eqn.replace(params={**eqn.params, NOINLINE: True}) if eqn.id in _analyze(jaxpr).several else eqn


@once
def _analyze(jaxpr: Jaxpr) -> _Analysis:
    found = _Analysis(set(), set(), [])
    reads: dict[Any, _Reads] = {v: _itself(_input(i)) for i, v in enumerate(jaxpr.invars)}
    for eqn in jaxpr.eqns:
        operands = _of(eqn.invars, reads)
        reads.update(zip(eqn.outvars, _results(eqn, operands, found), strict=True))
    found.results.extend(_of(jaxpr.outvars, reads))
    return found


def _itself(source: _Source) -> _Reads:
    return {source: frozenset((_IN_PLACE,))}


def _input(position: int) -> _Source:
    return -1 - position  # its own inverse


def _of(atoms: Iterable[Any], reads: dict[Any, _Reads]) -> list[_Reads]:
    return [reads.get(a, {}) if type(a) is Var else {} for a in atoms]


def _results(eqn: Equation, operands: Sequence[_Reads], found: _Analysis) -> Sequence[_Reads]:
    """The reads of an equation's results; sources that the equation reads at several indices are added to `found`."""
    if _is_formula(eqn):
        _read_by_formula(operands, found)
        return [_merged([*operands, _itself(eqn.id)], found)]
    eqn = original(eqn)
    primitive = eqn.primitive
    if isinstance(primitive, CallLike):
        return _of_call(eqn, eqn.params[primitive.called], operands, found)
    if not any(operands):
        return [{}] * len(eqn.outvars)
    if primitive.traits & ELEMENTWISE:
        return [_merged(operands, found)]
    moved = {} if _is_kernel(eqn) else _moved(_merged(operands, found), eqn.id)
    return [moved] * len(eqn.outvars)


def _of_call(eqn: Equation, jaxpr: Jaxpr, operands: Sequence[_Reads], found: _Analysis) -> Sequence[_Reads]:
    """The reads of a call's results: it reads an operand as its jaxpr reads the input."""
    inside = _analyze(jaxpr)
    for i, operand in enumerate(operands):
        if _input(i) in inside.several:
            found.several.update(operand)
    _read_by_formula([x for i, x in enumerate(operands) if _input(i) in inside.by_formulas], found)
    return [_merged(_through(eqn, result, operands), found) for result in inside.results]


def _read_by_formula(operands: Sequence[_Reads], found: _Analysis) -> None:
    for operand in operands:
        found.by_formulas.update(operand)
        found.several.update(source for source, places in operand.items() if places != {_IN_PLACE})


def _through(eqn: Equation, result: _Reads, operands: Sequence[_Reads]) -> list[_Reads]:
    """The reads of a call's result; any formula inside makes the call a source itself."""
    through = [_itself(eqn.id)] if any(source >= 0 for source in result) else []
    for source, (place,) in result.items():
        if source < 0:
            operand = operands[_input(source)]
            through.append(operand if place == _IN_PLACE else _moved(operand, (eqn.id, place)))
    return through


def _merged(operands: Sequence[_Reads], found: _Analysis) -> _Reads:
    """The union of reads, without the sources that would be read at several indices, and empty if it is too large."""
    reads: _Reads = {}
    for operand in operands:
        for source, places in operand.items():
            reads[source] = reads.get(source, frozenset()) | places
    if len(reads) > _MOST_SOURCES:
        found.several.update(reads)
        return {}
    found.several.update(source for source, places in reads.items() if len(places) > 1)
    return {source: places for source, places in reads.items() if source not in found.several}


def _moved(reads: _Reads, place: Any) -> _Reads:
    return dict.fromkeys(reads, frozenset((place,)))


def _is_formula(eqn: Equation) -> bool:
    if not eqn.params.get("is_formula", False):
        return False
    size = eqn.outvars[0].aval.size
    return type(size) is SymbolicSize or size >= _LEAST_ELEMENTS


def _is_kernel(eqn: Equation) -> bool:
    """Whether XLA computes the equation as a kernel, not in a fusion: a product, a reduction, a loop; not a move."""
    if eqn.primitive.higher_order:
        return True
    flops, elements = equation_cost(eqn).flops, sum(v.aval.size for v in eqn.outvars)
    return is_less(elements, flops)
