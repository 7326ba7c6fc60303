"""Polynomials with integer coefficients: the normal form of symbolic sizes.

    2*b*n + floordiv(b, 3)  =  {((b, 1), (n, 1)): 2, ((floordiv(b, 3), 1),): 1}

The factors of a monomial are variables and operations (`floordiv`, `mod`, `max`, `min`) that no rule simplifies.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Factor:
    """A variable, or an operation on sizes that is no polynomial of them. Factors with equal texts are equal."""

    __slots__ = ("name", "operands", "text")
    name: str
    operands: tuple[Any, ...]

    def __init__(self, name: str, *operands: Any):
        self.name, self.operands = name, operands
        self.text: str = f"{name}({operands[0]}, {operands[1]})" if operands else name

    @property
    def is_variable(self) -> bool:
        return not self.operands

    @property
    def var(self) -> str | None:
        """The name of a variable, as libraries on JAX ask for it."""
        return self.name if self.is_variable else None

    @property
    def operation(self) -> str | None:
        """The name of an operation, as libraries on JAX ask for it."""
        return None if self.is_variable else self.name

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Factor) and self.text == other.text)


Monomial = tuple[tuple[Factor, int], ...]
"""A product of powers, sorted by the text of the factors; empty for the number 1."""

Terms = dict[Monomial, int]


class Term:
    """A monomial as JAX has it."""

    __slots__ = ("_factors", "is_constant")
    is_constant: bool

    def __init__(self, monomial: Monomial):
        self._factors, self.is_constant = monomial, not monomial


MOST_PRODUCTS = 1000


def total(*parts: Terms | tuple[Terms, int]) -> Terms:
    """The sum of polynomials, or of multiples of them: `(x, -1)` is -x."""
    found: Terms = {}
    for part in parts:
        terms, count = part if isinstance(part, tuple) else (part, 1)
        for monomial, coefficient in terms.items():
            found[monomial] = found.get(monomial, 0) + coefficient * count
    return {m: c for m, c in found.items() if c}


def product(x: Terms, y: Terms) -> Terms:
    """The product of two polynomials; ValueError for one of more terms than any size has."""
    if len(x) * len(y) > MOST_PRODUCTS:
        raise ValueError(f"the product of two sizes of {len(x)} and {len(y)} terms is too long; give parts of it names")
    found: Terms = {}
    for m, c in x.items():
        for n, d in y.items():
            monomial = times(m, n)
            found[monomial] = found.get(monomial, 0) + c * d
    return found


def times(m: Monomial, n: Monomial) -> Monomial:
    """The product of two monomials."""
    powers: dict[Factor, int] = dict(m)
    for factor, power in n:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=_factor_order))


def over(m: Monomial, n: Monomial) -> Monomial | None:
    """The quotient of two monomials; None unless the second divides the first."""
    powers: dict[Factor, int] = dict(m)
    for factor, power in n:
        left = powers.get(factor, 0) - power
        if left < 0:
            return None
        powers[factor] = left
    return tuple((f, p) for f, p in powers.items() if p)


def ordered(terms: Terms) -> tuple[tuple[Monomial, int], ...]:
    """The terms that are not zero, of the highest degree first."""
    return tuple(sorted(((m, c) for m, c in terms.items() if c), key=_term_order))


def polynomial_text(terms: Sequence[tuple[Monomial, int]]) -> str:
    """The text of a polynomial, such as `2*b - 1`."""
    return " + ".join(_term_text(m, c) for m, c in terms).replace("+ -", "- ")


def _term_order(term: tuple[Monomial, int]) -> tuple[int, str]:
    return -sum(power for _, power in term[0]), _monomial_text(term[0])


def _factor_order(item: tuple[Factor, int]) -> str:
    return item[0].text


def _monomial_text(monomial: Monomial) -> str:
    return "*".join(str(f) if p == 1 else f"{f}^{p}" for f, p in monomial)


def _term_text(monomial: Monomial, coefficient: int) -> str:
    text = _monomial_text(monomial)
    if not monomial or abs(coefficient) != 1:
        return f"{coefficient}*{text}" if monomial else str(coefficient)
    return text if coefficient == 1 else f"-{text}"
