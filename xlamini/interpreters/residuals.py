"""Residuals: the values that the second half of a split program takes from the first.

A residual that is already an input or an output of the first half is not returned again, because a program that returns
its input copies it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Builder, Tracer, Values


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
