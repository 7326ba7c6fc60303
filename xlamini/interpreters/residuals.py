"""Residuals: what the second half of a program needs of the first, and where it is found.

A residual that is an input or an output of the first half already is not returned a second time, because a program that
returns its input copies it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.tracer import Builder, Tracer


def where_they_stand(
    builder: Builder, known: Sequence[Any], residuals: Sequence[Any]
) -> tuple[list[Tracer], tuple[int, ...]]:
    """The residuals that are not among the known values, and where each residual stands among both together."""
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


def found_at(sources: Sequence[int], inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The residuals, from the inputs and results of the first half."""
    known = [*inputs, *results]
    return [known[i] for i in sources]
