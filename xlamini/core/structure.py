"""A jaxpr's structure as a hashable key: equal for programs that compute the same thing the same way."""
from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from xlamini.core.jaxpr import Atom, Jaxpr, Var


class RewriteRule:
    """Base of params that only rewrites read, as derivative rules: programs that differ in them alone run alike."""


def structural_key(jaxpr: Jaxpr) -> Hashable:
    """A key that two jaxprs share iff they have the same equations in the same order, whatever their variables are."""
    return _key(jaxpr, structural_key, _same)


def executable_key(jaxpr: Jaxpr) -> Hashable:
    """A key that two jaxprs share iff they run alike: like `structural_key`, but blind to rules."""
    return _key(jaxpr, executable_key, _without_rules)


def executable_params(params: dict[str, Any]) -> Hashable:
    """A key for an equation's params with jaxprs among them: equal where equations run alike."""
    return tuple([(name, _param(value, executable_key, _without_rules)) for name, value in params.items()])


def _same(param: Any) -> Any:
    return param


def _without_rules(param: Any) -> Any:
    return RewriteRule if isinstance(param, RewriteRule) else param


def _key(jaxpr: Jaxpr, kind: Callable[[Jaxpr], Hashable], seen_as: Callable[[Any], Any]) -> Hashable:
    found = jaxpr.memo.get(kind)
    if found is None:
        found = jaxpr.memo[kind] = _Key(_structure(jaxpr, kind, seen_as))
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


def _structure(jaxpr: Jaxpr, kind: Callable[[Jaxpr], Hashable], seen_as: Callable[[Any], Any]) -> tuple:
    numbers: dict[Var, int] = {}
    for var in (*jaxpr.constvars, *jaxpr.invars):
        numbers[var] = len(numbers)
    eqns = []
    for eqn in jaxpr.eqns:
        inputs = tuple([numbers[a] if type(a) is Var else _literal(a) for a in eqn.invars])
        params = tuple([(name, _param(value, kind, seen_as)) for name, value in eqn.params.items()])
        eqns.append((eqn.primitive, inputs, params, tuple([v.aval for v in eqn.outvars])))
        for var in eqn.outvars:
            numbers[var] = len(numbers)
    outputs = tuple(numbers[a] if type(a) is Var else _literal(a) for a in jaxpr.outvars)
    avals = tuple(v.aval for v in (*jaxpr.constvars, *jaxpr.invars))
    return avals, len(jaxpr.constvars), tuple(eqns), outputs


def _literal(atom: Atom) -> tuple:
    # By its bytes: nan is not equal to itself, and -0.0 equals 0.0.
    return "literal", np.asarray(atom.val).tobytes(), atom.aval  # type: ignore[union-attr]


def _param(value: Any, kind: Callable[[Jaxpr], Hashable], seen_as: Callable[[Any], Any]) -> Any:
    if isinstance(value, Jaxpr):
        return kind(value)
    if isinstance(value, tuple) and any(isinstance(v, Jaxpr) for v in value):
        return tuple(_param(v, kind, seen_as) for v in value)
    return seen_as(value)
