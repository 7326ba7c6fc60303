"""Scopes of symbolic sizes: the constraints on their variables, and the normal form of expressions under them."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from xlamini.core.errors import InconclusiveDimensionOperation
from xlamini.core.sizes.bounds import LowerBounds
from xlamini.core.sizes.expression import Size, SymbolicSize, terms_of
from xlamini.core.sizes.parser import parse_constraint
from xlamini.core.sizes.polynomials import Factor, Monomial, Terms, ordered, over, product, times, total
from xlamini.core.sizes.values import variables

MOST = 2**31 - 1
"""Symbolic sizes are less than this, because programs compute them in int32."""


class Constraint(NamedTuple):
    """A relation of sizes that the arguments of a program must fulfil: `left sign right`, where sign is >= or ==."""

    text: str
    left: Size
    sign: str
    right: Size


class SymbolicScope:
    """The constraints under which symbolic sizes are compared; sizes of different scopes cannot be mixed.

    Each variable is at least 1, as in JAX, unless a constraint such as `b >= 0` says that it may be 0.

    Args:
      constraints_str: constraints such as "a >= 3", "b <= 2*a", "mod(b, 8) == 0". An equality replaces its left side
        by its right one, so its left side must be one term.

    ValueError for what is no constraint, and for constraints that no sizes fulfil.

    >>> scope = SymbolicScope(["n >= 4", "mod(n, 2) == 0"])
    >>> n, = xlamini.export.symbolic_shape("n", scope=scope)
    >>> n > 3, n // 2 * 2 == n
    (True, True)
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str):
            raise ValueError(f"constraints must be a list, got {constraints_str!r}; write [{constraints_str!r}]")
        self.constraints: list[Constraint] = []
        self._sizes: dict[tuple, SymbolicSize] = {}
        self._replaced: dict[Monomial, Terms] = {}
        self._least: dict[str, int] = {}
        self._facts: list[Terms] = []
        self._bounds = LowerBounds(self)
        for text in constraints_str:
            self._add(text)
        self._check_contradictions()

    def _add(self, text: str) -> None:
        left, sign, right = parse_constraint(text, self)
        self.constraints.append(Constraint(text, left, sign, right))
        if sign == "==":
            self._replace(text, left, right)
        else:
            self._assume(left - right)
        self._bounds = LowerBounds(self)

    def _replace(self, text: str, left: Size, right: Size) -> None:
        """Let one side stand for the other from now on."""
        terms = terms_of(left)
        if len(terms) != 1 or () in terms:
            raise ValueError(f"constraint {text!r}: the left side of == must be one term, such as a or mod(a, 8)")
        [(monomial, coefficient)] = terms.items()
        if left is right:
            return
        if any(over(m, monomial) is not None for m in terms_of(right)):
            raise ValueError(f"constraint {text!r}: the right side of == may not contain the left one")
        if coefficient == 1:
            self._replaced[monomial] = terms_of(right)
        self._facts += [terms_of(left - right), terms_of(right - left)]

    def _assume(self, difference: Size) -> None:
        """Add the fact that a size is not negative."""
        terms = terms_of(difference)
        monomials = [m for m in terms if m]
        factor = monomials[0][0][0] if len(monomials) == 1 and len(monomials[0]) == 1 else None
        if factor is not None and factor.is_variable and terms[monomials[0]] == 1 and monomials[0][0][1] == 1:
            self._least[factor.name] = max(-terms.get((), 0), self._least.get(factor.name, 0))
        else:
            self._facts.append(terms)

    def _check_contradictions(self) -> None:
        for constraint in self.constraints:
            sides = self.normal(constraint.left), self.normal(constraint.right)
            if constraint.sign == ">=" and self.at_least(sides[1], sides[0] + 1):
                raise ValueError(f"constraint {constraint.text!r} contradicts the others: no sizes fulfil all of them")

    # --- sizes of the scope

    def variable(self, name: str) -> Size:
        """The size that is the variable of this name."""
        return self.polynomial({((Factor(name), 1),): 1})

    def least(self, name: str) -> int:
        """The least value of a variable: the next number with the remainder that a constraint gives."""
        low = self._least.get(name, 1)
        for known, residue in self._residues():
            if str(known.operands[0]) == name:
                low += (residue - low) % known.operands[1]  # type: ignore[operator]
        return low

    def demands(self, names: Collection[str]) -> Iterator[Constraint]:
        """What must hold of the variables of these names: their least values, and the constraints on them alone."""
        for name in names:
            yield Constraint(f"{name} >= {self.least(name)}", self.variable(name), ">=", self.least(name))
        for constraint in self.constraints:
            if variables(constraint.left) | variables(constraint.right) <= set(names):
                yield constraint

    @property
    def facts(self) -> Sequence[Terms]:
        """What the constraints say of several variables."""
        return self._facts

    def normal(self, size: Size) -> Size:
        """The normal form of a size that was made before all constraints were known."""
        return self.polynomial(terms_of(size)) if isinstance(size, SymbolicSize) else size

    def polynomial(self, terms: Terms) -> Size:
        """The size with these terms."""
        terms = self._whole_divisions(self._with_replacements(terms))
        key = ordered(terms)
        if not key or (len(key) == 1 and not key[0][0]):
            return key[0][1] if key else 0
        found = self._sizes.get(key)
        if found is None:
            found = self._sizes[key] = SymbolicSize(self, key)
        return found

    def _with_replacements(self, terms: Terms) -> Terms:
        for monomial, value in self._replaced.items():
            for known, coefficient in list(terms.items()):
                rest = over(known, monomial)
                if rest is not None:
                    return self._with_replacements(_replaced(terms, known, product({rest: coefficient}, value)))
        return terms

    def _whole_divisions(self, terms: Terms) -> Terms:
        """With `d * floordiv(x, d)` as `x - mod(x, d)`, so that both forms of a size are one."""
        for monomial, coefficient in list(terms.items()):
            for factor, _ in monomial:
                found = self._whole_division(monomial, coefficient, factor)
                if found is not None:
                    return self._whole_divisions(_replaced(terms, monomial, found))
        return terms

    def _whole_division(self, monomial: Monomial, coefficient: int, factor: Factor) -> Terms | None:
        if factor.name != "floordiv" or factor.is_variable:
            return None
        x, divisor = factor.operands
        [first, *others] = terms_of(divisor).items()
        rest = over(monomial, times(((factor, 1),), first[0]))
        if others or rest is None or coefficient % first[1]:
            return None
        return product({rest: coefficient // first[1]}, terms_of(x - self.mod(x, divisor)))

    # --- operations

    def floordiv(self, x: Size, y: Size) -> Size:
        """x // y."""
        _check_divisor(x, y)
        if isinstance(x, int) and isinstance(y, int):
            return x // y
        quotient, rest = _division(terms_of(x), terms_of(y))
        whole, left = self.polynomial(quotient), self.polynomial(rest)
        if self._is_remainder(left, y):
            return whole
        return whole + self.polynomial({((Factor("floordiv", left, y), 1),): 1})

    def _is_remainder(self, x: Size, y: Size) -> bool:
        """Whether 0 <= x < y is known, so that x // y is 0."""
        return bool(self.at_least(x, 0) and self.at_least(y, x + 1))

    def mod(self, x: Size, y: Size) -> Size:
        """x % y."""
        _check_divisor(x, y)
        if isinstance(x, int) and isinstance(y, int):
            return x % y
        rest = self.polynomial(self._with_residues(_division(terms_of(x), terms_of(y))[1], y))
        if isinstance(rest, int) and isinstance(y, int):
            return rest % y
        if self._is_remainder(rest, y):
            return rest
        return self.polynomial({((Factor("mod", rest, y), 1),): 1})

    def _with_residues(self, terms: Terms, y: Size) -> Terms:
        """The terms modulo a number, with the remainders that constraints such as `mod(b, 8) == 0` give."""
        if not isinstance(y, int):
            return terms
        for known, residue in self._residues():
            for monomial, coefficient in list(terms.items()):
                of = known.operands[0].terms[0][0]  # type: ignore[union-attr]
                rest = over(monomial, of)
                if rest is not None and coefficient * known.operands[1] % y == 0:
                    terms = _replaced(terms, monomial, {rest: coefficient * residue})
        return {m: c % y if not m else c for m, c in terms.items()}

    def _residues(self) -> Iterable[tuple[Factor, int]]:
        """The constraints `mod(x, number) == number` on single terms x."""
        for monomial, value in self._replaced.items():
            factor = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
            if factor is not None and factor.name == "mod" and not factor.is_variable and set(value) <= {()}:
                x, y = factor.operands
                if isinstance(y, int) and isinstance(x, SymbolicSize) and len(x.terms) == 1 and x.terms[0][1] == 1:
                    yield factor, value.get((), 0)

    def extremum(self, name: str, x: Size, y: Size) -> Size:
        """The larger (`max`) or smaller (`min`) of two sizes."""
        if self.at_least(x, y):
            return x if name == "max" else y
        if self.at_least(y, x):
            return y if name == "max" else x
        first, second = sorted((x, y), key=lambda s: (isinstance(s, int), str(s)))
        return self.polynomial({((Factor(name, first, second), 1),): 1})

    # --- decisions

    def at_least(self, x: Size, y: Size) -> bool | None:
        """Whether x >= y; None if that depends on the values."""
        if isinstance(y, int) and y >= MOST:
            return False
        if isinstance(x, int) and x >= MOST:
            return True
        difference = x - y
        if isinstance(difference, int):
            return difference >= 0
        if self._bounds.is_at_least(difference, 0):
            return True
        return False if self._bounds.is_at_least(-difference, 1) else None

    def equal(self, x: Size, y: Size) -> bool | None:
        """Whether x == y; None if that depends on the values."""
        difference = x - y
        if isinstance(difference, int):
            return difference == 0
        least, greatest = self.bounds(difference)
        if least == greatest == 0:
            return True
        return False if (least or 0) > 0 or (greatest or 0) < 0 else None

    def bounds(self, size: Size) -> tuple[int | None, int | None]:
        """The least and the greatest value that is known of a size; None where there is none."""
        if isinstance(size, int):
            return size, size
        opposite = self._bounds.of(-size)
        return self._bounds.of(size), None if opposite is None else -opposite

    def inconclusive(self, x: Size, sign: str, y: Size) -> InconclusiveDimensionOperation:
        """The error for a comparison that the constraints do not decide."""
        given = ", ".join(c.text for c in self.constraints)
        return InconclusiveDimensionOperation(
            f"{x} {sign} {y} depends on the values of the symbolic sizes{f', under {given}' if given else ''}; a "
            f"constraint decides it: symbolic_shape(..., constraints=[{f'{x} {self._decided(x, sign, y)}'!r}])"
        )

    def _decided(self, x: Size, sign: str, y: Size) -> str:
        """The constraint under which the comparison holds, or for a remainder fails; there are no strict signs."""
        if sign == "!=":
            return ">= 1" if self.bounds(x)[1] is None else "== 0"
        return {">": f">= {y + 1}", "<": f"<= {y - 1}"}.get(sign, f"{sign} {y}")

    def __repr__(self) -> str:
        return f"SymbolicScope({[c.text for c in self.constraints]})"


def _check_divisor(x: Size, y: Size) -> None:
    if isinstance(y, int) and y == 0:
        raise ZeroDivisionError(f"{x} divided by 0")


def _replaced(terms: Terms, monomial: Monomial, value: Terms) -> Terms:
    """The terms with others in place of that of a monomial."""
    return total({m: c for m, c in terms.items() if m != monomial}, value)


def _division(x: Terms, y: Terms) -> tuple[Terms, Terms]:
    """The quotient and the rest of polynomials, where coefficients are divided as far as they are whole.

    The value of the rest is not bounded by that of the divisor.
    """
    (lead, by), *_ = ordered(y)
    quotient: Terms = {}
    rest = x
    for _ in range(_MOST_TERMS):
        steps = ((over(m, lead), _whole_quotient(c, by, m)) for m, c in ordered(rest))
        part, count = next(((p, n) for p, n in steps if p is not None and n), (None, 0))
        if part is None:
            break
        quotient[part] = quotient.get(part, 0) + count
        rest = total(rest, product({part: -count}, y))
    return quotient, rest


_MOST_TERMS = 64
"""How many terms a quotient has at most; the rest stays undivided."""


def _whole_quotient(coefficient: int, by: int, monomial: Monomial) -> int:
    """How often a coefficient has the divisor's in it; for the constant term the rest is not negative."""
    if not monomial:
        return coefficient // by
    return coefficient // by if coefficient * by > 0 else -(-coefficient // by)
