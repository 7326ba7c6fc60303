"""A jaxpr's structure as a hashable key: equal for programs that compute the same thing the same way."""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from xlamini.core.jaxpr import Atom, Jaxpr, Var


def structural_key(jaxpr: Jaxpr) -> Hashable:
    """A key that two jaxprs share iff they have the same equations in the same order, whatever their variables are."""
    found = jaxpr.memo.get(structural_key)
    if found is None:
        found = jaxpr.memo[structural_key] = _Key(_structure(jaxpr))
    return found


class _Key:
    """A tuple that computes its hash once."""

    __slots__ = ("_hash", "structure")

    def __init__(self, structure: tuple):
        self.structure, self._hash = structure, hash(structure)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is _Key and self._hash == other._hash and self.structure == other.structure
        )


def _structure(jaxpr: Jaxpr) -> tuple:
    numbers: dict[Var, int] = {}
    for var in (*jaxpr.constvars, *jaxpr.invars):
        numbers[var] = len(numbers)
    eqns = []
    for eqn in jaxpr.eqns:
        inputs = tuple([numbers[a] if type(a) is Var else _literal(a) for a in eqn.invars])
        params = tuple([(name, _param(value)) for name, value in eqn.params.items()])
        eqns.append((eqn.primitive, inputs, params, tuple([v.aval for v in eqn.outvars])))
        for var in eqn.outvars:
            numbers[var] = len(numbers)
    outputs = tuple(numbers[a] if type(a) is Var else _literal(a) for a in jaxpr.outvars)
    avals = tuple(v.aval for v in (*jaxpr.constvars, *jaxpr.invars))
    return avals, len(jaxpr.constvars), tuple(eqns), outputs


def _literal(atom: Atom) -> tuple:
    # By its bytes: nan is not equal to itself, and -0.0 equals 0.0.
    return "literal", np.asarray(atom.val).tobytes(), atom.aval  # type: ignore[union-attr]


def _param(value: Any) -> Any:
    if isinstance(value, Jaxpr):
        return structural_key(value)
    if isinstance(value, tuple) and any(isinstance(v, Jaxpr) for v in value):
        return tuple(map(_param, value))
    return value
