"""Symbolic sizes: expressions of variables that stand in shapes wherever a number does.

An expression is kept as a polynomial (polynomials.py). Equal ones are one object, so sizes are compared and hashed as
fast as numbers. What bounds decide is in `bounds.py`.
"""
from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from xlamini.core import hooks
from xlamini.core.errors import InconclusiveDimensionOperation, ShapeError
from xlamini.core.errors.frames import own_files
from xlamini.core.sizes.polynomials import Monomial, Term, Terms, polynomial_text, product, total

if TYPE_CHECKING:
    from xlamini.core.sizes.scope import SymbolicScope


class SymbolicSize:
    """A size that is an expression of symbolic sizes; made by `export.symbolic_shape`.

    Sums, products, `//`, `%` and `**` of sizes are sizes. A comparison that the bounds of the variables do not decide
    raises InconclusiveDimensionOperation. `==` is then False, and the program is for sizes that differ: an exported
    one says so, with the line, when it is called with equal ones.

    >>> b, n = xlamini.export.symbolic_shape("b, n")
    >>> (b + n) * 2, (b * n) // n, b >= 1
    (2*b + 2*n, b, True)
    """

    __slots__ = ("__weakref__", "_hash", "scope", "terms", "text")
    shape: tuple[()] = ()
    """The shape of its value, an operand like a number's."""
    __array_priority__ = 1000
    """Above that of NumPy's scalars, whose operators would ask for a number."""

    scope: SymbolicScope
    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, scope: SymbolicScope, terms: tuple[tuple[Monomial, int], ...]):
        self.scope, self.terms = scope, terms
        self.text: str = polynomial_text(terms)
        self._hash = hash(self.text)  # hash(-1) is hash(-2), so terms would often collide

    # --- arithmetic

    def __add__(self, other: Any) -> Any:
        return _arithmetic(self, other, operator.add, _sum_of)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return _arithmetic(self, other, operator.mul, _product_of)

    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return self * -1

    def __pos__(self) -> Size:
        return self

    def __sub__(self, other: Any) -> Any:
        return _arithmetic(self, other, operator.sub, lambda x, y: x + y * -1)

    def __rsub__(self, other: Any) -> Any:
        return _arithmetic(self, other, lambda x, y: y - x, lambda x, y: x * -1 + y)

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, int) or power < 0:
            return _arithmetic(self, power, operator.pow, lambda x, y: _no_power(x, y))
        result: Any = 1
        for _ in range(power):
            result = result * self
        return result

    def __floordiv__(self, other: Any) -> Any:
        return _arithmetic(self, other, operator.floordiv, lambda x, y: x.scope.floordiv(x, y))

    def __rfloordiv__(self, other: Any) -> Any:
        return _arithmetic(self, other, lambda x, y: y // x, lambda x, y: x.scope.floordiv(y, x))

    def __mod__(self, other: Any) -> Any:
        return _arithmetic(self, other, operator.mod, lambda x, y: x.scope.mod(x, y))

    def __rmod__(self, other: Any) -> Any:
        return _arithmetic(self, other, lambda x, y: y % x, lambda x, y: x.scope.mod(y, x))

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return hooks.size_value(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / hooks.size_value(self)

    # --- comparison

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is SymbolicSize and other.scope is not self.scope:
            return False
        known = _operand(other)
        if known is None:
            return False
        found = self.scope.equal(self, known)
        if found is None and not own_files[sys._getframe(1).f_code.co_filename]:
            hooks.assume_unequal(self, known)
        return bool(found)

    def __ge__(self, other: Any) -> Any:
        return _comparison(self, other, ">=", lambda x, y: x.scope.at_least(x, y))

    def __gt__(self, other: Any) -> Any:
        return _comparison(self, other, ">", lambda x, y: x.scope.at_least(x, y + 1))

    def __le__(self, other: Any) -> Any:
        return _comparison(self, other, "<=", lambda x, y: x.scope.at_least(y, x))

    def __lt__(self, other: Any) -> Any:
        return _comparison(self, other, "<", lambda x, y: x.scope.at_least(y, x + 1))

    def __bool__(self) -> bool:
        found = self.scope.equal(self, 0)
        if found is None:
            raise self.scope.inconclusive(self, "!=", 0)
        return not found

    # --- where a number is needed

    def __int__(self) -> NoReturn:
        raise NumberNeeded(self)

    def __index__(self) -> NoReturn:
        raise NumberNeeded(self)

    def __float__(self) -> NoReturn:
        raise NumberNeeded(self)

    def __jax_array__(self) -> Any:
        return hooks.size_value(self)

    @property
    def as_literal(self) -> Any:
        """The operand that stands for it in a program: its value, by an equation."""
        return hooks.size_value(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise NumberNeeded(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the symbolic size {self} cannot be pickled, as its scope is one object; export the function")

    def __deepcopy__(self, memo: Any) -> SymbolicSize:
        return self

    def __copy__(self) -> SymbolicSize:
        return self

    @property
    def _sorted_terms(self) -> tuple[tuple[Term, int], ...]:
        """The terms as JAX has them, which jax2onnx reads."""
        return tuple((Term(monomial), coefficient) for monomial, coefficient in self.terms)

    # --- text

    def __repr__(self) -> str:
        return self.text


Size = int | SymbolicSize
"""A size of an array."""


class NumberNeeded(InconclusiveDimensionOperation, TypeError):
    """A symbolic size was used where only a number serves, such as `range(b)`.

    It is a TypeError too, because that is what Python raises for an object that is no integer.
    """

    def __init__(self, size: SymbolicSize):
        super().__init__(
            f"the size {size} is symbolic, and a number is needed here; loop over it with lax.fori_loop, make arrays "
            "of it with jnp, or give a number in its place"
        )


def refuse_size(_: Any, size: Any) -> NoReturn:
    """NumberNeeded, as a method of what has no values of symbolic sizes."""
    raise NumberNeeded(size)


def as_size(x: Any) -> int:
    """A size as an int; a symbolic one as it is, because it stands wherever an int does. TypeError for others."""
    return x if type(x) is SymbolicSize else operator.index(x)  # type: ignore[return-value]


def is_symbolic_shape(shape: Iterable[Any]) -> bool:
    """Whether a shape has a size that is symbolic."""
    for size in shape:
        if type(size) is SymbolicSize:
            return True
    return False


def is_less(x: Any, y: Any) -> bool:
    """Whether one size is known to be less than another; False where that depends on the values of symbolic ones.

    For choices between ways that give equal results, of which some are faster for large arrays.
    """
    symbolic = next((s for s in (x, y) if type(s) is SymbolicSize), None)
    return x < y if symbolic is None else symbolic.scope.at_least(x, y) is False


def check_symbolic_shape(shape: Iterable[Any]) -> None:
    """InconclusiveDimensionOperation unless all sizes are known to be 0 or more."""
    for size in shape:
        if not size >= 0:
            raise ShapeError(f"shape {tuple(shape)} has a negative size; sizes are 0 or more")


# --- operands


def terms_of(x: Size) -> Terms:
    """The polynomial that a size is."""
    return dict(x.terms) if isinstance(x, SymbolicSize) else {(): x}


Binary = Callable[[Any, Any], Any]


def _operand(x: Any) -> Size | None:
    """A size, from a number or an expression; None for other values."""
    if isinstance(x, SymbolicSize):
        return x
    return int(x) if isinstance(x, int | np.integer) else None


def _arithmetic(x: SymbolicSize, other: Any, plain: Binary, of_sizes: Binary) -> Any:
    """The result for two sizes; with another operand that of the size's value, an array."""
    known = _operand(other)
    if known is None:
        return plain(hooks.size_value(x), other)
    _check_scope(x, known)
    return of_sizes(x, known)


def _comparison(x: SymbolicSize, other: Any, sign: str, decide: Binary) -> Any:
    known = _operand(other)
    if known is None:
        return NotImplemented
    _check_scope(x, known)
    found = decide(x, known)
    if found is None:
        raise x.scope.inconclusive(x, sign, known)
    return found


def _check_scope(x: SymbolicSize, y: Size) -> None:
    if isinstance(y, SymbolicSize) and y.scope is not x.scope:
        raise ValueError(
            f"the sizes {x} and {y} are of different scopes, so nothing is known of them together; make both by one "
            "call of symbolic_shape, or pass scope="
        )


def _no_power(x: Any, y: Any) -> NoReturn:
    raise ValueError(f"{x} ** {y}: the power of a size must be a number, 0 or more")


def _sum_of(x: Any, y: Any) -> Size:
    return x.scope.polynomial(total(terms_of(x), terms_of(y)))


def _product_of(x: Any, y: Any) -> Size:
    return x.scope.polynomial(product(terms_of(x), terms_of(y)))


def max_size(x: Any, y: Any) -> Any:
    """The larger of two sizes.

    >>> b, = xlamini.export.symbolic_shape("b")
    >>> max_size(b, 3), max_size(b, 0)
    (max(b, 3), b)
    """
    return _extremum(x, y, "max", max)


def min_size(x: Any, y: Any) -> Any:
    """The smaller of two sizes."""
    return _extremum(x, y, "min", min)


def _extremum(x: Any, y: Any, name: str, of_numbers: Binary) -> Any:
    symbolic = next((s for s in (x, y) if isinstance(s, SymbolicSize)), None)
    if symbolic is not None:
        return symbolic.scope.extremum(name, x, y)
    return getattr(x, f"{name}imum")(y) if hasattr(x, f"{name}imum") else of_numbers(x, y)
