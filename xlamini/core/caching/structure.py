"""A jaxpr's structure as a hashable key: equal for programs that compute the same thing the same way."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from xlamini.core.caching.ambiguity import exact_key
from xlamini.core.program.avals import Params
from xlamini.core.program.jaxpr import Atom, Jaxpr, Provenance, Var, once, rewrites, subjaxprs
from xlamini.core.program.primitive import Primitive


class RewriteRule:
    """Base of params that only rewrites read, as derivative rules: programs that differ in them alone run alike."""

    @property
    def is_fixed(self) -> bool:
        """Whether it is a rule of a library function, which does the same every time."""
        return False


def structural_key(jaxpr: Jaxpr) -> Hashable:
    """A key that two jaxprs share iff they have the same equations in the same order, whatever their variables are."""
    return _key(jaxpr, structural_key, _same)


def executable_key(jaxpr: Jaxpr) -> Hashable:
    """A key that two jaxprs share iff they run alike: like `structural_key`, but blind to rules."""
    return _key(jaxpr, executable_key, _without_rules)


def key_of_trace(jaxpr: Jaxpr) -> Hashable:
    """Like `structural_key`, but a program with a user's rules is like no other: what a rule does may have changed.

    It is not memoised, as a program is traced once.
    """
    return _new_key(jaxpr, _key_of_body, _each_its_own)


def _key_of_body(jaxpr: Jaxpr) -> Hashable:
    return _key(jaxpr, _key_of_body, _each_its_own)


@once
def places(jaxpr: Jaxpr) -> list[Any]:
    """The names and lines a program is made of: two of one structure for which they are equal are one in messages too.

    Only while both live, as code is known by its id: to compare code objects takes long.
    """
    return new_places(jaxpr)


def new_places(jaxpr: Jaxpr) -> list[Any]:
    """`places` without its memo, for a program that is compared once."""
    found: list[Any] = [jaxpr.name]
    for eqn in jaxpr.eqns:
        found += _place(eqn.provenance)
        if eqn.primitive.higher_order:
            found += [places(inner) for inner in subjaxprs(eqn)]
    return found


def _place(provenance: Provenance) -> tuple:
    source = provenance.source
    if provenance.origin is not None or source is None:
        return (provenance,)
    return id(source.code), source.instruction, provenance.scope


def executable_params(params: Params) -> Hashable:
    """A key for an equation's params with jaxprs among them: equal where equations run alike."""
    return tuple([(name, _param(value, executable_key, _executable)) for name, value in params.items()])


def _executable(param: Any) -> Any:
    return _without_rules(hashable(param))


def _same(param: Any) -> Any:
    return param


def _without_rules(param: Any) -> Any:
    return RewriteRule if isinstance(param, RewriteRule) else param


_numbers = itertools.count()


def _each_its_own(param: Any) -> Any:
    changes = not param.is_fixed if isinstance(param, RewriteRule) else isinstance(param, Primitive) and param.given
    return (RewriteRule, next(_numbers)) if changes else param


def _key(jaxpr: Jaxpr, kind: Callable[[Jaxpr], Hashable], seen_as: Callable[[Any], Any]) -> Hashable:
    key = jaxpr.memo.get(kind)
    return rewrites.keep(jaxpr, kind, _new_key(jaxpr, kind, seen_as)) if key is None else key


def _new_key(jaxpr: Jaxpr, kind: Callable[[Jaxpr], Hashable], seen_as: Callable[[Any], Any]) -> _Key:
    try:
        return _Key(_structure(jaxpr, kind, seen_as))
    except TypeError:  # a param of a user's primitive cannot be hashed
        return _Key(_structure(jaxpr, kind, lambda param: seen_as(hashable(param))))


class Structure:
    """A program as a key of programs that run alike: the same jaxpr, or one of the same `executable_key`.

    That key takes time, so most programs are told apart by the number of equations and the types of the operands.
    """

    __slots__ = ("_hash", "jaxpr")
    jaxpr: Jaxpr

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr, self._hash = jaxpr, hash((len(jaxpr.eqns), *[id(v.aval) for v in jaxpr.invars]))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if type(other) is not Structure or self._hash != other._hash:
            return False
        return self.jaxpr is other.jaxpr or executable_key(self.jaxpr) == executable_key(other.jaxpr)


class Identity:
    """A value that cannot be hashed, as a key: equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value: Any = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Identity and other.value is self.value


def hashable(param: Any) -> Any:
    """The param, or what stands for it in a key if it cannot be hashed."""
    try:
        hash(param)
    except TypeError:
        return Identity(param)
    return param


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
    """Flat, for speed: an equation begins with its primitive and ends with its params and the types of its outputs."""
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    numbers: dict[Var, int] = {var: i for i, var in enumerate(inputs)}
    found: list[Any] = [len(jaxpr.constvars), *[v.aval for v in inputs]]
    for eqn in jaxpr.eqns:
        primitive = eqn.primitive
        found.append(primitive if primitive.is_pure else seen_as(primitive))
        found += [numbers[a] if type(a) is Var else _literal(a) for a in eqn.invars]
        found.append(tuple([(name, _param(value, kind, seen_as)) for name, value in eqn.params.items()]))
        for var in eqn.outvars:
            numbers[var] = len(numbers)
            found.append(var.aval)
    found += [numbers[a] if type(a) is Var else _literal(a) for a in jaxpr.outvars]
    return tuple(found)


def _literal(atom: Atom) -> tuple:
    # Not by its value: nan is not equal to itself, and -0.0 equals 0.0.
    value, kind = atom.val, type(atom.val)  # type: ignore[union-attr]
    if kind is float:
        value = value.hex()
    elif kind is not int and kind is not bool:
        value = np.asarray(value).tobytes()
    return "literal", value, atom.aval


_plain = {bool, int, str, type(None)}
_nested = frozenset({Jaxpr, float})


def _param(value: Any, kind: Callable[[Jaxpr], Hashable], seen_as: Callable[[Any], Any]) -> Any:
    found = type(value)
    if found in _plain:
        return value
    if found is Jaxpr:
        return kind(value)
    if found is float:
        return value.hex()
    if found is tuple and not _nested.isdisjoint(map(type, value)):
        return tuple([_param(v, kind, seen_as) for v in value])
    if found is list:
        return list, tuple([_param(v, kind, seen_as) for v in value])
    return exact_key(value) if isinstance(value, complex | np.inexact) else seen_as(value)
