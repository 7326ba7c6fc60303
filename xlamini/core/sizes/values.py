"""The values of symbolic sizes for values of their variables."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from xlamini.core.sizes.expression import Binary, SymbolicSize, max_size, min_size
from xlamini.core.sizes.polynomials import Factor


def evaluate(size: Any, values: Mapping[str, Any]) -> Any:
    """The value of a size, or of another object as it is, from those of its variables.

    Values are numbers, sizes, or objects with `+ * // %` and the methods `maximum` and `minimum`.
    """
    if not isinstance(size, SymbolicSize):
        return size
    total: Any = None
    for monomial, coefficient in size.terms:
        term = _product(coefficient, (_factor_value(f, values) for f, p in monomial for _ in range(p)))
        total = term if total is None else total + term
    return total


def _product(coefficient: int, factors: Iterable[Any]) -> Any:
    result: Any = coefficient
    for factor in factors:
        result = factor if isinstance(result, int) and result == 1 else factor * result
    return result


def _factor_value(factor: Factor, values: Mapping[str, Any]) -> Any:
    if factor.is_variable:
        return values[factor.name]
    x, y = (evaluate(operand, values) for operand in factor.operands)
    return OPERATIONS[factor.name](x, y)


def variables(size: Any) -> frozenset[str]:
    """The names of the variables of a size; none for a number."""
    if not isinstance(size, SymbolicSize):
        return frozenset()
    return frozenset().union(*(_factor_variables(f) for m, _ in size.terms for f, _ in m))


def _factor_variables(factor: Factor) -> frozenset[str]:
    if factor.is_variable:
        return frozenset([factor.name])
    return variables(factor.operands[0]) | variables(factor.operands[1])


OPERATIONS: dict[str, Binary] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max_size,
    "min": min_size,
}
"""The operations in expressions, as functions of numbers or sizes."""
