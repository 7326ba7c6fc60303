"""Residuals: the values that the second half of a split program takes from the first.

A residual that is already an input or an output of the first half is not returned again, because a program that returns
its input copies it. Where residuals are stored, as by loops, one that is a broadcast of something smaller is not stored
either: the smaller value is, and the second half broadcasts it again.
"""
from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import REMATERIALIZABLE, Atom, Builder, Equation, Jaxpr, Tracer, Values, Var
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import builder
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate


def locate_residuals(
    builder: Builder, known: Sequence[Any], residuals: Values
) -> tuple[list[Tracer], tuple[int, ...]]:
    """The residuals that are not among the known values, and the index of each residual in known values + new ones."""
    atoms = [builder.atom(x) for x in known]
    places = {atom: i for i, atom in reversed(list(enumerate(atoms)))}
    new: list[Tracer] = []
    sources = []
    for atom in map(builder.atom, residuals):
        if atom not in places:
            places[atom] = len(atoms) + len(new)
            new.append(Tracer(builder, atom, atom.aval))
        sources.append(places[atom])
    return new, tuple(sources)


def gather_residuals(sources: Sequence[int], inputs: Values, results: Values) -> list[Any]:
    """The residuals, gathered from the inputs and results of the first half."""
    known = [*inputs, *results]
    return [known[i] for i in sources]


class Halves(NamedTuple):
    """Two programs: inputs -> outputs, new residuals; residuals, own inputs -> own outputs.

    `sources` are the positions of the residuals among the inputs and results of `first`.
    """

    first: Jaxpr
    second: Jaxpr
    sources: tuple[int, ...]


def narrow_residuals(halves: Halves, count: int) -> Halves:
    """Both programs, with each new residual replaced by the smallest value that it is a broadcast or view of.

    `count` is the number of outputs of `first`, which come before its new residuals.
    """
    first, second, sources = halves
    results = [*first.invars, *first.outvars]
    num_known = len(first.invars) + count
    known = set(results[:num_known])
    makers = {eqn.outvars[0]: eqn for eqn in first.eqns if _is_cheap(eqn)}
    chains = [[] if s < num_known else _chain(results[s], makers, known) for s in sources]
    if not any(chains):
        return halves
    ends = [chain[-1].invars[0] if chain else results[s] for chain, s in zip(chains, sources, strict=True)]
    stored = list(dict.fromkeys(ends))
    outvars = [*first.outvars[:count], *(atom for atom in stored if atom not in known)]
    narrow, _ = dce(first.replace(outvars=outvars), (True,) * len(outvars), True)
    places = {atom: i for i, atom in reversed(list(enumerate([*first.invars, *outvars])))}
    widened = _widened(second, stored, ends, chains)
    return Halves(narrow, widened, tuple(places[atom] for atom in stored))


def _is_cheap(eqn: Equation) -> bool:
    """Whether the equation computes one value from one other, and XLA computes it anew in each fusion that reads it."""
    single = len(eqn.invars) == len(eqn.outvars) == 1 and type(eqn.invars[0]) is Var
    return single and bool(eqn.primitive.traits & REMATERIALIZABLE) and not eqn.effects


def _chain(atom: Atom, makers: Mapping[Any, Equation], known: Container[Atom]) -> list[Equation]:
    """The equations that make `atom` of a value that is smaller or stored already, the last one first."""
    chain, length = [], 0
    while (eqn := makers.get(atom)) is not None and eqn.invars[0].aval.nbytes <= atom.aval.nbytes:
        chain.append(eqn)
        if eqn.invars[0].aval.nbytes < atom.aval.nbytes or eqn.invars[0] in known:
            length = len(chain)
        atom = eqn.invars[0]
    return chain[:length]


def _widened(
    second: Jaxpr, stored: Sequence[Atom], ends: Sequence[Atom], chains: Sequence[Sequence[Equation]]
) -> Jaxpr:
    """`second` as a program of the stored values, which makes each residual of the one where its chain ends."""

    def widen(*operands: Any) -> list[Any]:
        values = dict(zip(stored, operands, strict=False))
        residuals = [_replayed(chain, values[end]) for chain, end in zip(chains, ends, strict=True)]
        return evaluate(second, [*residuals, *operands[len(stored) :]])

    own = second.in_avals[len(chains) :]
    return build(widen, [*(atom.aval for atom in stored), *own], second.name)[0]


def _replayed(chain: Sequence[Equation], x: Any) -> Any:
    for eqn in reversed(chain):
        (x,) = builder().replay(eqn, [x])
    return x
