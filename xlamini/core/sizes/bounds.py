"""Bounds of symbolic sizes: the greatest lower bound that a short search can prove.

A variable b with the least value l is written as l + b', where b' >= 0. A polynomial of such variables without
negative coefficients is at least its constant term. A negative coefficient is removed by subtracting a multiple of a
fact, which is a polynomial that is not negative: from n <= b + 1 follows 3 - n >= 2 - b.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xlamini.core.sizes.expression import Size, SymbolicSize, terms_of
from xlamini.core.sizes.polynomials import Factor, Monomial, Terms, over, product, total

DEPTH = 4
"""How many facts one proof uses."""
STEPS = 500
"""How many polynomials one search looks at."""


class LowerBounds:
    """The lower bounds of the sizes of a scope, memoised by the texts of the sizes."""

    def __init__(self, scope: Any):
        self._scope = scope
        self._known: dict[str, int | None] = {}  # by texts, because sizes are compared by bounds

    def of(self, size: Size) -> int | None:
        """The greatest lower bound that the search proves; None if it proves none."""
        if isinstance(size, int):
            return size
        text = size.text
        if text not in self._known:
            self._known[text] = None  # while it is looked for
            self._known[text] = self._search(size)
        return self._known[text]

    def is_at_least(self, size: Size, number: int) -> bool:
        """Whether a bound shows that size >= number."""
        found = self.of(size)
        return found is not None and found >= number

    def _search(self, size: SymbolicSize) -> int | None:
        chosen = next((f for f in _factors(dict(size.terms)) if _is_extremum(f)), None)
        found = [self._by_search(size), None if chosen is None else self._of_both(size, chosen)]
        return max((bound for bound in found if bound is not None), default=None)

    def _by_search(self, size: SymbolicSize) -> int | None:
        terms = [terms_of(size), *self._scope.facts, *self._facts_on_operations(size)]
        factors = {f for each in terms for f in _factors(each)}
        least = {f: self._least(f) for f in factors}
        search = _Proof(frozenset(f for f in factors if least[f] is None))
        first, *search.facts = (_shifted(each, least) for each in terms)
        return search.bound(first, DEPTH)

    def _of_both(self, size: SymbolicSize, extremum: Factor) -> int | None:
        """The bound of a size with `max(x, y)`: the lesser one of those with x and with y in its place."""
        found = [self.of(_with(size, extremum, operand)) for operand in extremum.operands]
        return None if found[0] is None or found[1] is None else min(found[0], found[1])

    def _least(self, factor: Factor) -> int | None:
        if factor.is_variable:
            return self._scope.least(factor.name)
        x, y = factor.operands
        lows = self.of(x), self.of(y)
        if factor.name in ("max", "min"):
            known = [low for low in lows if low is not None]
            return (max(known, default=None) if factor.name == "max" else min(known) if len(known) == 2 else None)
        if lows[1] is None or lows[1] < 1:
            return None
        if factor.name == "mod":
            return 0
        return None if lows[0] is None else lows[0] // y if isinstance(y, int) else min(lows[0], 0)

    def _facts_on_operations(self, size: SymbolicSize) -> Iterator[Terms]:
        """What is not negative by the meaning of the operations in a size and in the scope's facts."""
        seen: set[Factor] = set()
        waiting = [f for each in (terms_of(size), *self._scope.facts) for f in _factors(each)]
        while waiting:
            factor = waiting.pop()
            if factor in seen or factor.is_variable:
                continue
            seen.add(factor)
            waiting += [f for operand in factor.operands for f in _factors(terms_of(operand))]
            if _is_extremum(factor):
                yield from _facts_on_extremum(factor)
            elif self.is_at_least(factor.operands[1], 1):
                yield from self._facts_on_division(factor)

    def _facts_on_division(self, factor: Factor) -> Iterator[Terms]:
        """0 <= x - y * (x // y) <= y - 1 and x % y <= y - 1; neither x // y nor x % y is above x if x >= 0."""
        x, y = map(terms_of, factor.operands)
        one: Terms = {((factor, 1),): 1}
        if self.is_at_least(factor.operands[0], 0):
            yield total((x, 1), (one, -1))
        if factor.name == "mod":
            yield total((y, 1), (one, -1), ({(): 1}, -1))
        else:
            multiple = product(one, y)
            yield total((x, 1), (multiple, -1))
            yield total((multiple, 1), (x, -1), (y, 1), ({(): 1}, -1))


def _facts_on_extremum(factor: Factor) -> Iterator[Terms]:
    """max(x, y) is at least x and y, and min(x, y) at most."""
    sign = 1 if factor.name == "max" else -1
    for operand in factor.operands:
        yield total(({((factor, 1),): 1}, sign), (terms_of(operand), -sign))


class _Proof:
    """A search for a lower bound of a polynomial, of factors that are not negative except the `unbounded` ones."""

    facts: Sequence[Terms] = ()

    def __init__(self, unbounded: frozenset[Factor]):
        self.unbounded, self.steps = unbounded, STEPS

    def bound(self, terms: Terms, depth: int) -> int | None:
        """The greatest lower bound that `depth` facts prove; None if they prove none."""
        monomial = next((m for m, c in terms.items() if self._is_open(m, c)), None)
        if monomial is None:
            return terms.get((), 0)
        if not depth:
            return None
        found = [b for fact in self.facts for b in self._by_fact(terms, monomial, fact, depth) if b is not None]
        return max(found, default=None)

    def _is_open(self, monomial: Monomial, coefficient: int) -> bool:
        """Whether a term has no lower bound of its own."""
        return bool(monomial) and (coefficient < 0 or not self._is_positive(monomial))

    def _is_positive(self, monomial: Monomial) -> bool:
        return not any(f in self.unbounded for f, _ in monomial)

    def _by_fact(self, terms: Terms, monomial: Monomial, fact: Terms, depth: int) -> Iterator[int | None]:
        """The bounds of the polynomial less a multiple of a fact, by which a term vanishes."""
        for known, coefficient in fact.items():
            rest = over(monomial, known) if known and coefficient * terms[monomial] > 0 else None
            if rest is None or not self._is_positive(rest) or self.steps <= 0:
                continue
            self.steps -= 1
            scale = abs(coefficient)
            left = total((terms, scale), (product({rest: abs(terms[monomial])}, fact), -1))
            bound = self.bound(left, depth - 1)
            yield None if bound is None else -(-bound // scale)


def _factors(terms: Terms) -> list[Factor]:
    return list(dict.fromkeys(f for m in terms for f, _ in m))


def _is_extremum(factor: Factor) -> bool:
    return factor.name in ("max", "min") and not factor.is_variable


def _with(size: SymbolicSize, factor: Factor, value: Size) -> Size:
    return size.scope.polynomial(_substituted(dict(size.terms), factor, terms_of(value)))


def _shifted(terms: Terms, least: dict[Factor, int | None]) -> Terms:
    """The polynomial in factors less their least values."""
    for factor in _factors(terms):
        if low := least[factor]:
            terms = _substituted(terms, factor, {((factor, 1),): 1, (): low})
    return terms


def _substituted(terms: Terms, factor: Factor, value: Terms) -> Terms:
    """The polynomial with the value in place of a factor."""
    parts = []
    for monomial, coefficient in terms.items():
        part: Terms = {tuple((f, p) for f, p in monomial if f != factor): coefficient}
        for _ in range(dict(monomial).get(factor, 0)):
            part = product(part, value)
        parts.append((part, 1))
    return total(*parts)
