"""The rule tables: each shows one kind of rule of all primitives, and takes rules for any of them.

A rule has one place, the primitive itself. A table is a view of that place: the methods of a primitive's class and the
functions given to it are read alike, and a function given through one table replaces what was there before.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from xlamini.core import Primitive
from xlamini.core.caching.memo import clear_caches
from xlamini.core.program.bindable import primitives

Rule = Callable[..., Any]
F = TypeVar("F", bound=Rule)
Convention = Callable[[Primitive, Rule], Rule]
"""A function of a primitive and a rule that returns the rule in another calling convention."""


class Given(NamedTuple):
    """A rule as it was given, and the table that it was given to."""

    rule: Rule
    table: RuleTable


class RuleTable(MutableMapping[Primitive, Rule]):
    """The rules of one kind, by primitive: `table[p]`, `table[p] = rule`, `@table(p)`, `p in table`, `del table[p]`.

    `as_method` makes the primitive's method of a rule that is given, `as_rule` makes a rule of a method. A library with
    another calling convention makes a table of its own of the same `name`; both show the same rules.

    KeyError for a primitive without the rule, TypeError for what is no primitive or no function.

    >>> from xlamini import extend
    >>> extend.jvp_rule[xlamini.lax.sin_p]((0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    >>> xlamini.lax.sin_p in extend.transpose_rule, xlamini.lax.neg_p in extend.transpose_rule
    (False, True)
    >>> swapped = extend.RuleTable("jvp", lambda p, rule: lambda primals, tangents: rule(tangents, primals))
    >>> negate_p = extend.Primitive("negated")
    >>> @swapped(negate_p)
    ... def _(tangents, primals):
    ...     return -primals[0], -tangents[0]
    >>> negate_p in extend.jvp_rule
    True
    """

    name: str

    def __init__(self, name: str, as_method: Convention, as_rule: Convention | None = None):
        self.name, self._as_method, self._as_rule = name, as_method, as_rule

    def __call__(self, primitive: Primitive) -> Callable[[F], F]:
        """Decorator that gives the function to the primitive as its rule."""

        def give(rule: F) -> F:
            self[primitive] = rule
            return rule

        return give

    def __getitem__(self, primitive: Primitive) -> Rule:
        if primitive not in self:
            raise KeyError(primitive)
        given = primitive.given.get(self.name)
        if given is not None and given.table is self:
            return given.rule
        method = _method(primitive, self.name)
        assert method is not None
        return method if self._as_rule is None else self._as_rule(primitive, method)

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        if not isinstance(primitive, Primitive):
            kind = type(primitive).__name__
            raise TypeError(f"{self.name} is a rule of a primitive, got {primitive!r} of type {kind}")
        if not callable(rule):
            raise TypeError(f"the {self.name} rule of '{primitive}' must be a function, got {rule!r}")
        method = self._as_method(primitive, rule)
        self._forget(primitive)
        primitive.given = {**primitive.given, self.name: Given(rule, self)}
        _put(primitive, self.name, method)
        mark_ways(primitive)

    def __delitem__(self, primitive: Primitive) -> None:
        if self.name not in primitive.given:
            raise KeyError(primitive)
        self._forget(primitive)
        primitive.given = {name: given for name, given in primitive.given.items() if name != self.name}
        _take_away(primitive, self.name)
        mark_ways(primitive)

    def __contains__(self, primitive: object) -> bool:
        return isinstance(primitive, Primitive) and (_method(primitive, self.name) is not None)

    def __iter__(self) -> Iterator[Primitive]:
        return (primitive for primitive in primitives if primitive in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _forget(self, primitive: Primitive) -> None:
        """Drop what was derived by the rule before, if the primitive is in use."""
        if primitive.is_bound:
            clear_caches()

    def __repr__(self) -> str:
        return f"<the {self.name} rules of {len(self)} primitives>"


# Where a rule is: a method of the primitive, or a piece of one of its facets.

_FACETS = {"factors": "sharding"}
"""The facets of the rules that are pieces of one, by the name of the rule."""


def _method(primitive: Primitive, name: str) -> Rule | None:
    """The rule as the library calls it; None if there is none."""
    if name in _FACETS:
        return getattr(getattr(primitive, _FACETS[name]), name)
    if name in primitive.given or (getattr(type(primitive), name, None) is not None and primitive.written(name)):
        return getattr(primitive, name)
    return None


def _put(primitive: Primitive, name: str, method: Rule) -> None:
    facet = _FACETS.get(name)
    setattr(primitive, facet or name, replace(getattr(primitive, facet), **{name: method}) if facet else method)


def _take_away(primitive: Primitive, name: str) -> None:
    """Remove a rule that was given: what the class says holds again."""
    if name in _FACETS:
        _put(primitive, name, getattr(getattr(type(primitive), _FACETS[name]), name))
    else:
        delattr(primitive, name)


def mark_ways(primitive: Primitive) -> None:
    """Note on the primitive which way its equations take to the machine."""
    given = primitive.given
    primitive.expands = "expand" in given or type(primitive).expands
    primitive.eager_only = "implementation" in given and not primitive.expands and "lower" not in given
