"""Which formulas on the CPU are calls that XLA keeps, so that their elements are computed once.

A formula (primitives/cpu_math) is made of simple operations, and those XLA's CPU backend fuses into whatever reads
them, and computes again for each place they are read at. In `x = sin(x) + x[::-1]` an element of the result needs two
of `x`: of twelve such lines in one fusion the first sine would be computed 4,096 times for each element. So what a
value reads at several places is kept: in the second line the first sine. A formula reads its operand many times, each
time anew unless that is in place: of `sin(sin(x)[::-1])` the inner sine is kept too.

XLA writes out the functions that are called, so that it fuses through calls too. A call whose result has formulas
inside is a formula here, and kept as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Equation, Jaxpr, Var, once

_IN_PLACE = -1
_LEAST_ELEMENTS = 64
"""Formulas of fewer elements are not worth a call."""

_Source = int
"""A formula by the number of its equation, an input of the jaxpr by `_input(its position)`."""

_Reads = dict[_Source, frozenset[Any]]
"""What is fused into a value, and at which places: in place, or where the equation with that number moved it."""


class _Found(NamedTuple):
    """What one value reads at several places, what formulas read, and what the results read."""

    several: set[_Source]
    by_formulas: set[_Source]
    results: list[_Reads]


def kept_formulas(jaxpr: Jaxpr) -> Set[int]:
    """The numbers of the equations that are kept: formulas, and calls of functions with formulas."""
    return _found(jaxpr).several


@once
def _found(jaxpr: Jaxpr) -> _Found:
    found = _Found(set(), set(), [])
    reads: dict[Any, _Reads] = {v: _itself(_input(i)) for i, v in enumerate(jaxpr.invars)}
    for eqn in jaxpr.eqns:
        operands = _of(eqn.invars, reads)
        reads.update(zip(eqn.outvars, _results(eqn, operands, found), strict=True))
    found.results.extend(_of(jaxpr.outvars, reads))
    return found


def _itself(source: _Source) -> _Reads:
    return {source: frozenset((_IN_PLACE,))}


def _input(position: int) -> _Source:
    return -1 - position


def _of(atoms: Iterable[Any], reads: dict[Any, _Reads]) -> list[_Reads]:
    return [reads.get(a, {}) if type(a) is Var else {} for a in atoms]


def _results(eqn: Equation, operands: Sequence[_Reads], found: _Found) -> Sequence[_Reads]:
    """What the results of an equation read; what it itself reads at several places is added to `found`."""
    primitive = eqn.primitive
    if primitive.called is not None:
        return _of_call(eqn, eqn.params[primitive.called], operands, found)
    if _is_formula(eqn):
        _read_by_formula(operands, found)
        return [_merged([*operands, _itself(eqn.id)], found)]
    if not any(operands):
        return [{}] * len(eqn.outvars)
    if primitive.in_place:
        return [_merged(operands, found)]
    moved = {} if _is_kernel(eqn) else _moved(_merged(operands, found), eqn.id)
    return [moved] * len(eqn.outvars)


def _of_call(eqn: Equation, jaxpr: Jaxpr, operands: Sequence[_Reads], found: _Found) -> Sequence[_Reads]:
    """The same of a call: what it reads of an operand is what its jaxpr reads of the input."""
    inside = _found(jaxpr)
    for i, operand in enumerate(operands):
        if _input(i) in inside.several:
            found.several.update(operand)
    _read_by_formula([x for i, x in enumerate(operands) if _input(i) in inside.by_formulas], found)
    return [_merged(_through(eqn, result, operands), found) for result in inside.results]


def _read_by_formula(operands: Sequence[_Reads], found: _Found) -> None:
    for operand in operands:
        found.by_formulas.update(operand)
        found.several.update(source for source, places in operand.items() if places != {_IN_PLACE})


def _through(eqn: Equation, result: _Reads, operands: Sequence[_Reads]) -> list[_Reads]:
    """What a result of a call reads; any formula inside makes the call one."""
    through = [_itself(eqn.id)] if any(source >= 0 for source in result) else []
    for i, operand in enumerate(operands):
        (place,) = result.get(_input(i), (None,))
        if place is not None:
            through.append(operand if place == _IN_PLACE else _moved(operand, (eqn.id, place)))
    return through


def _merged(operands: Sequence[_Reads], found: _Found) -> _Reads:
    """What a value made of these reads, but for what it would read at several places."""
    reads: _Reads = {}
    for operand in operands:
        for source, places in operand.items():
            reads[source] = reads.get(source, frozenset()) | places
    found.several.update(source for source, places in reads.items() if len(places) > 1)
    return {source: places for source, places in reads.items() if source not in found.several}


def _moved(reads: _Reads, place: Any) -> _Reads:
    return dict.fromkeys(reads, frozenset((place,)))


def _is_formula(eqn: Equation) -> bool:
    return eqn.primitive.on_cpu is not None and eqn.outvars[0].aval.size >= _LEAST_ELEMENTS


def _is_kernel(eqn: Equation) -> bool:
    """Whether XLA computes it by itself: a product, a sum, a loop; not what only moves elements."""
    if eqn.primitive.higher_order:
        return True
    flops = eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params).flops
    return flops > sum(v.aval.size for v in eqn.outvars)
